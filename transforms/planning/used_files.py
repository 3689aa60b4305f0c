"""Which of the files that a listing ignores are used all the same, since references name them.

A file and the reference that names it may be met by different workers. Digests of both meet in buckets, and one worker
adds up a bucket: no process holds the digests of more than one.
"""

import os
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b

from recordmill import storage
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.source import SourceSettings
from recordmill.transforms.planning.summary import Summary

BUCKETS = 64

MOST_HELD = 65_536
"""Digests that one worker's thread holds before it lets them go."""

DIGEST_BYTES = 16
"""Enough that no two files of a collection ever have one digest by chance."""

IMAGE_NAME = re.compile(
    r"\.(avif|bmp|dib|gif|heic|heif|jfif|jp2|jpe|jpeg|jpg|mpo|pbm|pgm|png|pnm|ppm|tif|tiff|webp)$", re.IGNORECASE
)
"""How the names of image files end, whether or not they can be converted."""


@dataclass(frozen=True, slots=True)
class Digests:
    """Digests of files of one bucket, one after the other.

    Attributes:
        reason: why they were ignored; the empty string for those that references name.
        are_images: whether they are images, by their names.
        digests: `DIGEST_BYTES` each.
        keys: those of files that should describe an image, and empty ones of others, in the same order; compressed.
    """

    reason: str
    are_images: bool
    digests: bytes
    keys: bytes


class FileDigests:
    """Gathers the digests of some references."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source
        self._held = 0
        self._found: defaultdict[tuple[int, str, bool], tuple[bytearray, list[str]]] = _new_parts()

    def add(self, batch: ReferenceBatch) -> Iterator[tuple[int, Digests]]:
        """Takes in what was listed; gives everything by bucket when much is held."""
        for ref in (*batch.refs, *batch.notices):
            if ref.status == "ignored":
                of_an_image = ref.reason == self._source.other_files and self._source.should_describe(ref.key)
                self._add(ref.uri, ref.reason, bool(IMAGE_NAME.search(ref.uri)), ref.key if of_an_image else "")
            elif ref.status in ("", "rejected", "left_out"):
                for uri in self._source.uses(ref):
                    self._add(uri, "", are_images=False)
        return self.let_go() if self._held >= MOST_HELD else iter(())

    def _add(self, uri: str, reason: str, are_images: bool, key: str = "") -> None:
        path = os.path.abspath(uri) if storage.is_local(uri) else uri  # data may name the whole path
        digest = blake2b(path.encode(), digest_size=DIGEST_BYTES).digest()
        digests, keys = self._found[digest[0] % BUCKETS, reason, are_images]
        digests += digest
        keys.append(key)
        self._held += 1

    def let_go(self) -> Iterator[tuple[int, Digests]]:
        """All of them by bucket; nothing is kept."""
        found, self._found, self._held = self._found, _new_parts(), 0
        for (bucket, reason, are_images), (digests, keys) in found.items():
            yield bucket, Digests(reason, are_images, bytes(digests), zlib.compress("\0".join(keys).encode()))


def _new_parts() -> defaultdict[tuple[int, str, bool], tuple[bytearray, list[str]]]:
    return defaultdict(lambda: (bytearray(), []))


def find_used(bucket: Iterable[Digests]) -> Summary:
    """What a summary lacks: how the counts of ignored files change, since references name some of a bucket's files.

    Those that are named count as their references alone. Of the others, images that should have been named get a
    reason of their own, and files that should describe one are unpaired. A file that was listed twice counts twice.
    """
    parts = list(bucket)
    named = {digest for part in parts if not part.reason for digest in _cut(part.digests)}
    changes: Counter[str] = Counter()
    alone: list[str] = []
    for part in (part for part in parts if part.reason):
        digests = list(_cut(part.digests))
        used = sum(map(named.__contains__, digests))
        changes[part.reason] -= used
        if part.are_images and part.reason == "taken_only_by_name":
            changes.update(taken_only_by_name=used - len(digests), without_annotation=len(digests) - used)
        keys = zlib.decompress(part.keys).decode().split("\0")
        alone += (key for digest, key in zip(digests, keys, strict=True) if key and digest not in named)
    found = Summary(listed=changes.total(), ignored=changes)
    found.add_unpaired("text file", alone)
    return found


def _cut(digests: bytes) -> Iterator[bytes]:
    return (digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES))


def settle_ignored(summary: Summary, changes: Iterable[Summary]) -> Summary:
    """The summary with what `find_used` found in each bucket."""
    settled = deepcopy(summary)
    for each in changes:
        settled.merge(each)
    return settled
