"""Flags and YAML become a job."""
