"""Runs jobs on runners."""
