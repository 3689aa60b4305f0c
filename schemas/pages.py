"""Finds the pages of the documentation, which are installed with the package."""

from contextlib import suppress
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1] / "docs"
"""In a clone, `docs`; in an installed package, `recordmill/docs`."""


def find_page(name: str) -> str:
    """Returns the path of a page, for messages.

    The path is relative if the page is below the current folder, as in a clone: `docs/settings.md`.

    Args:
        name: the name of the file, such as `settings.md`.
    """
    with suppress(OSError, ValueError):  # no current folder, or another one
        return str((_FOLDER / name).relative_to(Path.cwd()))
    return str(_FOLDER / name)
