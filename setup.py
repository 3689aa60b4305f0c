# Beam's --setup_file needs a setup.py; the metadata is in pyproject.toml.
from setuptools import (
    setup,
)

setup()
