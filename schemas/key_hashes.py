"""Three independent numbers from one hash of an image's key: for `limit`, for the split, for the order.

On one number, `limit` would take the lowest images and so put them all in the first split.
"""

import struct
from hashlib import sha256
from typing import NamedTuple

HASH_BITS = 64
HASH_RANGE = 1 << HASH_BITS


class KeyHashes(NamedTuple):
    """Numbers uniform in [0, 2**64), the same in every process and on every machine.

    Attributes:
        take: decides which images `limit` takes.
        split: decides the split; the same for all images of a group.
        order: decides the shard and the place in it.
    """

    take: int
    split: int
    order: int


def hash_key(seed: int, key: str, group: str = "") -> KeyHashes:
    """The numbers of one image.

    Args:
        seed: the dataset's seed.
        key: the image's key.
        group: the group that the split follows; empty: the image alone.
    """
    own = _hash(seed, "key", key)
    return own._replace(split=_hash(seed, "group", group)[0]) if group else own


def order_of(seed: int, key: str) -> int:
    """`KeyHashes.order` of an image, in less time than all of its numbers."""
    return int.from_bytes(sha256(f"{seed}\0key\0{key}".encode()).digest()[16:24])


def _hash(seed: int, kind: str, text: str) -> KeyHashes:
    return KeyHashes(*_THREE_NUMBERS(sha256(f"{seed}\0{kind}\0{text}".encode()).digest()))


_THREE_NUMBERS = struct.Struct(">QQQ").unpack_from
