"""What the three functions of the animal store share."""
