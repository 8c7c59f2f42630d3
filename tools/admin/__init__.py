"""What people do with a running service: issue, list and revoke API keys."""
