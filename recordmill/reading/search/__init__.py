"""Searching the files of a dataset."""
