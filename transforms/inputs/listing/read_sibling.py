"""Files next to images that describe them: annotations, labels, lists of classes."""

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.storage.read_image import read_image

MAX_BYTES = 16 * 2**20
"""Longer than any file that describes one image and does not hold it."""

_WHY = {
    "vanished": "there is no such file",
    "too_many_bytes": "it is longer than {:,} bytes",
}


class NoFileError(Rejected):
    """There is no such file."""


def read_sibling(uri: str, max_bytes: int = MAX_BYTES) -> bytes:
    """Reads a whole file; a store in trouble is tried again.

    Args:
        uri: where it should be.
        max_bytes: more is not read. A format whose files describe many images, or hold one, needs more.

    Raises:
        NoFileError: there is none.
        Rejected: stage `list`, `bad_annotations`: it cannot be read, or is too long.
        Exception: the store is out of order, and was so at every try.
    """
    try:
        return read_image(ImageRef(uri, uri, -1), max_bytes)
    except Rejected as rejected:
        why = _WHY.get(rejected.reason, rejected.detail).format(max_bytes)
        kind = NoFileError if rejected.reason == "vanished" else Rejected
        raise kind("list", "bad_annotations", f"{uri.rpartition('/')[2]}: {why}") from None
