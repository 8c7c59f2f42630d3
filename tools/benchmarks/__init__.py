"""Compares the speed of the animal store with two simpler implementations: `make bench`."""
