"""Compare the animal store with what others would write in its place: `make bench`."""
