"""What people do with a running service: keys, seed data, exports, the published API page."""
