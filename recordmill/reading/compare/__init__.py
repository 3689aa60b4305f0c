"""Compares datasets by their sidecars."""
