"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("recordmill")
except PackageNotFoundError:  # run from a source folder without installation
    VERSION = "0+uninstalled"
