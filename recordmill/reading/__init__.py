"""Opens, verifies, inspects, analyses and loads finished datasets."""
