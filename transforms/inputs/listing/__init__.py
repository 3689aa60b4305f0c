"""Folders, file names, paths found in data, and files next to images."""
