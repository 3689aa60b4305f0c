"""Images as arrays in files: where each lies, by the files' headers alone."""
