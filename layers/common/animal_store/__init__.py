"""What the animal store's functions share."""
