"""SummarizeImages: all references become one `Summary`.

Which of the files that a listing ignores are used all the same, since references name them: a file and the reference
that names it may be met by different workers. Digests of both meet in buckets, and one worker adds up a bucket: no
process holds the digests of more than one.
"""

import os
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import AsIter
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill import storage
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.schemas.settings.source import SourceSettings
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
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


coders.registry.register_coder(Digests, coders.PickleCoder)


def merge_summaries(summaries: Iterable[Summary]) -> Summary:
    """Adds summaries up; commutative and associative, so that every runner gets the same one."""
    total = Summary()
    for summary in summaries:
        total.merge(summary)
    return total


@dataclass
class SummarizeImages(beam.PTransform):
    """Summarizes a PCollection of batches of references.

    Attributes:
        seed: the dataset's seed.
        splits: how images are split.
        selection: the `SplitCutoffs`, as a side input.
        source: what the files mean.
    """

    seed: int
    splits: SplitSettings
    selection: Any
    source: SourceSettings

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[Summary]:
        """PCollection[ReferenceBatch] -> PCollection[Summary] of exactly one element."""
        # Not one CombineFn: with a side input Beam cannot lift it, and every reference would go to one worker.
        summary = (
            batches
            | "SummarizeBundles" >> beam.ParDo(_SummarizeBundle(self.seed, self.splits), self.selection)
            | "MergeSummaries" >> beam.CombineGlobally(merge_summaries)
        )
        if self.source.other_files == "not_included":  # no reference is made of several files
            return summary
        used = (
            batches
            | "DigestFiles" >> beam.ParDo(DigestFiles(self.source)).with_output_types(tuple[int, Digests])
            | "GroupDigests" >> beam.GroupByKey()
            | "FindUsed" >> beam.MapTuple(lambda _, bucket: find_used(bucket)).with_output_types(Summary)
        )
        settle = beam.Map(lambda whole, changes: merge_summaries([whole, *changes]), AsIter(used))
        return summary | "SettleIgnored" >> settle.with_output_types(Summary)


class _SummarizeBundle(beam.DoFn):
    """One summary a bundle."""

    def __init__(self, seed: int, splits: SplitSettings) -> None:
        self._seed = seed
        self._splits = splits

    def start_bundle(self) -> None:
        self._summary = Summary()

    def process(self, batch: ReferenceBatch, selection: SplitCutoffs) -> None:
        self._summary.add(batch, ImageSplitter(self._seed, self._splits, selection))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield GlobalWindows.windowed_value(self._summary)


class DigestFiles(beam.DoFn):
    """The digests of files that references name, and of those that were ignored, by bucket."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source

    def start_bundle(self) -> None:
        """Begins with none."""
        self._held = 0
        self._found: defaultdict[tuple[int, str, bool], tuple[bytearray, list[str]]]
        self._found = defaultdict(lambda: (bytearray(), []))

    def process(self, batch: ReferenceBatch) -> Iterator[tuple[int, Digests]]:
        """Takes in what was listed; gives everything when much is held."""
        for ref in (*batch.refs, *batch.notices):
            if ref.status == "ignored":
                of_an_image = ref.reason == self._source.other_files and self._source.should_describe(ref.key)
                self._add(ref.uri, ref.reason, bool(IMAGE_NAME.search(ref.uri)), ref.key if of_an_image else "")
            elif ref.status in ("", "rejected", "left_out"):
                for uri in self._source.uses(ref):
                    self._add(uri, "", are_images=False)
        if self._held >= MOST_HELD:
            yield from self._let_go()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Gives the rest."""
        yield from map(GlobalWindows.windowed_value, self._let_go())

    def _add(self, uri: str, reason: str, are_images: bool, key: str = "") -> None:
        path = os.path.abspath(uri) if storage.is_local(uri) else uri  # data may name the whole path
        digest = blake2b(path.encode(), digest_size=DIGEST_BYTES).digest()
        digests, keys = self._found[digest[0] % BUCKETS, reason, are_images]
        digests += digest
        keys.append(key)
        self._held += 1

    def _let_go(self) -> Iterator[tuple[int, Digests]]:
        for (bucket, reason, are_images), (digests, keys) in self._found.items():
            yield bucket, Digests(reason, are_images, bytes(digests), zlib.compress("\0".join(keys).encode()))
        self.start_bundle()
