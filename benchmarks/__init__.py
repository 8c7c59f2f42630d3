"""How fast the animal store is, measured against what others would write in its place: `make bench`."""
