from setuptools import (
    setup,
)  # Beam's --setup_file needs a setup.py; the metadata is in pyproject.toml.

setup()
