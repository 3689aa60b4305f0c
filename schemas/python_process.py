"""How this process starts further Python interpreters: they import what it can import.

`multiprocessing` would import the main module again, and with it Beam.
"""

import os
import sys
from collections.abc import Callable


def python_command(function: Callable[[int], object], number: int) -> list[str]:
    """Returns the command of an interpreter that calls a module's function with a number."""
    name = function.__name__
    code = f"from {function.__module__} import {name}; {name}({number})"
    return [sys.executable, "-P", "-c", code]


def python_environment() -> dict[str, str]:
    """Returns the environment of an interpreter that finds modules where this process does."""
    places = [place or os.curdir for place in sys.path]  # Python finds "" in the current folder
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
