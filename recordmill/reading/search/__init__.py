"""Searches the files of a dataset."""
