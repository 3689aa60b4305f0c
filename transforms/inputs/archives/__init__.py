"""The members of archives, found by reading headers only, and grouped into samples."""
