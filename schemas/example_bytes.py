"""Inserts a large image into a serialized `tf.train.Example` without copies of it.

A message copies each value, and once more to serialize it. The bytes are those that protobuf writes
(protobuf.dev, Encoding; tensorflow/core/example/example.proto).
"""

from collections.abc import Iterator, Mapping

_FIRST, _SECOND = b"\x0a", b"\x12"  # the tags of fields 1 and 2, before their lengths


def insert_images(example: bytes, images: Mapping[str, bytes]) -> bytes:
    """Returns an Example with other values.

    Args:
        example: a serialized Example.
        images: values by key, for features of one bytes value in the Example.
    """
    features, _ = _read_field(example, 0)
    parts: list[bytes] = []
    for entry in _read_fields(features):
        name, end = _read_field(entry, 0)
        image = images.get(name.decode())
        if image is None:
            parts += (_FIRST, _varint(len(entry)), entry)
            continue
        head = b""
        for _ in range(2):  # a value in a list in a feature
            head = _FIRST + _varint(len(head) + len(image)) + head
        value = _SECOND + _varint(len(head) + len(image)) + head
        parts += (_FIRST, _varint(end + len(value) + len(image)), entry[:end], value, image)
    size = sum(map(len, parts))
    return b"".join((_FIRST, _varint(size), *parts))


def _read_fields(message: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(message):
        field, at = _read_field(message, at)
        yield field


def _read_field(message: bytes, at: int) -> tuple[bytes, int]:
    """Returns the content of the field whose tag is at a place, and the place of the next one."""
    length = shift = 0
    while True:
        at += 1
        length |= (message[at] & 127) << shift
        shift += 7
        if message[at] < 128:
            return message[at + 1 : at + 1 + length], at + 1 + length


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes((*encoded, number))
