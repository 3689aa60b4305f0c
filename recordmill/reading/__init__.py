"""Opens, verifies, inspects, analyzes and loads finished datasets."""
