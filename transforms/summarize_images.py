"""SummarizeImages: all references become one `Summary`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import AsIter
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.schemas.settings.source import SourceSettings
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.planning.used_files import Digests, FileDigests, find_used, settle_ignored

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
            | "DigestFiles" >> beam.ParDo(_DigestFiles(self.source)).with_output_types(tuple[int, Digests])
            | "GroupDigests" >> beam.GroupByKey()
            | "FindUsed" >> beam.MapTuple(lambda _, bucket: find_used(bucket)).with_output_types(Summary)
        )
        return summary | "SettleIgnored" >> beam.Map(settle_ignored, AsIter(used)).with_output_types(Summary)


class _SummarizeBundle(beam.DoFn):
    """One summary a bundle."""

    def __init__(self, seed: int, splits: SplitSettings) -> None:
        self._seed = seed
        self._splits = splits
        self._splitter = ImageSplitter(seed, splits, SplitCutoffs())

    def start_bundle(self) -> None:
        self._summary = Summary()

    def process(self, batch: ReferenceBatch, selection: SplitCutoffs) -> None:
        if selection is not self._splitter.selection:
            self._splitter = ImageSplitter(self._seed, self._splits, selection)
        self._summary.add(batch, self._splitter)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield GlobalWindows.windowed_value(self._summary)


class _DigestFiles(beam.DoFn):
    """The digests of files that a bundle's references name, and of those that were ignored."""

    def __init__(self, source: SourceSettings) -> None:
        self._source = source

    def start_bundle(self) -> None:
        self._digests = FileDigests(self._source)

    def process(self, batch: ReferenceBatch) -> Iterator[tuple[int, Digests]]:
        return self._digests.add(batch)

    def finish_bundle(self) -> Iterator[WindowedValue]:
        yield from map(GlobalWindows.windowed_value, self._digests.let_go())
