"""Checks finished datasets."""
