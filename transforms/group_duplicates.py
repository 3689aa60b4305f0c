"""GroupDuplicates: keeps duplicates in one split, or drops all but one.

Duplicates are images with the same bytes, or images that look alike. To find them, every image is
read once more before anything is planned, unless its source or an earlier dataset provides digests.
To find images that look alike, each is also decoded. Difference hashes are cut into six bands: if
two of them differ in at most five bits, they share a band, so only hashes that share one are
compared.
"""

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import BoundedSemaphore
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam import coders
from apache_beam.pvalue import AsIter, AsSingleton
from apache_beam.transforms.combiners import ToList

from recordmill.annotations.kinds import KINDS
from recordmill.imaging import prepare_image
from recordmill.schemas.formatting import plural_of, show_names
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.rejection import Exclusions, Rejected
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.transforms.planning.earlier_dataset import EarlierDatasets, ReusableDataset
from recordmill.transforms.publishing.duplicates import are_distinctive, find_near_pairs
from recordmill.transforms.records.earlier_datasets import find_known_digest
from recordmill.transforms.records.exclude_images import digest_file, find_lines
from recordmill.transforms.records.image_functions import FunctionError, make_hooks
from recordmill.transforms.shards.resources import available_processors

READERS = 16
"""Images that one worker thread reads at once: they wait for the store, not for a processor."""

CHUNK = 256

BANDS = (0, 11, 22, 33, 44, 54, 64)
"""The first bit of each band of a difference hash, and the end."""

MOST_JOINED, LARGEST_SHARE = 10, 0.01
"""Images, and share of all images, that may be joined as near-duplicates; a run that exceeds both
fails."""

MOST_COMPARISONS = 1_000_000_000
"""The most comparisons within one band; if they do not suffice, all hashes in the band count as
near-duplicates."""

EXAMPLES = 3
"""Images of a chain that an error names."""

_LOOK = "dhash:"


@dataclass(frozen=True, slots=True)
class HashedImages:
    """A difference hash, and the images that have it.

    Attributes:
        hash: the hash.
        group: one of the images' groups.
        images: the number of images.
        keys: the first of their keys.
    """

    hash: int
    group: str
    images: int
    keys: list[str]


coders.registry.register_coder(HashedImages, coders.PickleCoder)


def link_groups(linked: Iterable[Sequence[Any]]) -> dict[Any, Any]:
    """Joins groups that are linked, directly or through others.

    Args:
        linked: groups that belong together: strings or numbers.

    Returns:
        For each of these groups, the first (by code point) of all that it is joined with.
    """
    parents: dict[Any, Any] = {}

    def find(group: Any) -> Any:
        while (parent := parents.setdefault(group, group)) != group:
            parents[group] = group = parents[parent]
        return group

    for groups in linked:
        roots = sorted({find(group) for group in groups})
        for root in roots[1:]:
            parents[root] = roots[0]
    return {group: find(group) for group in list(parents)}


def link_looks(
    band: tuple[int, int], looks: Iterable[HashedImages]
) -> Iterator[tuple[HashedImages, HashedImages]]:
    """Links the hashes that share a band and are near each other, with as few links as possible.

    A hash of several images is linked to itself. Pairs that share an earlier band or have the same
    group are left out.

    Args:
        band: its number and its bits.
        looks: all hashes with that band.
    """
    ordered = sorted(looks, key=lambda look: look.hash)
    if band[0] == 0:
        yield from (
            (look, look) for look in ordered if look.images > 1 and look.group.startswith(_LOOK)
        )
    hashes = np.array([look.hash for look in ordered], np.uint64)
    pairs, complete = find_near_pairs(hashes, len(hashes) ** 2, MOST_COMPARISONS)
    if not complete:
        pairs = np.arange(len(hashes)).repeat(2)[1:-1].reshape(-1, 2)
    for number in range(band[0]) if complete else ():
        pairs = pairs[_band_of(hashes[pairs[:, 0]] ^ hashes[pairs[:, 1]], number) != 0]
    apart = (pair for pair in pairs.tolist() if ordered[pair[0]].group != ordered[pair[1]].group)
    yield from (
        (ordered[first], ordered[place])
        for place, first in link_groups(apart).items()
        if place != first
    )


