"""The summary of a listing: small, and the same in whatever order its parts are added.

Its histograms of 64-bit hashes can be merged in any order, and find even cut points.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from typing import Any, Self

from recordmill.annotations.annotation import AnnotationKind, ListedAnnotations
from recordmill.annotations.kinds import KINDS, list_stored
from recordmill.schemas.attribute_words import AttributeTallies
from recordmill.schemas.dataset.totals import Totals
from recordmill.schemas.digests import (
    HASH_BITS,
    HASH_RANGE,
    KeyHashes,
    add_digests,
    newest_version,
)
from recordmill.schemas.image_ref import ClassNames, ImageRef, Notice
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.rejection import WITHOUT_AN_IMAGE
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.transforms.inputs.listed_pairs import SecondImages
from recordmill.transforms.inputs.unclaimed_files import Unclaimed
from recordmill.transforms.planning.splitting import ImageSplitter

MAX_BINS = 1 << 16


@dataclass(slots=True)
class HashHistogram(Totals):
    """Bytes by hash range.

    Attributes:
        shift: how many low bits of a hash are ignored; 0 while exact.
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
        """Adds another histogram's counts to this one; the other is not changed."""
        if other.shift > self.shift:
            self._coarsen(other.shift)
        for place, weight in other.bins.items():
            self.add(place << other.shift, weight)

    def _coarsen(self, shift: int) -> None:
        """Ignores this many low bits, or more: as few as leave at most `MAX_BINS` bins."""
        self._drop_bits(shift - self.shift)
        finer = self.bins
        if len(finer) > MAX_BINS:  # the first time, dozens of bits are too many to try each
            downs = range(1, HASH_BITS - self.shift)
            least = bisect_left(downs, True, key=lambda down: _are_few(finer, down))
            self._drop_bits(1 + least)

    def _drop_bits(self, down: int) -> None:
        finer, coarse = self.bins, dict[int, int]()
        for place, weight in finer.items():
            place >>= down
            coarse[place] = coarse.get(place, 0) + weight
        self.shift, self.bins = self.shift + down, coarse

    def cut(self, parts: int) -> list[int]:
        """Cuts the hashes into ranges of about equal weight, none of them empty.

        Args:
            parts: how many ranges are wanted; at least 1.

        Returns:
            The first hash of each range, ascending, starting with 0: as many as wanted, or one per
            occupied bin if there are fewer of them.
        """
        places = sorted(self.bins)
        parts = max(1, min(parts, len(places)))
        # The weight below each place.
        before = [
            0,
            *accumulate(self.bins[place] for place in places),
        ]
        starts, index = [0], 0
        for part in range(1, parts):
            # A range ends when its share of the weight is reached, or when each later range needs
            # one of the bins left.
            due = bisect_left(before, -(-before[-1] * part // parts))
            index = max(index + 1, min(due, len(places) - parts + part))
            starts.append(places[index] << self.shift)
        return starts

    def cut_equally(self, parts: int) -> list[int]:
        """Cuts the hashes into ranges of equal width, whatever their weight.

        Empty ranges are joined to others.

        Args:
            parts: how many ranges are wanted; a power of two.

        Returns:
            The first hash of each range, ascending, starting with 0: no more than wanted.
        """
        width = max(HASH_RANGE // parts, 1 << self.shift)
        starts = sorted({(place << self.shift) // width * width for place in self.bins})
        return [0, *starts[1:]]


def _are_few(places: Iterable[int], down: int) -> bool:
    """Returns whether places without their last bits are at most `MAX_BINS`."""
    return len({place >> down for place in places}) <= MAX_BINS


def range_of(starts: Sequence[int], number: int) -> int:
    """Returns the index of the range from `HashHistogram.cut` that a hash falls into."""
    return bisect_right(starts, number) - 1


SAMPLE_SIZE = 32
"""Images in the sample from which sizes are estimated."""

MOST_UNCLAIMED = 100
"""The most kinds of unclaimed files that are kept."""

MESSAGES_KEPT = 20
"""The most warnings, and the most problems, that are kept."""


@dataclass(slots=True)
class SplitSummary(Totals):
    """The images of a split: their number by class, and their bytes, also by order hash."""

    classes: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    histogram: HashHistogram = field(default_factory=HashHistogram)

    @property
    def references(self) -> int:
        """The number of images."""
        return self.classes.total()


@dataclass(slots=True)
class Summary(Totals):
    """The totals of a listing.

    Attributes:
        listed: everything found: images, rejected and ignored things.
        ignored: things that are not part of the input, by reason.
        rejected: things rejected by the listing, by reason.
        rejected_examples: one example per reason, formatted for messages.
        left_out: images that `limit` or the fractions leave out, by reason.
        splits: the images to convert, by split.
        nearest: for each split the (distance, hash) of the distinct split hashes nearest to the
            middle of its range.
        labels: all labels, even of images that are left out: a trial run of a few images has the
            full run's ids.
        numbers: the numbers that sources announced for classes, by class.
        skeleton: pairs of names of parts of objects that a line joins.
        annotations: annotations of the images to convert, and of those that were rejected when
            listed, by kind.
        attributes: the values of attributes of objects, even of images that are left out.
        naming_files: files that name images, such as annotations and manifests.
        not_stored: values that have no place in a record, by kind.
        respelled: images that annotations name otherwise.
        respelled_examples: the first of them, under the empty string.
        renamed: the source's names of classes of images that have new names.
        lost_labels: rows of tables that were rejected when listed, by their label.
        left_out_labels: the labels of images that are left out.
        noted: images by what is peculiar about them; see `Notice.status`.
        unclaimed: files that no source claims and that may carry labels, by role and extension.
        second_images: images that belong to others.
        unnamed_in_folders: images that no table names, by folder; see `OtherClasses`.
        named_in_folders: images that tables name, by the same folders.
        digest: the sum of `schemas.digests.digest_of` of everything listed and not ignored.
        planned_digest: the same for everything that goes to shards: images that are not left out,
            and rejected things.
        versions: the sum of `version_digest_of` of the same things as in `digest`.
        newest: the latest modification time of these files, in nanoseconds; 0 if none has one.
        sample: (order hash, `repr` of the reference, reference) of some images, chosen by hash.
        warnings: messages for the user, sorted; the first few.
        problems: things that fail the run, sorted; the first few.
        problems_found: the number of all problems.
    """

    listed: int = 0
    ignored: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    splits: dict[str, SplitSummary] = field(default_factory=lambda: defaultdict(SplitSummary))
    nearest: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    labels: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)
    skeleton: set[tuple[str, str]] = field(default_factory=set)
    annotations: dict[str, ListedAnnotations] = field(
        default_factory=lambda: defaultdict(ListedAnnotations)
    )
    attributes: AttributeTallies = field(default_factory=AttributeTallies)
    naming_files: int = 0
    not_stored: Counter[str] = field(default_factory=Counter)
    respelled: int = 0
    respelled_examples: dict[str, str] = field(default_factory=dict)
    renamed: set[str] = field(default_factory=set)
    lost_labels: Counter[str] = field(default_factory=Counter)
    left_out_labels: set[str] = field(default_factory=set)
    noted: Counter[str] = field(default_factory=Counter)
    unclaimed: list[Unclaimed] = field(default_factory=list)
    second_images: list[SecondImages] = field(default_factory=list)
    unnamed_in_folders: Counter[str] = field(default_factory=Counter)
    named_in_folders: Counter[str] = field(default_factory=Counter)
    digest: int = 0
    planned_digest: int = 0
    versions: int = 0
    newest: int = 0
    sample: list[tuple[int, str, ImageRef]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    problems_found: int = 0
    rejected_examples: dict[str, str] = field(default_factory=dict)

    @property
    def classes(self) -> Counter[str]:
        """Images to convert by class, over all splits."""
        return sum((split.classes for split in self.splits.values()), Counter())

    @property
    def source_names(self) -> set[str]:
        """The names that the source gives classes, as far as they were listed."""
        names = self.labels | self.renamed | self.lost_labels.keys() | self.numbers.keys()
        for listed in self.annotations.values():
            names.update(str(label) for label in (*listed.labels, *listed.lost))
        return names

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """The names of the parts of each annotation by kind, of those that have parts."""
        found = {kind: each.order_parts() for kind, each in self.annotations.items()}
        return {kind: names for kind, names in found.items() if names}

    def have_same_parts(self) -> bool:
        """Returns whether each image with annotations has the same parts, or none has parts."""
        most = max((each.images for each in self.annotations.values()), default=0)
        named = [each for each in self.annotations.values() if each.parts]
        return all(len(each.parts) == 1 and each.images == most for each in named)

    @property
    def references(self) -> int:
        """Images to convert."""
        return sum(split.references for split in self.splits.values())

    def list_classified(self) -> Iterator[tuple[str, ListedAnnotations]]:
        """Yields the kinds of annotations that have classes in place of their images', by name."""
        for name, listed in self.annotations.items():
            if KINDS[name].has_classes:
                yield name, listed

    def list_unstored(self, layout: ExampleLayout) -> Iterator[tuple[AnnotationKind, int]]:
        """Yields the kinds of annotations that Examples have no place for, and their numbers."""
        # A convention with a place for attributes has no feature of one if none can be stored.
        places = (each.field for each in layout.convention.attribute_features)
        stored = list_stored({*layout.fields, *places})
        for name, kind in KINDS.items():
            if kind not in stored and name in self.annotations and self.annotations[name].total:
                yield kind, self.annotations[name].total

    def add(self, batch: ReferenceBatch, splitter: ImageSplitter) -> None:
        """Counts the contents of a batch."""
        counted, hashes = batch.counted, batch.hash_with(splitter.seed)
        digests = list(hashes.iterate_digests())
        self.listed += len(counted)
        self.digest = add_digests(self.digest, *digests)
        self.versions = add_digests(self.versions, *hashes.iterate_versions())
        others = chain.from_iterable(ref.files for ref in counted)
        self.newest = max(self.newest, newest_version(counted), newest_version(others))
        self.labels.update(ref.label for ref in batch.refs)
        for ref in batch.refs:
            for name, packed in ref.annotations:
                self.attributes.add(KINDS[name].list_attributes(packed))
        planned = [
            digest
            for ref, keys, digest in zip(counted, hashes.iterate_keys(), digests, strict=True)
            if ref.status == "rejected" or (not ref.status and self._place(ref, keys, splitter))
        ]
        self.planned_digest = add_digests(self.planned_digest, *planned)
        for notice in batch.notices:
            self._add_notice(notice)
        for classes in batch.classes:
            self._announce(classes)

    def _add_notice(self, notice: Notice) -> None:
        reason = notice.reason
        match notice.status:
            case "ignored":
                self.listed += 1
                self.ignored[reason] += 1
            case "left_out":
                self.left_out[reason] += 1
                self.labels.add(notice.label)
                self.left_out_labels.add(notice.label)
            case "rejected":
                self.rejected[reason] += 1
                self._add_annotations(notice)
                self.rejected_examples = _keep_first(
                    self.rejected_examples, {reason: f"{notice.key} ({notice.detail:.500})"}
                )
            case "unclaimed":
                self.unclaimed = _keep_lowest(
                    self.unclaimed, Unclaimed.of_notice(notice), most=MOST_UNCLAIMED
                )
            case "second_images":
                self.second_images = _keep_lowest(
                    self.second_images, SecondImages.of_notice(notice), most=MOST_UNCLAIMED
                )
            case "fatal":
                self.problems_found += 1
                self.problems = _keep_lowest(
                    self.problems, f"{notice.uri}: {notice.detail}", most=MESSAGES_KEPT
                )
            case "warning":  # warnings become part of the marker, which contains no locations
                # For a whole input, its name, or empty if there is only one.
                place = notice.key.rstrip("/")
                self.warnings = _keep_lowest(
                    self.warnings,
                    f"{place}: {notice.detail}".removeprefix(": "),
                    most=MESSAGES_KEPT,
                )
            case _:
                self._add_remark(notice)

    def _add_remark(self, notice: Notice) -> None:
        """Adds what is worth a note, but is in no ledger."""
        match notice.status:
            case "names_images":
                self.naming_files += notice.count
            case "not_stored":
                self.not_stored[notice.reason] += notice.count
            case "respelled":
                self.respelled += notice.count
                self.respelled_examples = _keep_first(self.respelled_examples, {"": notice.detail})
            case "lost_label":
                self.lost_labels[notice.reason] += notice.count
                self.labels.add(notice.reason)
            case "renamed":
                self.renamed.add(notice.reason)
            case "noted":
                self.noted[notice.reason] += notice.count

    def _announce(self, classes: ClassNames) -> None:
        """Adds classes that a source names.

        A class with two numbers, or a number with two classes, is a problem.
        """
        self.labels.update(classes.names)
        self.skeleton.update(classes.skeleton)
        names = {number: name for name, number in self.numbers.items()}
        # Labels may lack numbers.
        for name, number in zip(classes.names, classes.numbers, strict=False):
            if (
                self.numbers.setdefault(name, number) != number
                or names.setdefault(number, name) != name
            ):
                self.problems_found += 1
                text = (
                    f"class {name!r} has number {number}, which contradicts what another file "
                    "says of it: give each class one number in all files"
                )
                self.problems = _keep_lowest(
                    self.problems, f"{classes.uri}: {text}".removeprefix(": "), most=MESSAGES_KEPT
                )

    def _place(self, ref: ImageRef, hashes: KeyHashes, splitter: ImageSplitter) -> bool:
        """Counts an image in its split, or as left out; returns whether it has a split."""
        _, split, left_out = splitter.place(ref, hashes)
        if left_out:
            self.left_out[left_out] += 1
            self.left_out_labels.add(ref.label)
        else:
            within = self.splits[split]
            within.classes[ref.label] += 1
            if ref.annotations:
                self._add_annotations(ref)
            size = ref.expected_bytes
            within.bytes += size
            within.histogram.add(hashes.order, size)
            if len(self.sample) < SAMPLE_SIZE or hashes.order <= self.sample[-1][0]:
                # Compared by text, because references with the same key (reported later) have no
                # order.
                image = (hashes.order, repr(ref), ref)
                self.sample = _keep_lowest(self.sample, image, most=SAMPLE_SIZE)
            if not ref.split:
                self._keep_nearest(hashes.split, splitter)
        return not left_out

    def _add_annotations(self, ref: ImageRef) -> None:
        """Counts the annotations that an image carries, or something rejected."""
        for name, packed in ref.annotations:
            found, own = KINDS[name].list_labels(packed), self.annotations[name]
            own.total += found.total
            own.images += 1
            own.add_parts(found.parts)
            if not ref.status:
                own.labels.update(found.labels)
            elif ref.reason in WITHOUT_AN_IMAGE:
                own.lost.update(found.labels)

    def _keep_nearest(self, number: int, splitter: ImageSplitter) -> None:
        most = len(splitter.middles) + 1
        for name, middle in splitter.middles:
            near = self.nearest[name]
            distance = abs(number - middle)
            if len(near) < most or distance <= near[-1][0]:  # few are
                self.nearest[name] = _keep_lowest(near, (distance, number), most=most)

    def merge(self, other: Self) -> None:
        """Adds another summary of the same listing.

        The order does not matter, so every runner gets the same result.
        """
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("digest", "planned_digest", "versions"):
            setattr(self, name, add_digests(getattr(self, name), getattr(other, name)))
        self.newest = max(self.newest, other.newest)
        self.labels |= other.labels
        self.left_out_labels |= other.left_out_labels
        self.renamed |= other.renamed
        self.skeleton |= other.skeleton
        self._announce(ClassNames("", tuple(other.numbers), tuple(other.numbers.values())))
        for name in ("rejected_examples", "respelled_examples"):
            setattr(self, name, _keep_first(getattr(self, name), getattr(other, name)))
        for kind, listed in other.annotations.items():
            self.annotations[kind].merge(listed)
        self.attributes.merge(other.attributes)
        for split_name, split in other.splits.items():
            self.splits[split_name].merge(split)
        for split_name, near in other.nearest.items():
            most = len(other.nearest) + 1
            self.nearest[split_name] = _keep_lowest(self.nearest[split_name], *near, most=most)
        for name, most in (
            ("sample", SAMPLE_SIZE),
            ("unclaimed", MOST_UNCLAIMED),
            ("second_images", MOST_UNCLAIMED),
            ("warnings", MESSAGES_KEPT),
            ("problems", MESSAGES_KEPT),
        ):
            lowest = _keep_lowest(getattr(self, name), *getattr(other, name), most=most)
            setattr(self, name, lowest)


_SUMS = (
    "listed",
    "ignored",
    "rejected",
    "left_out",
    "lost_labels",
    "naming_files",
    "problems_found",
    "not_stored",
    "respelled",
    "noted",
    "unnamed_in_folders",
    "named_in_folders",
)
"""The attributes that `merge` adds with `+`."""


def _keep_first(kept: Mapping[Any, Any], others: Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns `kept` with `others`; under each key, the lower value stays."""
    return {**kept, **{key: min(each, kept.get(key, each)) for key, each in others.items()}}


def _keep_lowest(kept: Sequence[Any], *items: Any, most: int) -> list[Any]:
    """Returns the lowest `most` of a sorted list of distinct items and of further items."""
    lowest = list(kept)
    for item in items:
        if (len(lowest) < most or item < lowest[-1]) and item not in lowest:
            insort(lowest, item)
            del lowest[most:]
    return lowest
