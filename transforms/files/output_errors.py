"""What a user can mend about an output: a full disk, a read-only folder, missing permissions, a name that is taken."""

import errno

_OF_NAMES = frozenset({errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG})
_USERS_ERRORS = _OF_NAMES | {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOENT,
}


def explain_output_error(error: OSError, output: str) -> str:
    """One sentence on what keeps an output from being written.

    Raises:
        OSError: the error itself, where it is nothing that a user can mend: an outage, or a bug.
    """
    if error.errno not in _USERS_ERRORS:
        raise error
    name = (error.filename2 or error.filename) if error.errno in _OF_NAMES else None
    where = f" ({name})" if name else ""
    return f"the output {output} cannot be written: {(error.strerror or str(error)).lower()}{where}"
