"""Which of the files that a listing ignores are used all the same, since references name them.

A file and the reference that names it may be met by different workers. Digests of both meet in buckets, and one worker
adds up a bucket: no process holds the digests of more than one.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
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
    """

    reason: str
    are_images: bool
    digests: bytes


class FileDigests:
    """Gathers the digests of some references."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source
        self._held = 0
        self._found: defaultdict[tuple[int, str, bool], bytearray] = defaultdict(bytearray)

    def add(self, batch: ReferenceBatch) -> Iterator[tuple[int, Digests]]:
        """Takes in what was listed; gives everything by bucket when much is held."""
        for ref in (*batch.refs, *batch.notices):
            if ref.status == "ignored":
                self._add(ref.uri, ref.reason, bool(IMAGE_NAME.search(ref.uri)))
            elif ref.status in ("", "rejected", "left_out"):
                for uri in self._source.uses(ref):
                    self._add(uri, "", are_images=False)
        return self.let_go() if self._held >= MOST_HELD else iter(())

    def _add(self, uri: str, reason: str, are_images: bool) -> None:
        path = os.path.abspath(uri) if storage.is_local(uri) else uri  # data may name the whole path
        digest = blake2b(path.encode(), digest_size=DIGEST_BYTES).digest()
        self._found[digest[0] % BUCKETS, reason, are_images] += digest
        self._held += 1

    def let_go(self) -> Iterator[tuple[int, Digests]]:
        """All of them by bucket; nothing is kept."""
        found, self._found, self._held = self._found, defaultdict(bytearray), 0
        for (bucket, reason, are_images), digests in found.items():
            yield bucket, Digests(reason, are_images, bytes(digests))


def find_used(bucket: Iterable[Digests]) -> dict[str, int]:
    """How the counts of ignored files change, by reason, since references name some of a bucket's files.

    Those that are named count as their references alone. Of the others, images that should have been named get a
    reason of their own. A file that was listed twice counts twice.
    """
    parts = list(bucket)
    named = {digest for part in parts if not part.reason for digest in _cut(part.digests)}
    changes: Counter[str] = Counter()
    for part in (part for part in parts if part.reason):
        digests = list(_cut(part.digests))
        used = sum(map(named.__contains__, digests))
        changes[part.reason] -= used
        if part.are_images and part.reason == "taken_only_by_name":
            changes.update(taken_only_by_name=used - len(digests), without_annotation=len(digests) - used)
    return changes


def _cut(digests: bytes) -> Iterator[bytes]:
    return (digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES))


def settle_ignored(summary: Summary, changes: Iterable[Mapping[str, int]]) -> Summary:
    """The summary with what `find_used` found in each bucket."""
    ignored, listed = Counter(summary.ignored), summary.listed
    for each in changes:
        ignored.update(each)
        listed += sum(each.values())
    return replace(summary, ignored=+ignored, listed=listed)
