"""GroupDuplicates: images with the same bytes share a split, or one of them stays.

Every image is read once more for it, before anything is planned; a source that states digests saves the reading.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import apache_beam as beam
from apache_beam.pvalue import AsSingleton
from apache_beam.transforms.combiners import ToList

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings

READERS = 16
"""Images read at once by one worker thread: what is waited for is the store, not a processor."""

CHUNK = 256


def digest_image(ref: ImageRef, settings: DatasetSettings) -> str:
    """The SHA-256 of an image's bytes, in hex; the empty string where they cannot be read, which is reported later."""
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
    """Sees to it that no image of a PCollection of batches is in two splits, or in the dataset twice.

    Attributes:
        settings: what the dataset is; `duplicates` says what to do with images with the same bytes.
    """

    settings: DatasetSettings

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[ReferenceBatch]:
        """PCollection[ReferenceBatch] -> PCollection[ReferenceBatch], of as many references, or notices of them."""
        if self.settings.duplicates == "report":
            return batches
        digested = batches | "DigestImages" >> beam.ParDo(_DigestImages(self.settings)).with_output_types(
            tuple[str, ReferenceBatch]
        )
        by_digest = digested | "GroupByDigest" >> beam.GroupByKey()
        if self.settings.duplicates == "drop":
            return by_digest | "KeepOne" >> beam.FlatMapTuple(_keep_one).with_output_types(ReferenceBatch)
        joined = (
            by_digest
            | "LinkGroups" >> beam.FlatMapTuple(_links).with_output_types(list[str])
            | "GatherLinks" >> ToList()  # few: only duplicates in several groups link them
            | "JoinGroups" >> beam.Map(link_groups).with_output_types(dict[str, str])
        )
        return digested | "SetGroups" >> beam.Map(_set_group, AsSingleton(joined)).with_output_types(ReferenceBatch)


def _keep_one(digest: str, batches: Iterable[ReferenceBatch]) -> Iterator[ReferenceBatch]:
    """The first by key stays; the others are left out, with a warning where one of them is of another class."""
    if not digest:
        yield from batches
        return
    refs = (ref for batch in batches for ref in batch.refs)
    first, *others = sorted(refs, key=lambda ref: (ref.key, ref.offset, ref.uri))
    why = f"it has the same bytes as {first.key}"
    notices = [ref.notice("left_out", "duplicate", why) for ref in others]
    if other := next((ref for ref in others if ref.label != first.label), None):
        detail = (
            f"it is of class {first.label!r}, and its copy {other.key}, which was dropped, of class {other.label!r}"
        )
        notices.append(first.notice("warning", "conflicting_labels", detail))
    yield ReferenceBatch([first], notices)


def _own_group(digest: str, ref: ImageRef) -> str:
    return f"group:{ref.group}" if ref.group else f"sha256:{digest}"


def _links(digest: str, batches: Iterable[ReferenceBatch]) -> Iterator[list[str]]:
    groups = {_own_group(digest, ref) for batch in batches for ref in batch.refs} if digest else set()
    if len(groups) > 1:
        yield sorted(groups)


def _set_group(element: tuple[str, ReferenceBatch], joined: Mapping[str, str]) -> ReferenceBatch:
    digest, batch = element
    if not digest:
        return batch
    own = _own_group(digest, batch.refs[0])
    return ReferenceBatch([batch.refs[0].replace(group=joined.get(own, own))])


class _DigestImages(beam.DoFn):
    """Pairs each reference with its digest, and all else with the empty string: it goes where its key sends it."""

    def __init__(self, settings: DatasetSettings) -> None:
        self._settings = settings

    def setup(self) -> None:
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="recordmill-digest")

    def teardown(self) -> None:
        self._readers.shutdown()

    def process(self, batch: ReferenceBatch) -> Iterator[tuple[str, ReferenceBatch]]:
        if batch.notices or batch.classes:
            yield "", ReferenceBatch([], batch.notices, batch.classes)
        for start in range(0, len(batch.refs), CHUNK):
            refs = batch.refs[start : start + CHUNK]
            digests = self._readers.map(partial(digest_image, settings=self._settings), refs)
            yield from ((digest, ReferenceBatch([ref])) for digest, ref in zip(digests, refs, strict=True))