def find_long_chain(
    links: Iterable[tuple[HashedImages, HashedImages]], images: int
) -> dict[str, str]:
    """Returns why the run fails, if near-duplicates would join too many images.

    The result is empty, or has one sentence, by the key of the image that reports it.

    Args:
        links: pairs of hashes that are near each other.
        images: the number of all images.
    """
    looks = {look.hash: look for look in itertools.chain.from_iterable(links)}
    chains = link_groups([(one.hash, other.hash) for one, other in links])
    sizes = Counter[int]()
    for each, chain in chains.items():
        sizes[chain] += looks[each].images
    longest = max(sizes, key=lambda chain: (sizes[chain], -chain), default=0)
    if sizes[longest] <= max(MOST_JOINED, LARGEST_SHARE * images):
        return {}
    joined = (look for look in looks.values() if chains[look.hash] == longest)
    keys = sorted(itertools.chain.from_iterable(look.keys for look in joined))
    why = (
        f"images.near_duplicates: together would put {sizes[longest]:,} of {images:,} images into "
        "one split, because "
        f"each looks like the next ({show_names(keys, EXAMPLES)}), and more than "
        f"{LARGEST_SHARE:.0%} is too many: "
        "set it to true and look at duplicates.jsonl; if they belong together, name such groups "
        "with splits.group"
    )
    return {keys[0]: why}


@dataclass
class GroupDuplicates(beam.PTransform):
    """Keeps duplicates from ending up in two splits, or in the dataset twice.

    Attributes:
        settings: what the dataset is; `duplicates` says what to do with images with the same bytes,
            and `images.near_duplicates` with images that look alike.
        exclusions: what will be left out.
        earlier: the `EarlierDatasets`, or a side input with them, whose digests of unchanged images
            are used.
    """

    settings: DatasetSettings
    exclusions: Exclusions = field(default_factory=Exclusions)
    earlier: Any = field(default_factory=EarlierDatasets)

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[ReferenceBatch]:
        """Puts duplicates into groups; references that are dropped become notices."""
        together = self.settings.kept_together
        if self.settings.duplicates == "drop":
            digested = batches | "DigestImages" >> beam.ParDo(
                _NameContents(self.name_content), self.earlier
            )
            keep = partial(_keep_one, max_bytes=self.settings.images.max_bytes)
            keep_one = beam.FlatMapTuple(keep).with_output_types(ReferenceBatch)
            batches = digested | "GroupByDigest" >> beam.GroupByKey() | "KeepOne" >> keep_one
        if not together:
            return batches
        names = _NameContents(self.name_content, by_look="images.near_duplicates" in together)
        named = batches | "NameContents" >> beam.ParDo(names, self.earlier)
        by_content = named | "GroupByContent" >> beam.GroupByKey()
        near = (
            by_content
            | "CutHashes"
            >> beam.FlatMapTuple(_cut_into_bands).with_output_types(
                tuple[tuple[int, int], HashedImages]
            )
            | "GroupByBand" >> beam.GroupByKey()
            | "LinkLooks"
            >> beam.FlatMapTuple(link_looks).with_output_types(tuple[HashedImages, HashedImages])
        )
        counted = named | "CountImages" >> beam.MapTuple(lambda _, batch: len(batch.refs))
        images = AsSingleton(counted | "AddUp" >> beam.CombineGlobally(sum))
        chain = AsSingleton(
            near | "GatherLooks" >> ToList() | "FindChain" >> beam.Map(find_long_chain, images)
        )
        joined = (
            by_content
            | "LinkGroups" >> beam.FlatMapTuple(_find_links).with_output_types(list[str])
            | "GatherLinks" >> ToList()  # few: only duplicates in several groups give links
            | "JoinGroups" >> beam.Map(_join, AsIter(near)).with_output_types(dict[str, str])
        )
        set_group = beam.Map(_set_group, AsSingleton(joined), chain).with_output_types(
            ReferenceBatch
        )
        return named | "SetGroups" >> set_group

    def name_content(
        self,
        ref: ImageRef,
        decoding: AbstractContextManager[Any] | None = None,
        reuse: tuple[ReusableDataset, ...] = (),
    ) -> str | None:
        """Identifies an image's content.

        Args:
            ref: the image.
            decoding: entered while pixels are in memory; None if they do not matter.
            reuse: earlier datasets.

        Returns:
            The SHA-256 of its bytes; if pixels matter and show anything, the hash that its sidecar
            row will have. None if the image is excluded, or unreadable, which is reported later.
        """
        settings, exclusions = self.settings, self.exclusions
        digest = ref.sha256.lower() or None
        if not digest and reuse and decoding is None:
            digest = find_known_digest(ref, reuse, settings.seed)
        max_bytes = settings.images.max_bytes
        if find_lines(ref, digest, exclusions, max_bytes):
            return None
        if digest and decoding is None:
            return f"sha256:{digest}"
        try:
            content = settings.source.read(ref, max_bytes)
        except Rejected:
            return None
        if exclusions.digests and exclusions.find(
            ref.key, hashlib.sha256(content.data).hexdigest()
        ):
            return None
        if decoding is not None and content.image is not None:
            # Decoding at reduced size gives a slightly different hash, so decode in full if
            # conversion will.
            needs_pixels = ExampleLayout(settings).needs_pixels or settings.images.moments
            # A function that fails will fail again.
            with (
                decoding,
                suppress(Rejected, FunctionError),
            ):
                images, hooks = (
                    replace(settings.images, moments=False),
                    make_hooks(ref, settings.images, settings.keep),
                )
                image = prepare_image(
                    content.image, images, needs_pixels, encode=False, hooks=hooks
                )
                look = image.difference_hash or 0
                if are_distinctive(np.array(look, np.uint64)):
                    return f"{_LOOK}{look}"
        return f"sha256:{hashlib.sha256(content.data).hexdigest()}"


