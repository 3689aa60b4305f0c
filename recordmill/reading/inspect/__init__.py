"""What is in a dataset."""
