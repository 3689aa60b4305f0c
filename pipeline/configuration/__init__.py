"""Turns flags and YAML into a job."""
