"""Manifests: what the cells of a table say of images."""
