"""Images as arrays in files, located from the files' headers alone."""
