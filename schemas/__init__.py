"""Element types, settings, Example features, conventions, and the format of datasets."""
