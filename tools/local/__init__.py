"""The whole service on one machine: `make run`, `make sam-local` and their store."""
