"""The steps for pipelines of your own: read, re-encode, build and split, one image an element."""
