"""Checks of finished datasets."""
