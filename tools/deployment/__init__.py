"""Deploy a stage, roll it back, check it and restore its tables."""
