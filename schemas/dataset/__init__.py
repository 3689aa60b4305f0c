"""The format of a dataset on disk: its marker, its sidecars, and the names of its files.

docs/format.md describes it.
"""
