"""The layer that the animal store's functions share."""
