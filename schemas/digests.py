"""Hashes of keys, which decide where an image goes, and digests of references and of records.

Digests are added up: equal sets have equal sums, however they are divided and ordered.
"""

import struct
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from recordmill.schemas.features import STORED_IMAGE, Example
from recordmill.schemas.image_ref import ImageRef, SourceFile

HASH_BITS = 64
HASH_RANGE = 1 << HASH_BITS

_THREE_NUMBERS = struct.Struct(">QQQ")
_DIGEST_BYTES = 32


class KeyHashes(NamedTuple):
    """Independent numbers uniform in [0, 2**64), the same in every process and on every machine.

    With a single number, `limit` would take the images with the lowest, which are all in the first
    split.

    Attributes:
        take: decides which images `limit` takes.
        split: decides the split; the same for all images of a group.
        order: decides the shard and the place in it.
    """

    take: int
    split: int
    order: int


def hash_key(seed: int, key: str, group: str = "") -> KeyHashes:
    """Returns the numbers of one image.

    Args:
        seed: the dataset's seed.
        key: the image's key.
        group: the group of images that share a split; empty for the image alone.
    """
    return KeyHashes(*_THREE_NUMBERS.unpack(_hash_key(seed, key, group)))


def order_of(seed: int, key: str) -> int:
    """Returns `KeyHashes.order` of an image, faster than `hash_key`."""
    return int.from_bytes(_hash_key(seed, key)[16:24])


def _hash_key(seed: int, key: str, group: str = "") -> bytes:
    """Returns the bytes of the numbers: 8 of each, in their order."""
    own = sha256(f"{seed}\0key\0{key}".encode()).digest()[: _THREE_NUMBERS.size]
    if not group:
        return own
    shared = sha256(f"{seed}\0group\0{group}".encode()).digest()
    return own[:8] + shared[:8] + own[16:]


def digest_of(ref: ImageRef) -> int:
    """Returns a 256-bit digest of what decides a record.

    It covers key, byte range, size, label, group, given split, features, digest, annotations by
    kind, and key and size of further files. Place and time are left out: the same images have the
    same digest in any folder and after any copy.
    """
    return int.from_bytes(_digest(ref))


def _digest(ref: ImageRef) -> bytes:
    text = (
        f"{ref.key}\0{ref.offset}\0{ref.length}\0{ref.size}\0{ref.label}\0{ref.group}\0{ref.split}"
        f"\0{ref.features}\0{ref.reason}"
    )
    if ref.packing or ref.sha256:
        text = f"{text}\0{ref.packing}\0{ref.sha256}"
    for file in ref.files:
        text = f"{text}\0file\0{file.key}\0{file.size}"
        if file.length >= 0 or file.packing:
            text = f"{text}\0{file.offset}\0{file.length}\0{file.packing}"
    return sha256(text.encode() + join_annotations(ref)).digest()


def join_annotations(ref: ImageRef) -> bytes:
    """Returns what annotates an image, kind by kind, for a digest; empty if nothing does."""
    if not ref.annotations:
        return b""
    return b"".join(
        f"\0{kind}\0{len(packed)}\0".encode() + packed for kind, packed in ref.annotations
    )


def version_digest_of(ref: ImageRef) -> int:
    """Returns a 256-bit digest of the key, size and modification time of a reference's files.

    These change when a file is rewritten.
    """
    return int.from_bytes(_version_digest(ref))


def _version_digest(ref: ImageRef) -> bytes:
    text = f"{ref.key}\0{ref.size}\0{ref.version}"
    if ref.files:
        text = f"{text}\0{describe_files(ref)}"
    return sha256(text.encode()).digest()


def describe_files(ref: ImageRef) -> str:
    """Returns key, size and version of a reference's further files, as text for a digest."""
    return "\0".join(f"{file.key}\0{file.size}\0{file.version}" for file in ref.files)


def source_digest_of(ref: ImageRef) -> int:
    """Returns a 64-bit digest of a file's place, size and version.

    Returns 0 if another version might go unnoticed.

    Reliable versions are the modification times of local files, which are fine enough, and the
    generations and ETags of objects.
    """
    if not _is_exact(ref):
        return 0
    text = f"{ref.key}\0{ref.offset}\0{ref.length}\0{ref.size}\0{ref.packing}\0{ref.version}"
    return _hash(text) >> 192