def _refs_of(batches: Iterable[ReferenceBatch]) -> Iterator[ImageRef]:
    return itertools.chain.from_iterable(batch.refs for batch in batches)


def _keep_one(
    digest: str, batches: Iterable[ReferenceBatch], max_bytes: int
) -> Iterator[ReferenceBatch]:
    """Keeps the first reference by key, and leaves out the others.

    Yields a warning if one of them is of another class, or has other annotations.

    Args:
        digest: the digest of all of them; empty if they are not copies.
        batches: the references.
        max_bytes: the most that is read of a file of annotations.
    """
    if not digest:
        yield from batches
        return
    first, *others = sorted(_refs_of(batches), key=lambda ref: (ref.key, ref.offset, ref.uri))
    why = f"it has the same bytes as {first.key}"
    notices = [ref.notice("left_out", "duplicate", why) for ref in others]
    if other := next((ref for ref in others if ref.label not in ("", first.label)), None):
        own = f"of class {first.label!r}" if first.label else "without a class"
        detail = (
            f"it is {own}, and its copy {other.key}, which was dropped, of class {other.label!r}"
        )
        notices.append(first.notice("warning", "conflicting_labels", detail))
    if conflict := _find_annotated_otherwise(first, others, max_bytes):
        notices.append(first.notice("warning", "conflicting_annotations", conflict))
    yield ReferenceBatch([first], notices)


def _find_annotated_otherwise(
    first: ImageRef, others: Iterable[ImageRef], max_bytes: int
) -> str | None:
    """Returns which copy of an image has other annotations, in a sentence; None if none has."""
    own: Mapping[str, bytes] | None = None
    for ref in others:
        own = own or _describe_annotations(first, max_bytes)
        copied = _describe_annotations(ref, max_bytes)
        kinds = [
            plural_of(kind.unit)
            for name, kind in KINDS.items()
            if own.get(name, b"") != copied.get(name, b"")
        ]
        if kinds:
            return f"its copy {ref.key}, which was dropped, has other {' and '.join(kinds)}"
    return None


