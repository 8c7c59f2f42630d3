"""The layer that all functions of the animal store share."""
