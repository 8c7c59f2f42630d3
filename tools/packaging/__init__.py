"""What `make build` does: pack the layer, compile the functions, pack it all."""
