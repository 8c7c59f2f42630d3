"""Builds for AWS: packs the layer, compiles the functions, and packs both into one artifact."""
