"""The whole service on this machine: `make run`, `sam local`, and their store."""
