"""The bytes that one reference refers to."""

import errno
import time

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.packing import parse_packing
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_packed_range
from recordmill.storage.unpacking import MAX_RATIO

RETRY_SECONDS = (0.1, 0.5)
"""How long to wait before each further try, where a store rather than a file is in trouble."""

_VANISHED = {errno.ENOENT, errno.ENOTDIR}
_UNREADABLE = {errno.EACCES, errno.EPERM, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ESPIPE, errno.ENXIO}


def read_image(ref: ImageRef, max_bytes: int, max_ratio: int = MAX_RATIO) -> bytes:
    """Reads the bytes of one image.

    Args:
        ref: where it is.
        max_bytes: a longer image is not read at all.
        max_ratio: how many times its size a packed file may become, see `storage.unpacking.gunzip`.

    Raises:
        Rejected: stage `read`: it is too long (`too_many_bytes`), gone since it was listed (`vanished`), of
            another length than then (`changed`), packed and damaged (`bad_packing`), or cannot be read for a reason of
            its own (`unreadable`).
        Exception: the store is out of order, and was so at every try; that says nothing about the image.
    """
    expected = ref.image_bytes
    if expected > max_bytes:
        raise Rejected("read", "too_many_bytes", f"{expected} bytes, where images.max_bytes allows {max_bytes}")
    # One byte more than expected shows a file that has grown, and never reads one that has grown huge.
    most = ref.length if ref.length >= 0 else 1 + (expected if expected >= 0 else max_bytes)
    data = _read(ref, most, max_ratio)
    if expected < 0 and len(data) == most:
        raise Rejected("read", "too_many_bytes", f"more than the {max_bytes} bytes that images.max_bytes allows")
    if expected >= 0 and len(data) != expected:
        more = "more" if len(data) > expected else "less"
        raise Rejected("read", "changed", f"{expected} bytes when it was listed, {more} when it was read")
    return data


def _read(ref: ImageRef, length: int, max_ratio: int) -> bytes:
    packing = parse_packing(ref.packing) if ref.packing else None
    for wait in (*RETRY_SECONDS, None):
        try:
            if packing:
                return read_packed_range(ref.uri, packing, ref.offset, length, ref.version, max_ratio=max_ratio)
            return storage.read_range(ref.uri, ref.offset, length)
        except OSError as error:
            if error.errno in _VANISHED:
                raise Rejected("read", "vanished", "the file was listed, and was gone when it was read") from None
            if error.errno in _UNREADABLE:
                why = f"the file cannot be read ({(error.strerror or type(error).__name__).lower()})"
                raise Rejected("read", "unreadable", why) from None
            if wait is None:
                raise
            time.sleep(wait)
    raise AssertionError("every try returns or raises")
