"""SummarizeImages: combines all references into one `Summary`.

A file that the listing ignores is used all the same if a reference names it, but different workers
may see the two. Digests of both are grouped in buckets, and one worker settles a bucket: no process
holds the digests of more than one.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsIter
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill import storage
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.source import SourceSettings
from recordmill.transforms.inputs.image_suffixes import is_image_name
from recordmill.transforms.inputs.other_classes import OtherClasses
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary

BUCKETS = 64

MOST_HELD = 65_536
"""Digests that a worker's thread collects before it emits them."""

DIGEST_BYTES = 16
"""Enough to rule out that two files of a collection have the same digest by chance."""

BucketDigests = tuple[str, bytes]
"""Some files of one bucket: why they were ignored, or the empty string if references name them; and
`DIGEST_BYTES` of each, one after the other. For images that the listing counted as
`taken_only_by_name`, it is `without_annotation`; after a slash, it has the folder of `OtherClasses`
that they are in."""

_WITHOUT = "without_annotation"


def find_used(bucket: Iterable[BucketDigests]) -> Summary:
    """Returns corrections to a summary's counts of ignored files.

    They are for the files of a bucket that references name. A named file counts only as its
    references. Of the others, images that should have been named get a reason of their own. A file
    that was listed twice counts twice.
    """
    parts = list(bucket)
    named = {*chain.from_iterable(_split_digests(packed) for reason, packed in parts if not reason)}
    changes: Counter[str] = Counter()
    in_folders: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for reason, packed in parts:
        digests = list(_split_digests(packed))
        used = sum(map(named.__contains__, digests))
        why, _, folder = reason.partition("/")
        if why == _WITHOUT:
            changes.update(taken_only_by_name=-len(digests), without_annotation=len(digests) - used)
        elif reason:
            changes[reason] -= used
        if folder:
            for counts, count in zip(in_folders, (len(digests) - used, used), strict=True):
                counts[folder] += count
    unnamed, named_there = in_folders
    return Summary(
        listed=changes.total(),
        ignored=changes,
        unnamed_in_folders=unnamed,
        named_in_folders=named_there,
    )


def _split_digests(digests: bytes) -> Iterator[bytes]:
    return (digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES))


@dataclass
class SummarizeImages(beam.PTransform):
    """Summarizes a PCollection of batches of references.

    Attributes:
        settings: what the dataset is.
        selection: the `SplitCutoffs`, as a side input.
        others: the folders that may be classes, if a table of images was recognized.
    """

    settings: DatasetSettings
    selection: Any
    others: OtherClasses | None = None

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[Summary]:
        """PCollection[ReferenceBatch] -> PCollection[Summary] of exactly one element."""
        # Not one CombineFn: with a side input Beam cannot lift it, and every reference would go to
        # one worker.
        summary = (
            batches
            | "SummarizeBundles" >> beam.ParDo(_SummarizeBundle(self.settings), self.selection)
            | "MergeSummaries" >> beam.CombineGlobally(Summary.sum_of).with_output_types(Summary)
        )
        # No reference consists of several files.
        if self.settings.source.other_files == "not_included":
            return summary
        used = (
            batches
            | "DigestFiles"
            >> beam.ParDo(DigestFiles(self.settings.source, self.others)).with_output_types(
                tuple[int, BucketDigests]
            )
            | "GroupDigests" >> beam.GroupByKey()
            | "FindUsed"
            >> beam.MapTuple(lambda _, bucket: find_used(bucket)).with_output_types(Summary)
        )
        settle = beam.Map(lambda whole, changes: Summary.sum_of([whole, *changes]), AsIter(used))
        return summary | "SettleIgnored" >> settle.with_output_types(Summary)


class _SummarizeBundle(beam.DoFn):
    """Makes one summary per bundle."""

    def __init__(self, settings: DatasetSettings) -> None:
        self._settings = settings

    def start_bundle(self) -> None:
        self._summary = Summary()

    def process(self, batch: ReferenceBatch, selection: SplitCutoffs) -> None:
        self._summary.add(
            batch, ImageSplitter(self._settings.seed, self._settings.splits, selection)
        )

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield GlobalWindows.windowed_value(self._summary)


class DigestFiles(beam.DoFn):
    """Computes digests, by bucket, of files that references name and of files that were ignored."""

    def __init__(self, source: SourceSettings, others: OtherClasses | None = None) -> None:
        self._source = source
        self._others = others

    def start_bundle(self) -> None:
        """Begins a bundle."""
        self._held = 0
        self._found: defaultdict[tuple[int, str], bytearray] = defaultdict(bytearray)

    def process(self, batch: ReferenceBatch) -> Iterator[tuple[int, BucketDigests]]:
        """Adds the digests of a batch; emits all of them if there are many."""
        for ref in (*batch.refs, *batch.notices):
            if ref.status == "ignored":
                is_image = ref.reason == "taken_only_by_name" and is_image_name(ref.uri)
                self._add(ref.uri, self._name_unnamed(ref.key) if is_image else ref.reason)
            elif ref.status in ("", "rejected", "left_out"):
                for uri in self._source.uses(ref):
                    self._add(uri, "")
        if self._held >= MOST_HELD:
            yield from self._flush()

    def _name_unnamed(self, key: str) -> str:
        """The reason for an image that no reference may name, with its folder if that counts."""
        folder = self._others.folder_of(key) if self._others else None
        return f"{_WITHOUT}/{folder}" if folder else _WITHOUT

    def finish_bundle(self) -> Iterator[WindowedValue]:
        """Emits the rest."""
        yield from map(GlobalWindows.windowed_value, self._flush())

    def _add(self, uri: str, reason: str) -> None:
        # Data may contain absolute paths.
        path = os.path.abspath(uri) if storage.is_local(uri) else uri
        digest = blake2b(path.encode(), digest_size=DIGEST_BYTES).digest()
        self._found[digest[0] % BUCKETS, reason] += digest
        self._held += 1

    def _flush(self) -> Iterator[tuple[int, BucketDigests]]:
        for (bucket, reason), digests in self._found.items():
            yield bucket, (reason, bytes(digests))
        self.start_bundle()
