"""What people do with a running service: issue API keys, add made-up animals."""
