"""SummarizeImages: all references become one `Summary`."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from schemas.image_ref import ImageRef
from transforms.splitting import ImageSplitter, Selection, SplitSettings
from transforms.summary import Summary


class SummaryFn(beam.CombineFn):
    """Folds references into a `Summary`; commutative and associative, so that every runner gets the same one."""

    def __init__(self, seed: int, splits: SplitSettings) -> None:
        self._seed = seed
        self._splits = splits
        self._splitter = ImageSplitter(seed, splits, Selection())

    def create_accumulator(self, *_: Any) -> Summary:
        """An empty summary."""
        return Summary()

    def add_input(self, summary: Summary, ref: ImageRef, selection: Selection) -> Summary:
        """Counts one reference."""
        if selection is not self._splitter.selection:
            self._splitter = ImageSplitter(self._seed, self._splits, selection)
        summary.add(ref, self._splitter)
        return summary

    def merge_accumulators(self, summaries: Iterable[Summary], *_: Any) -> Summary:
        """Adds summaries up."""
        merged = Summary()
        for summary in summaries:
            merged.merge(summary, self._splitter.neighbours)
        return merged

    def extract_output(self, summary: Summary, *_: Any) -> Summary:
        """The summary itself."""
        return summary


@dataclass
class SummarizeImages(beam.PTransform):
    """Summarizes a PCollection of references.

    Attributes:
        seed: the dataset's seed.
        splits: how images are split.
        selection: what `SelectImages` found, as a side input or a value.
    """

    seed: int
    splits: SplitSettings
    selection: Any

    def expand(self, refs: beam.PCollection[ImageRef]) -> beam.PCollection[Summary]:
        """PCollection[ImageRef] -> PCollection[Summary] of exactly one element."""
        return refs | beam.CombineGlobally(SummaryFn(self.seed, self.splits), self.selection)
