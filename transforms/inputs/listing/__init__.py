"""Names and patterns, paths found in data, and files next to images."""
