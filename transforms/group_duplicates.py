"""GroupDuplicates: images with the same bytes share a split, or one of them stays.

Every image is read once more for it, before anything is planned; a source that states digests saves the reading.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsDict, AsIter
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings

READERS = 16
"""Images read at once by one worker thread: what is waited for is the store, not a processor."""

CHUNK = 256


def digest_image(ref: ImageRef, settings: DatasetSettings) -> str:
    """The SHA-256 of an image's bytes, in hex; the empty string where they cannot be read, which is told later."""
    if ref.sha256:
        return ref.sha256.lower()
    try:
        return hashlib.sha256(settings.source.read(ref, settings.images.max_bytes).data).hexdigest()
    except Rejected:
        return ""


def link_groups(linked: Iterable[Sequence[str]]) -> dict[str, str]:
    """Joins groups that are linked, directly or by way of others.

    Args:
        linked: groups that belong together.

    Returns:
        For each of those groups the first, by code point, of all that it is joined with.
    """
    parents: dict[str, str] = {}

    def find(group: str) -> str:
        while (parent := parents.setdefault(group, group)) != group:
            parents[group] = group = parents[parent]
        return group

    for groups in linked:
        roots = sorted({find(group) for group in groups})
        for root in roots[1:]:
            parents[root] = roots[0]
    return {group: find(group) for group in list(parents)}


@dataclass
class GroupDuplicates(beam.PTransform):
    """Sees to it that no image of a PCollection of references is in two splits, or in the dataset twice.

    Attributes:
        settings: what the dataset is; `duplicates` says what becomes of images with the same bytes.
    """

    settings: DatasetSettings

    def expand(self, refs: beam.PCollection[ImageRef]) -> beam.PCollection[ImageRef]:
        """PCollection[ImageRef] -> PCollection[ImageRef], as many as before, and warnings."""
        if self.settings.duplicates == "report":
            return refs
        digested = refs | "DigestImages" >> beam.ParDo(_DigestImages(self.settings)).with_output_types(
            tuple[str, ImageRef]
        )
        by_digest = digested | "GroupByDigest" >> beam.GroupByKey()
        if self.settings.duplicates == "drop":
            return by_digest | "KeepOne" >> beam.FlatMapTuple(_keep_one).with_output_types(ImageRef)
        # Only what is twice, and in several groups, links groups: few, wherever this is to be asked for.
        links = by_digest | "LinkGroups" >> beam.FlatMapTuple(_links).with_output_types(list[str])
        joined = (
            refs.pipeline
            | "Link" >> beam.Create([None], reshuffle=False)
            | "JoinGroups" >> beam.FlatMap(_join, AsIter(links)).with_output_types(tuple[str, str])
        )
        return digested | "SetGroups" >> beam.Map(_set_group, AsDict(joined)).with_output_types(ImageRef)


def _keep_one(digest: str, refs: Iterable[ImageRef]) -> Iterator[ImageRef]:
    """The first by key stays; the others are left out, with a warning where one of them is of another class."""
    if not digest:
        yield from refs
        return
    first, *others = sorted(refs, key=lambda ref: (ref.key, ref.offset, ref.uri))
    yield first
    for ref in others:
        yield ref.but(status="left_out", reason="duplicate", detail=f"it has the same bytes as {first.key}")
    if other := next((ref for ref in others if ref.label != first.label), None):
        detail = (
            f"it is of class {first.label!r}, and its copy {other.key}, which was dropped, of class {other.label!r}"
        )
        yield first.but(status="warning", reason="conflicting_labels", detail=detail)


def _own_group(digest: str, ref: ImageRef) -> str:
    return f"group:{ref.group}" if ref.group else f"sha256:{digest}"


def _links(digest: str, refs: Iterable[ImageRef]) -> Iterator[list[str]]:
    groups = {_own_group(digest, ref) for ref in refs} if digest else set()
    if len(groups) > 1:
        yield sorted(groups)


def _join(_: Any, links: Iterable[Sequence[str]]) -> Iterator[tuple[str, str]]:
    yield from link_groups(links).items()


def _set_group(element: tuple[str, ImageRef], joined: Mapping[str, str]) -> ImageRef:
    digest, ref = element
    if not digest:  # it has a status, or cannot be read: it goes where its key sends it
        return ref
    own = _own_group(digest, ref)
    return ref.but(group=joined.get(own, own))


class _DigestImages(beam.DoFn):
    """Pairs each reference with its digest; with the empty string where it has a status."""

    def __init__(self, settings: DatasetSettings) -> None:
        self._settings = settings

    def setup(self) -> None:
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="recordmill-digest")

    def teardown(self) -> None:
        self._readers.shutdown()

    def start_bundle(self) -> None:
        self._waiting: list[ImageRef] = []

    def process(self, ref: ImageRef) -> Iterator[tuple[str, ImageRef]]:
        if ref.status:
            yield "", ref
            return
        self._waiting.append(ref)
        if len(self._waiting) == CHUNK:
            yield from self._digest_waiting()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from map(GlobalWindows.windowed_value, self._digest_waiting())

    def _digest_waiting(self) -> Iterator[tuple[str, ImageRef]]:
        refs, self._waiting = self._waiting, []
        digests = self._readers.map(lambda ref: digest_image(ref, self._settings), refs)
        yield from zip(digests, refs, strict=True)
