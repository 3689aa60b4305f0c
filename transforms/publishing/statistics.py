"""What the sidecars of a dataset add up to before it is published; one pass, in bounded memory.

The sidecars are read in the order given, so that the same dataset gives the same statistics wherever it was made.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter

import numpy as np

from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.sidecar_row import RejectedRow, Row, SidecarRow
from recordmill.storage.dataset_files import read_rows, shard_path
from recordmill.storage.temporary_files import DigestIndex, Digests
from recordmill.transforms.planning.key_hashes import hash_key

LOSSLESS = (".bmp", ".gif", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff")
"""How the names of files end whose formats keep every pixel, nearly always: sidecars do not say the format."""

REJECTED_EXAMPLES = 5
"""Rejected images that are kept of each reason."""

_CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A shard's sidecar: its split, and where it is."""

    split: str
    path: str


def list_sidecars(reports: Iterable[ShardReport], staging: str) -> list[Sidecar]:
    """The sidecars of shards in a staging folder, in the shards' order."""
    ordered = sorted(reports, key=attrgetter("place"))
    return [Sidecar(each.split, shard_path(staging, each.split, each.index, "jsonl")) for each in ordered]


@dataclass(slots=True)
class Reencoded:
    """Images whose bytes were changed: how many, the bytes of their files, and of their records."""

    images: int = 0
    before: int = 0
    after: int = 0

    def add(self, row: SidecarRow) -> None:
        """Counts one image."""
        self.images += 1
        self.before += row.bytes
        self.after += row.length


@dataclass(slots=True)
class Statistics:
    """The totals.

    Attributes:
        contents: the first 64 bits of each written image's SHA-256, in the rows' order.
        places: offset, length and hash of the key of each record, one after the other, in the same order.
        hashes: the difference hashes, in the same order, 8 bytes each; empty where they were not taken.
        written: the number of images of each sidecar.
        sizes: width and height of the images; of more than two different ones, two.
        channels: numbers of channels of the images.
        reencoded: images that were re-encoded.
        lossless: those of them in lossless formats, judging by their names.
        rejected: the keys of the first rejected references of each reason.
    """

    contents: DigestIndex = field(default_factory=DigestIndex)
    places: DigestIndex = field(default_factory=DigestIndex)
    hashes: Digests = field(default_factory=lambda: np.zeros(0, np.uint64))
    written: list[int] = field(default_factory=list)
    sizes: set[tuple[int, int]] = field(default_factory=set)
    channels: set[int] = field(default_factory=set)
    reencoded: Reencoded = field(default_factory=Reencoded)
    lossless: Reencoded = field(default_factory=Reencoded)
    rejected: dict[str, list[str]] = field(default_factory=dict)


def gather_statistics(sidecars: Iterable[Sidecar], seed: int) -> Statistics:
    """Reads all sidecars once.

    Args:
        sidecars: in the shards' order.
        seed: the dataset's, for the hashes in the index.

    Raises:
        OSError: a sidecar cannot be read.
    """
    found = Statistics()
    hashes = [found.hashes]
    for sidecar in sidecars:
        found.written.append(0)
        for rows in read_chunks(sidecar.path):
            written = [row for row in rows if isinstance(row, SidecarRow)]
            for row in rows if len(written) < len(rows) else ():
                if isinstance(row, RejectedRow) and row.rejected is not None:
                    found.rejected.setdefault(row.rejected, []).append(row.key)
                    del found.rejected[row.rejected][REJECTED_EXAMPLES:]
            hashes.append(_from_hex([row.difference_hash for row in written if row.difference_hash is not None]))
            found.contents.add(digests_of(written))
            found.written[-1] += len(written)
            places = [(row.offset, row.length, hash_key(seed, row.key).order) for row in written]
            found.places.add(np.array(places, np.uint64).reshape(-1))
            _look_at_images(found, [row for row in written if row.height and row.width])
    found.hashes = np.concatenate(hashes)
    return found


def read_chunks(path: str) -> Iterator[list[Row]]:
    """A sidecar's rows, some thousands at a time."""
    rows = read_rows(path)
    while chunk := list(islice(rows, _CHUNK)):
        yield chunk


def digests_of(rows: Iterable[SidecarRow]) -> Digests:
    """The first 64 bits of the SHA-256 of each row's image."""
    return _from_hex([row.sha256[:16] for row in rows])


def _from_hex(texts: list[str]) -> Digests:
    """16 hex digits each, as numbers."""
    return np.frombuffer(bytes.fromhex("".join(texts)), ">u8").astype(np.uint64)


def _look_at_images(found: Statistics, rows: Iterable[SidecarRow]) -> None:
    for row in rows:
        if len(found.sizes) < 2:
            found.sizes.add((row.width or 0, row.height or 0))
        found.channels.add(row.channels or 0)
        if "reencoded" in row.changes:
            found.reencoded.add(row)
            if row.key.lower().endswith(LOSSLESS):
                found.lossless.add(row)
