"""What `make build` does: pack the layer, finish the functions, check what was built."""
