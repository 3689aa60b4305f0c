"""Digests of a record: of its Example without the image, of the image, and of both together.

Nearly all bytes of a record are its image's, whose digest is known already: it is the source's if the image is stored
unchanged. A digest over all bytes of the record would be computed from the same bytes a second time.
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from recordmill.schemas.example_proto import Example

STORED_IMAGE = ("encoded", "pixels_base64")
"""The fields that hold an image as it is stored."""


class RecordDigests(NamedTuple):
    """The digests of one record, in hex.

    Attributes:
        rest: SHA-256 of the Example with an empty image, serialised with sorted keys.
        image: SHA-256 of the stored image.
    """

    rest: str
    image: str

    @classmethod
    def of(cls, rest: bytes, image: str) -> "RecordDigests":
        """The digests of a record, from the Example with an empty image and the digest of the image."""
        return cls(sha256(rest).hexdigest(), image)

    @property
    def record(self) -> str:
        """SHA-256 of the text of both digests, one after the other."""
        return sha256((self.rest + self.image).encode()).hexdigest()


def find_images(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The features that hold the image, in the order of their keys, and their fields.

    Args:
        fields: the key and the field of each feature.
    """
    return {key: field for key, field in sorted(fields) if field in STORED_IMAGE}


def digest_record(record: bytes, images: dict[str, str]) -> str:
    """`RecordDigests.record` of a record; without an image, SHA-256 of the Example.

    Args:
        record: the serialised Example.
        images: as for `take_image`; may be empty.

    Raises:
        google.protobuf.message.DecodeError, ValueError: as for `take_image`.
    """
    if not images:
        return sha256(record).hexdigest()
    image, rest = take_image(record, images)
    return RecordDigests.of(rest, sha256(image).hexdigest()).record


def take_image(record: bytes, images: dict[str, str]) -> tuple[bytes, bytes]:
    """The stored image of a record, and the Example with an empty image, serialised with sorted keys.

    Args:
        record: the serialised Example.
        images: the features that hold its image, from `find_images`; at least one.

    Raises:
        google.protobuf.message.DecodeError: the record is not an Example.
        ValueError: it has no image.
    """
    example = Example.FromString(record)
    image = b""
    for key, field in images.items():
        values = example.features.feature[key].bytes_list.value
        if not values:
            raise ValueError(f"the feature {key} is empty")
        image = urlsafe_b64decode(values[0]) if field == "pixels_base64" else values[0]
        values[0] = b""
    return image, example.SerializeToString(deterministic=True)
