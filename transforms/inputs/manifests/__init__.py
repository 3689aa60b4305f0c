"""Manifests: tables whose rows describe images."""
