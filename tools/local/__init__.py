"""The service on this machine: its store and its gateway."""
