"""Shows the content of a dataset."""
