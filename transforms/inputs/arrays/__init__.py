"""Images as arrays in files: where each is, by the files' headers alone."""
