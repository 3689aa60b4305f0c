"""Converts references to records."""
