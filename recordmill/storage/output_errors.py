"""Output errors that a user can fix: a full disk, a read-only folder, missing permissions, a name that is taken."""

import errno

from recordmill.storage import is_local

_NAME_ERRORS = frozenset({errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG})
_USER_ERRORS = _NAME_ERRORS | {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
}


def explain_output_error(error: OSError, output: str) -> str:
    """Says in one sentence why an output cannot be written.

    Raises:
        OSError: the error itself, if it is an outage or a bug: the runner may try again.
    """
    if error.errno not in _USER_ERRORS and not is_local(output):
        raise error
    return describe_output_error(error, output)


def describe_output_error(error: OSError, output: str) -> str:
    """Says in one sentence why an output cannot be written, whatever the error."""
    name = (error.filename2 or error.filename) if error.errno in _NAME_ERRORS else None
    where = f" ({name})" if name else ""
    why = " ".join((error.strerror or str(error)).split()).lower()
    return f"the output {output} cannot be written: {why}{where}"
