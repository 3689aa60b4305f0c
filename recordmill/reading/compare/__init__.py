"""Comparing datasets by their sidecars."""
