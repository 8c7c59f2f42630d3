"""Builds the service for AWS: the layer, the compiled functions, and the artifact with both."""
