"""Files of any kind to references: sources, and what they read."""
