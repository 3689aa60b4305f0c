"""Statistics of the stored pixels."""
