"""Reads the lists that `exclude` and `verify --absent` name."""

import os

from recordmill import storage
from recordmill.schemas.errors import UsageError
from recordmill.schemas.exclusions import Exclusions


def read_exclusions(path: str, setting: str = "exclude") -> Exclusions:
    """What a list of images names; nothing if its path is empty.

    Args:
        path: the list, on any file system.
        setting: the setting or the flag that names it.

    Raises:
        UsageError: the file cannot be read, or a line is malformed.
    """
    if not path:
        return Exclusions()
    try:
        text = storage.read_range(os.path.expanduser(path)).decode("utf-8-sig")  # some editors write a byte order mark
    except OSError as error:
        raise UsageError(f"{setting}: {path} cannot be read: {str(error.strerror or error).lower()}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{setting}: {path} is not UTF-8, from byte {error.start} on: save it as UTF-8") from None
    try:
        return Exclusions.parse(text.split("\n"))
    except ValueError as error:
        raise UsageError(f"{setting}: {path}, {error}") from None
