"""Turns what Beam's file systems raise for a missing or forbidden object into OSErrors."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_HTTP_CODES = {404: FileNotFoundError, 403: PermissionError}


@contextmanager
def beam_errors_as_systems(path: str) -> Iterator[None]:
    """Turns a store's own errors for a missing or forbidden object, which Beam passes on, into OSErrors."""
    try:
        yield
    except Exception as error:  # Google's and Amazon's are not OSErrors, and their packages may not be installed
        details = getattr(error, "exception_details", None)  # of a BeamIOError, by path
        for cause in (error, error.__cause__, *(details.values() if isinstance(details, dict) else ())):
            kind = _system_error(cause)
            if kind is not None:
                code = errno.ENOENT if kind is FileNotFoundError else errno.EACCES
                raise OSError(code, os.strerror(code), path) from error
        raise


def _system_error(error: Any) -> type[OSError] | None:
    for kind in _HTTP_CODES.values():
        if isinstance(error, kind):
            return kind
    code = getattr(error, "code", None)
    return _HTTP_CODES.get(code) if isinstance(code, int) else None
