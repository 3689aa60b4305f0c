"""The summary of a listing: one small row, the same in whatever order its parts are added."""

import hashlib
from bisect import insort
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from schemas.image_ref import ImageRef
from transforms.hash_histogram import HashHistogram
from transforms.splitting import ImageSplitter

SAMPLE_SIZE = 32
"""How many images are kept to estimate sizes from."""

MESSAGES_KEPT = 20
"""How many warnings and problems are kept to be told; all are counted."""

_DIGEST_RANGE = 1 << 256


@dataclass(slots=True)
class SplitSummary:
    """What a split would hold: images by class, their bytes, and those by order hash."""

    classes: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    histogram: HashHistogram = field(default_factory=HashHistogram)

    @property
    def references(self) -> int:
        """How many images."""
        return self.classes.total()


@dataclass(slots=True)
class Summary:
    """What was listed.

    Attributes:
        listed: everything found: images, rejected and ignored things.
        ignored: things that are none of ours, by reason.
        rejected: things rejected where they were listed, by reason.
        left_out: images that `limit` or the fractions leave out, by reason.
        splits: the images to convert, by split.
        nearest: for each split the (distance, hash) of the distinct split hashes nearest to the middle of its range.
        digest: order-free digest of what was listed: sum of the SHA-256 of key, range, size, label and given split.
        sample: (order hash, key and place, reference) of some images, chosen by hash.
        warnings: things to be told, sorted; the first few.
        problems: things that fail the run, sorted; the first few.
    """

    listed: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    splits: dict[str, SplitSummary] = field(default_factory=dict)
    nearest: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    digest: int = 0
    sample: list[tuple[int, str, ImageRef]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def classes(self) -> Counter[str]:
        """Images to convert by class, over all splits."""
        return sum((split.classes for split in self.splits.values()), Counter())

    @property
    def references(self) -> int:
        """Images to convert."""
        return sum(split.references for split in self.splits.values())

    def add(self, ref: ImageRef, splitter: ImageSplitter) -> None:
        """Counts one reference."""
        if ref.status in ("warning", "fatal"):
            if ref.status == "fatal":
                _keep_lowest(self.problems, f"{ref.uri}: {ref.detail}", most=MESSAGES_KEPT)
            else:  # warnings become part of the marker, which names no place
                _keep_lowest(self.warnings, f"{ref.key}: {ref.detail}", most=MESSAGES_KEPT)
            return
        self.listed += 1
        if ref.status == "ignored":
            self.ignored[ref.reason] += 1
            return
        self.digest = (self.digest + _digest_of(ref)) % _DIGEST_RANGE
        if ref.status == "rejected":
            self.rejected[ref.reason] += 1
        else:
            self._place(ref, splitter)

    def _place(self, ref: ImageRef, splitter: ImageSplitter) -> None:
        hashes, split, left_out = splitter.place(ref)
        if left_out:
            self.left_out[left_out] += 1
        else:
            within = self.splits.get(split)
            if within is None:
                within = self.splits[split] = SplitSummary()
            within.classes[ref.label] += 1
            size = ref.length if ref.length >= 0 else ref.size
            within.bytes += size
            within.histogram.add(hashes.order, size)
            # The URI keeps two references of one key, which is an error told later, from being compared themselves.
            _keep_lowest(self.sample, (hashes.order, f"{ref.key}\0{ref.offset}\0{ref.uri}", ref), most=SAMPLE_SIZE)
        if left_out != "limit" and not ref.split:
            for name, distance in splitter.distances(hashes.split):
                _keep_lowest(self.nearest.setdefault(name, []), (distance, hashes.split), most=splitter.neighbours)

    def merge(self, other: "Summary", neighbours: int) -> None:
        """Adds another summary; `neighbours` is how many nearest hashes are kept for each split."""
        self.listed += other.listed
        self.digest = (self.digest + other.digest) % _DIGEST_RANGE
        self.ignored.update(other.ignored)
        self.rejected.update(other.rejected)
        self.left_out.update(other.left_out)
        for name, split in other.splits.items():
            within = self.splits.setdefault(name, SplitSummary())
            within.classes.update(split.classes)
            within.bytes += split.bytes
            within.histogram.merge(split.histogram)
        for name, near in other.nearest.items():
            _keep_lowest(self.nearest.setdefault(name, []), *near, most=neighbours)
        _keep_lowest(self.sample, *other.sample, most=SAMPLE_SIZE)
        _keep_lowest(self.warnings, *other.warnings, most=MESSAGES_KEPT)
        _keep_lowest(self.problems, *other.problems, most=MESSAGES_KEPT)


def _digest_of(ref: ImageRef) -> int:
    fields = (ref.key, ref.offset, ref.length, ref.size, ref.label, ref.group, ref.split, ref.features, ref.reason)
    text = "\0".join(map(str, fields))
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "big")


def _keep_lowest(kept: list[Any], *items: Any, most: int) -> None:
    """Adds items to a sorted list of distinct ones and cuts it to its lowest."""
    for item in items:
        if len(kept) >= most and item >= kept[-1]:
            continue
        if item not in kept:
            insort(kept, item)
            del kept[most:]
