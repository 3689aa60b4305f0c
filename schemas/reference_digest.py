"""Order-free digests of references and of records: equal sets have equal digests, in any parts and order."""

from hashlib import sha256

from recordmill.schemas.image_ref import ImageRef

_LAST_256_BITS = (1 << 256) - 1


def digest_of(ref: ImageRef) -> int:
    """256 bits of what decides an image's record: key, byte range, size, label, group, given split, features, digest.

    Place and time are not in it: the same images have the same digest in any folder and after any copy.
    """
    text = (
        f"{ref.key}\0{ref.offset}\0{ref.length}\0{ref.size}\0{ref.label}\0{ref.group}\0{ref.split}"
        f"\0{ref.features}\0{ref.reason}"
    )
    return _hash(f"{text}\0{ref.packing}\0{ref.sha256}" if ref.packing or ref.sha256 else text)


def version_digest_of(ref: ImageRef) -> int:
    """256 bits of what changes when a file is rewritten: key, size and modification time."""
    return _hash(f"{ref.key}\0{ref.size}\0{ref.version}")


def source_digest_of(ref: ImageRef) -> int:
    """64 bits of a file's place, size and version; 0 if nothing tells another version for sure.

    Versions are the modification times of local files, whose unit is small enough, and the generations and ETags of
    objects.
    """
    is_exact = ref.version.isdigit() and "://" not in ref.uri
    if not is_exact and not ref.version.startswith(("generation:", "etag:")):
        return 0
    text = f"{ref.key}\0{ref.offset}\0{ref.length}\0{ref.size}\0{ref.packing}\0{ref.version}"
    return _hash(text) >> 192


def record_digest_of(split: str, key: str, record: str) -> int:
    """256 bits of a record: its split, its key and its own digest in hex, see `schemas.record_digests`."""
    return _hash(f"{split}\0{record}\0{key}")


def add_digests(*digests: int) -> int:
    """The digest of several references together: the sum modulo 2**256."""
    return sum(digests) & _LAST_256_BITS


def _hash(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest())
