"""Configurations to copy; a package, so that they travel with an installed Recordmill."""