def _describe_annotations(ref: ImageRef, max_bytes: int) -> Mapping[str, bytes]:
    """Returns an image's annotations by kind: equal ones are equal wherever they are read from.

    Args:
        ref: the image.
        max_bytes: the most that is read of a file of annotations.

    Raises:
        OSError: the store of a file of annotations failed.
    """
    names = {file.key: digest_file(file, max_bytes) or file.key for file in ref.files}
    return {name: KINDS[name].rename_files(packed, names) for name, packed in ref.annotations}


def _join(
    links: list[list[str]], near: Iterable[tuple[HashedImages, HashedImages]]
) -> dict[str, str]:
    return link_groups([*links, *([one.group, other.group] for one, other in near)])


def _own_group(content: str, ref: ImageRef) -> str:
    if ref.group:
        return f"group:{ref.group}"
    return content


def _find_links(content: str, batches: Iterable[ReferenceBatch]) -> Iterator[list[str]]:
    if not content:
        return
    groups = {_own_group(content, ref) for ref in _refs_of(batches)}
    if len(groups) > 1:
        yield sorted(groups)


def _band_of(look: Any, number: int) -> Any:
    """Returns the bits of one band of a hash, or of each hash in an array."""
    first, end = BANDS[number : number + 2]
    return look >> first & (1 << end - first) - 1


def _cut_into_bands(
    content: str, batches: Iterable[ReferenceBatch]
) -> Iterator[tuple[tuple[int, int], HashedImages]]:
    if content.startswith(_LOOK):
        refs = [*_refs_of(batches)]
        group, keys = min(_own_group(content, ref) for ref in refs), sorted(ref.key for ref in refs)
        look = HashedImages(
            int(content.removeprefix(_LOOK)), group, len(refs), keys[: EXAMPLES + 1]
        )
        yield from (
            ((number, _band_of(look.hash, number)), look) for number in range(len(BANDS) - 1)
        )


def _set_group(
    element: tuple[str, ReferenceBatch], joined: Mapping[str, str], chain: Mapping[str, str]
) -> ReferenceBatch:
    content, batch = element
    if not content:
        return batch
    (ref,) = batch.refs
    own = _own_group(content, ref)
    problems = []
    if ref.key in chain:
        problems = [ref.notice("fatal", "long_chain", chain[ref.key])]
    return ReferenceBatch([ref.replace(group=joined.get(own, own))], problems)


class _NameContents(beam.DoFn):
    """Pairs each reference with the name of its content.

    All else is paired with the empty string, which groups nothing. Images that `exclude` names are
    not grouped: conversion leaves them out, and they must not affect other images.
    """

    def __init__(self, name: Callable[..., str | None], by_look: bool = False) -> None:
        self._name = name
        self._by_look = by_look

    def setup(self) -> None:
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="recordmill-digest")
        self._decoding: BoundedSemaphore | None = None
        if self._by_look:
            self._decoding = BoundedSemaphore(available_processors())

    def teardown(self) -> None:
        self._readers.shutdown()

    def process(
        self, batch: ReferenceBatch, earlier: EarlierDatasets
    ) -> Iterator[tuple[str, ReferenceBatch]]:
        if batch.notices or batch.classes:
            yield "", ReferenceBatch([], batch.notices, batch.classes)
        for start in range(0, len(batch.refs), CHUNK):
            refs = batch.refs[start : start + CHUNK]
            name = partial(self._name, decoding=self._decoding, reuse=earlier.reusable)
            names = self._readers.map(name, refs)
            yield from (
                (content or "", ReferenceBatch([ref]))
                for content, ref in zip(names, refs, strict=True)
            )