def newest_version(files: Iterable[ImageRef | SourceFile]) -> int:
    """Returns the latest modification time of some files, in nanoseconds; 0 if none has one."""
    newest = 0
    for each in files:
        if each.version.isdigit():
            newest = max(newest, int(each.version))
    return newest


def _is_exact(file: ImageRef | SourceFile) -> bool:
    """Whether a file has a version that changes whenever the file does."""
    if file.version.isdigit() and "://" not in file.uri:
        return True
    return file.version.startswith(("generation:", "etag:"))


def has_exact_files(ref: ImageRef) -> bool:
    """Returns whether no change of a reference's further files goes unnoticed."""
    return all(map(_is_exact, ref.files))


@dataclass(frozen=True, slots=True)
class ReferenceHashes:
    """The hashes of some references, which are computed once and travel with them.

    Attributes:
        keys: `KeyHashes` of each reference, 24 bytes.
        digests: `digest_of` each, 32 bytes.
        versions: `version_digest_of` each, 32 bytes.
    """

    keys: bytes = b""
    digests: bytes = b""
    versions: bytes = b""

    @classmethod
    def of(cls, refs: Iterable[ImageRef], seed: int) -> "ReferenceHashes":
        """Computes the hashes of references; `seed` is the dataset's."""
        keys, digests, versions = bytearray(), bytearray(), bytearray()
        for ref in refs:
            keys += _hash_key(seed, ref.key, ref.group)
            digests += _digest(ref)
            versions += _version_digest(ref)
        return cls(bytes(keys), bytes(digests), bytes(versions))

    def iterate_keys(self) -> Iterator[KeyHashes]:
        """Yields the numbers of each reference."""
        return map(KeyHashes._make, _THREE_NUMBERS.iter_unpack(self.keys))

    def iterate_digests(self) -> Iterator[int]:
        """Yields the digest of each reference."""
        return _numbers_in(self.digests)

    def iterate_versions(self) -> Iterator[int]:
        """Yields the digest of the version of each reference's file."""
        return _numbers_in(self.versions)


def _numbers_in(digests: bytes) -> Iterator[int]:
    starts = range(0, len(digests), _DIGEST_BYTES)
    return (int.from_bytes(digests[at : at + _DIGEST_BYTES]) for at in starts)


def record_digest_of(split: str, key: str, record: str) -> int:
    """Returns a 256-bit digest of a record's split, image key and digest in hex."""
    return _hash(f"{split}\0{record}\0{key}")


def add_digests(*digests: int) -> int:
    """Returns the digest of several references together: the sum modulo 2**256."""
    return sum(digests) % (1 << 256)


def _hash(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest())


def digest_parts(rest: bytes, image: str) -> tuple[str, str]:
    """Returns the digest of a record with an image, and that of the rest of it, in hex.

    The first is the SHA-256 of the concatenated text of the second and of the image's.

    Args:
        rest: the Example with an empty image, serialized with sorted keys.
        image: SHA-256 of the stored image, in hex.
    """
    own = sha256(rest).hexdigest()
    return sha256((own + image).encode()).hexdigest(), own


def find_images(fields: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the features that hold the image, in the order of their keys, and their fields.

    Args:
        fields: the key and the field of each feature.
    """
    return {key: field for key, field in sorted(fields) if field in STORED_IMAGE}


def digest_record(record: bytes, images: dict[str, str]) -> str:
    """Returns the digest of a record, as `digest_parts` describes it.

    Without an image, it is the SHA-256 of the Example.

    Args:
        record: the serialized Example.
        images: as for `take_image`; may be empty.

    Raises:
        google.protobuf.message.DecodeError, ValueError: as for `take_image`.
    """
    if not images:
        return sha256(record).hexdigest()
    image, rest = take_image(record, images)
    return digest_parts(rest, sha256(image).hexdigest())[0]


def take_image(record: bytes, images: dict[str, str]) -> tuple[bytes, bytes]:
    """Returns the stored image of a record, and the Example with an empty image.

    The Example is serialized with sorted keys.

    Args:
        record: the serialized Example.
        images: the features that contain its image, from `find_images`; at least one.

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
