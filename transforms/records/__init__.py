"""A reference becomes a record."""
