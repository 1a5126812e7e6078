"""Topics: each function writes one short exchange, a list of (user, assistant) turns."""
