"""Compare the speed of the animal store with handlers that others would write: `make bench`."""
