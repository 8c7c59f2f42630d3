"""Build for AWS: pack the layer, compile the functions, pack both into one artifact."""
