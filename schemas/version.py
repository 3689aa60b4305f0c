"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("recordmill")
except PackageNotFoundError:  # run from a folder of sources that was never installed
    VERSION = "0+uninstalled"
