"""The summary of a listing: one small row, the same in whatever order its parts are added.

A histogram over 64-bit hashes that merges in any order and finds even cut points.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Self

from recordmill.schemas.dataset.totals import Totals
from recordmill.schemas.digests import HASH_BITS, HASH_RANGE, add_digests, digest_of, version_digest_of
from recordmill.schemas.image_ref import ClassNames, ImageRef, Notice
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.reference_boxes import list_boxes
from recordmill.schemas.rejection import IGNORED, LEFT_OUT
from recordmill.transforms.planning.splitting import ImageSplitter

MAX_BINS = 1 << 16


@dataclass(slots=True)
class HashHistogram(Totals):
    """Bytes by hash range.

    Attributes:
        shift: low bits of a hash that a bin ignores; 0 while exact.
        bins: bytes by `hash >> shift`.
    """

    shift: int = 0
    bins: dict[int, int] = field(default_factory=dict)

    def add(self, number: int, weight: int) -> None:
        """Counts one hash with its weight in bytes."""
        place = number >> self.shift
        self.bins[place] = self.bins.get(place, 0) + weight
        if len(self.bins) > MAX_BINS:
            self._coarsen(self.shift + 1)

    def merge(self, other: Self) -> None:
        """Adds another histogram's counts to this one; the other is left as it is."""
        if other.shift > self.shift:
            self._coarsen(other.shift)
        down = self.shift - other.shift
        for place, weight in other.bins.items():
            self.bins[place >> down] = self.bins.get(place >> down, 0) + weight
        if len(self.bins) > MAX_BINS:
            self._coarsen(self.shift + 1)

    def _coarsen(self, shift: int) -> None:
        while True:
            down, self.shift = shift - self.shift, shift
            coarse: dict[int, int] = {}
            for place, weight in self.bins.items():
                coarse[place >> down] = coarse.get(place >> down, 0) + weight
            self.bins = coarse
            if len(coarse) <= MAX_BINS or shift == HASH_BITS:
                return
            shift += 1

    def cut(self, parts: int) -> list[int]:
        """Cuts the hashes into ranges of about equal weight, none of them empty.

        Args:
            parts: how many ranges are wanted; at least 1.

        Returns:
            The first hash of each range, ascending, the first of them 0: as many as wanted, or one an occupied bin
            where there are fewer bins.
        """
        places = sorted(self.bins)
        parts = max(1, min(parts, len(places)))
        before = [0, *accumulate(self.bins[place] for place in places)]  # the weight below each place
        starts, index = [0], 0
        for part in range(1, parts):
            # A range ends where its share of the weight is reached, or where each later range needs a bin of its own.
            due = bisect_left(before, -(-before[-1] * part // parts))
            index = max(index + 1, min(due, len(places) - parts + part))
            starts.append(places[index] << self.shift)
        return starts

    def cut_equally(self, parts: int) -> list[int]:
        """Cuts all hashes into equal ranges, whatever their weight; those without a hash are joined to others.

        Args:
            parts: how many ranges are wanted; a power of two.

        Returns:
            The first hash of each range, ascending, the first of them 0: no more than wanted.
        """
        width = max(HASH_RANGE // parts, 1 << self.shift)
        starts = sorted({(place << self.shift) // width * width for place in self.bins})
        return [0, *starts[1:]]


def range_of(starts: list[int], number: int) -> int:
    """The index of the range, of those `HashHistogram.cut` gave, that a hash falls into."""
    return bisect_right(starts, number) - 1


SAMPLE_SIZE = 32
"""How many images are kept to estimate sizes from."""

MESSAGES_KEPT = 20
"""How many warnings and problems are kept for the report."""


MOST_NUMBERED = 100_000
"""Classes of boxes that are counted by their numbers; a broken file could number millions."""


@dataclass(slots=True)
class SplitSummary(Totals):
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
        ignored: things that are not part of the input, by reason.
        rejected: things rejected where they were listed, by reason.
        rejected_such: by reason the first of them by key, in words.
        left_out: images that `limit` or the fractions leave out, by reason.
        splits: the images to convert, by split.
        nearest: for each split the (distance, hash) of the distinct split hashes nearest to the middle of its range.
        labels: every label met, also of images that are left out: a trial run of a few images has the full run's ids.
        numbers: classes that sources announced by the numbers that they give them.
        boxes: boxes of the images to convert, and of nothing else.
        box_labels: these boxes by their label; numbers above `MOST_NUMBERED` are counted together.
        first_boxes: for each such label the first box by key, as (key, place, words).
        naming_files: files that name images, as annotations and manifests do.
        digest: `schemas.digests.digest_of` all that was listed and not ignored, added up.
        planned_digest: the same of what goes to shards: images that are not left out, and rejected things.
        versions: `version_digest_of` the same as in `digest`, added up.
        newest: the last time, in nanoseconds, at which one of these files was modified; 0 if none has a time.
        sample: (order hash, key and place, reference) of some images, chosen by hash.
        warnings: messages for the user, sorted; the first few.
        problems: things that fail the run, sorted; the first few.
        problems_found: how many there are.
        unpaired: images without the text file that describes their boxes, and text files without an image.
        unpaired_such: of both the first by key.
    """

    listed: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    splits: dict[str, SplitSummary] = field(default_factory=dict)
    nearest: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    boxes: int = 0
    box_labels: Counter[str | int] = field(default_factory=Counter)
    first_boxes: dict[str | int, tuple[str, int, str]] = field(default_factory=dict)
    naming_files: int = 0
    digest: int = 0
    planned_digest: int = 0
    versions: int = 0
    newest: int = 0
    sample: list[tuple[int, str, ImageRef]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problems_found: int = 0
    rejected_such: dict[str, str] = field(default_factory=dict)
    unpaired: Counter[str] = field(default_factory=Counter)
    unpaired_such: dict[str, str] = field(default_factory=dict)

    @property
    def classes(self) -> Counter[str]:
        """Images to convert by class, over all splits."""
        return sum((split.classes for split in self.splits.values()), Counter())

    @property
    def references(self) -> int:
        """Images to convert."""
        return sum(split.references for split in self.splits.values())

    def add(self, batch: ReferenceBatch, splitter: ImageSplitter) -> None:
        """Counts what is in a batch."""
        digests = self._count(batch.refs)
        self.labels.update(ref.label for ref in batch.refs)
        self.add_unpaired("image", [ref.key for ref in batch.refs if ref.lacks_file])
        planned = [digest for digest, ref in zip(digests, batch.refs, strict=True) if self._place(ref, splitter)]
        self.planned_digest = add_digests(self.planned_digest, *planned)
        for notice in batch.notices:
            self._add_notice(notice)
        for classes in batch.classes:
            self._announce(classes)

    def add_unpaired(self, what: str, keys: Sequence[str]) -> None:
        """Counts files that lack the other of two."""
        if keys:
            self.unpaired[what] += len(keys)
            _keep_first(self.unpaired_such, {what: min(keys)})

    def _count(self, refs: Sequence[ImageRef]) -> list[int]:
        """Counts what is not ignored; gives the digests, added up in one go: it is done for every image."""
        digests = [digest_of(ref) for ref in refs]
        self.listed += len(digests)
        self.digest = add_digests(self.digest, *digests)
        self.versions = add_digests(self.versions, *map(version_digest_of, refs))
        self.newest = max([self.newest, *(int(ref.version) for ref in refs if ref.version.isdigit())])
        return digests

    def _add_notice(self, notice: Notice) -> None:
        reason = notice.reason
        match notice.status:
            case "ignored":
                if reason not in IGNORED:
                    raise ValueError(f"{reason!r} is not a reason to ignore: add it to IGNORED, with its meaning")
                self.listed += 1
                self.ignored[reason] += 1
            case "left_out":
                if reason not in LEFT_OUT:
                    raise ValueError(f"{reason!r} is not a reason to leave out: add it to LEFT_OUT, with its meaning")
                self._count([notice])
                self.left_out[reason] += 1
                self.labels.add(notice.label)
            case "rejected":
                self.planned_digest = add_digests(self.planned_digest, *self._count([notice]))
                self.rejected[reason] += 1
                _keep_first(self.rejected_such, {reason: f"{notice.key} ({notice.detail:.500})"})
            case "names_images":
                self.naming_files += notice.count
            case "fatal":
                self.problems_found += 1
                _keep_lowest(self.problems, f"{notice.uri}: {notice.detail}", most=MESSAGES_KEPT)
            case "warning":  # warnings become part of the marker, which names no place
                place = notice.key.rstrip("/")  # empty, or the name of one of several, for an input itself
                _keep_lowest(self.warnings, f"{place}: {notice.detail}".removeprefix(": "), most=MESSAGES_KEPT)

    def _announce(self, classes: ClassNames) -> None:
        """Takes in classes that a source names; the same class has one number, and the same number one class."""
        self.labels.update(classes.names)
        if not classes.numbers:
            return
        names = {number: name for name, number in self.numbers.items()}
        for name, number in zip(classes.names, classes.numbers, strict=True):
            if self.numbers.setdefault(name, number) != number or names.setdefault(number, name) != name:
                self.problems_found += 1
                text = f"class {name!r} has number {number}, which contradicts what another file says of it"
                _keep_lowest(self.problems, f"{classes.uri}: {text}".removeprefix(": "), most=MESSAGES_KEPT)

    def _place(self, ref: ImageRef, splitter: ImageSplitter) -> bool:
        """Counts an image to its split, or as left out; says whether it has a split."""
        hashes, split, left_out = splitter.place(ref)
        if left_out:
            self.left_out[left_out] += 1
        else:
            within = self.splits.get(split)
            if within is None:
                within = self.splits[split] = SplitSummary()
            within.classes[ref.label] += 1
            if ref.features:
                self._count_boxes(ref)
            size = ref.expected_bytes
            within.bytes += size
            within.histogram.add(hashes.order, size)
            if len(self.sample) < SAMPLE_SIZE or hashes.order <= self.sample[-1][0]:
                # The text keeps two references of one key, an error reported later, from being compared themselves.
                _keep_lowest(self.sample, (hashes.order, repr(ref), ref), most=SAMPLE_SIZE)
            if not ref.split:
                self._keep_nearest(hashes.split, splitter)
        return not left_out

    def _count_boxes(self, ref: ImageRef) -> None:
        """Counts an image's boxes."""
        listed, dropped = list_boxes(ref)
        boxes = len(listed) + dropped
        self.boxes += boxes
        labels = [min(each, MOST_NUMBERED) if isinstance(each, int) else each for each in listed]
        self.box_labels.update(labels)
        for label in set(labels):
            first = self.first_boxes.get(label)
            if first is None or ref.key < first[0]:
                place = labels.index(label) + 1
                self.first_boxes[label] = (ref.key, place, f"box {place} of {boxes} of {ref.key} (class {label})")

    def _keep_nearest(self, number: int, splitter: ImageSplitter) -> None:
        most = len(splitter.middles) + 1
        for name, middle in splitter.middles:
            near = self.nearest.setdefault(name, [])
            distance = abs(number - middle)
            if len(near) < most or distance <= near[-1][0]:  # few are
                _keep_lowest(near, (distance, number), most=most)

    def merge(self, other: "Summary") -> None:
        """Adds another summary of the same listing."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("digest", "planned_digest", "versions"):
            setattr(self, name, add_digests(getattr(self, name), getattr(other, name)))
        self.newest = max(self.newest, other.newest)
        self.labels |= other.labels
        self._announce(ClassNames("", tuple(other.numbers), tuple(other.numbers.values())))
        _keep_first(self.first_boxes, other.first_boxes)
        _keep_first(self.rejected_such, other.rejected_such)
        _keep_first(self.unpaired_such, other.unpaired_such)
        for split_name, split in other.splits.items():
            self.splits.setdefault(split_name, SplitSummary()).merge(split)
        for split_name, near in other.nearest.items():
            _keep_lowest(self.nearest.setdefault(split_name, []), *near, most=len(other.nearest) + 1)
        _keep_lowest(self.sample, *other.sample, most=SAMPLE_SIZE)
        _keep_lowest(self.warnings, *other.warnings, most=MESSAGES_KEPT)
        _keep_lowest(self.problems, *other.problems, most=MESSAGES_KEPT)


_SUMS = (
    *("listed", "ignored", "rejected", "left_out", "boxes", "box_labels", "naming_files", "problems_found"),
    "unpaired",
)
"""What merged summaries simply add up."""


def _keep_first(kept: dict[Any, Any], others: Mapping[Any, Any]) -> None:
    """Takes in others; of two under one key, the lower is kept."""
    for key, each in others.items():
        kept[key] = min(each, kept.get(key, each))


def _keep_lowest(kept: list[Any], *items: Any, most: int) -> None:
    """Adds items to a sorted list of distinct ones and cuts it to its lowest."""
    for item in items:
        if len(kept) >= most and item >= kept[-1]:
            continue
        if item not in kept:
            insort(kept, item)
            del kept[most:]
