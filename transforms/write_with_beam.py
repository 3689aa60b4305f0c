"""WriteWithBeam: `--writer=beam`, the chain of public steps that ends with Beam's WriteToTFRecord.

The main job does the same work in the step that writes shards, so pixels are never shuffled. Here,
each image is an element of its own. All images are counted at the end, rejected ones too.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import AsIter, AsSingleton

from recordmill import storage
from recordmill.schemas.dataset.file_names import SHARD, parse_beam_name
from recordmill.schemas.dataset.side_files import RejectedRow
from recordmill.schemas.dataset.totals import (
    FinishedShards,
    LostExample,
    RowTotals,
    ShardReport,
)
from recordmill.schemas.digests import digest_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ReferenceBatch, ShardBatch
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.storage.tfrecord_file import read_back
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.plan_shards import ShuffleReferences
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.planning.progress import Progress
from recordmill.transforms.records.annotations import add_image
from recordmill.transforms.records.convert_image import ConvertedImage, load_image, reject_image
from recordmill.transforms.steps.build_examples import BuildExamples
from recordmill.transforms.steps.elements import (
    BuiltExample,
    RawImage,
    RejectedImage,
    RejectedReference,
)
from recordmill.transforms.steps.image_step import ImageStep, ImageWork
from recordmill.transforms.steps.read_images import raw_image
from recordmill.transforms.steps.reencode_images import ReencodeImages
from recordmill.transforms.steps.split_examples import SplitExamples


@dataclass(frozen=True, slots=True)
class PlacedReference:
    """A reference and the split that the plan gives it."""

    ref: ImageRef
    split: str


for _type in (PlacedReference, LabelMap):
    coders.registry.register_coder(_type, coders.PickleCoder)


class ReadReferences(ImageStep):
    """Reads a PCollection of `PlacedReference` as `ReadImages` does; only those with a class id."""

    def __init__(self, settings: DatasetSettings, labels: Any) -> None:
        """Sets how references are read.

        Args:
            settings: what the dataset is.
            labels: the `LabelMap`, as a side input.
        """
        super().__init__()
        self._work, self._labels = _ReadReference(settings), labels
        self.shown = self._work.shown

    def expand(self, references: beam.PCollection[PlacedReference]) -> beam.PCollection[RawImage]:
        """Adds the step to a pipeline."""
        return self.divide(references, "Read", self._work, RawImage, self._labels)


class _ReadReference(ImageWork):
    def __init__(self, settings: DatasetSettings) -> None:
        super().__init__("images_read", "read_microseconds", {"source": settings.source.kind})
        self._settings = settings

    def process(self, placed: PlacedReference, label_map: LabelMap) -> Iterator[Any]:
        work = partial(self._read, placed, label_map)
        yield from self.attempt(placed.ref.key, work, placed.ref, placed.split)

    def _read(self, placed: PlacedReference, label_map: LabelMap) -> RawImage:
        loaded = load_image(placed.ref, self._settings, label_map, placed.split)
        image = raw_image(placed.ref, loaded.content, loaded.class_name, placed.split)
        return replace(image, reference=placed.ref)


def read_written(path: str, compression: str = "none") -> ShardReport:
    """Reads back a file that Beam wrote, and reports its contents."""
    split, index = parse_beam_name(path.rpartition("/")[2])
    read = read_back(path, compression)
    report = ShardReport(split, index, read.records, RowTotals())  # images are counted separately
    return replace(report, records=read.records, bytes=read.bytes, sha256=read.sha256)


def count_example(example: BuiltExample, progress: Progress) -> FinishedShards:
    """Returns the totals of one Example, to be added up."""
    assert example.reference is not None
    assert example.converted is not None
    return _count(example.reference, example.split, example.converted, progress)


def count_rejected(
    rejected: RejectedImage, label_map: LabelMap, progress: Progress
) -> FinishedShards:
    """Returns the totals of one image without an Example, to be added up."""
    assert isinstance(rejected, RejectedReference)
    error = rejected.error
    if not isinstance(error, Rejected):
        return FinishedShards(rejected_examples={"": LostExample(rejected.key, 0, str(error))})
    outcome = reject_image(rejected.reference, error, label_map)
    return _count(rejected.reference, rejected.split, outcome, progress)


def _count(
    ref: ImageRef, split: str, outcome: ConvertedImage, progress: Progress
) -> FinishedShards:
    progress.add_done(1)
    row, annotations = outcome.row, outcome.annotations
    totals = FinishedShards(
        splits={split: RowTotals.of([row], split)}, digest=f"{digest_of(ref):x}"
    )
    if annotations:
        is_written = not isinstance(row, RejectedRow)
        add_image(totals.annotations, row.key, annotations, is_written=is_written)
    if isinstance(row, RejectedRow) and row.reason is not None:
        totals.rejected_examples[row.reason] = LostExample(row.key, 0, f"{row.key} ({row.detail})")
    return totals


def _spread(shard: tuple[str, int], batches: Iterable[ShardBatch]) -> Iterator[PlacedReference]:
    for batch in batches:
        yield from (PlacedReference(ref, shard[0]) for ref in batch.refs)


def _label_map(plan: DatasetPlan) -> LabelMap:
    return plan.label_map


class WriteWithBeam(beam.PTransform):
    """Converts a PCollection of batches of references, and writes `shards.count` files per split.

    It gives a PCollection of `FinishedShards` of exactly one element, whose `find_problem` says
    whether the files may be used.
    """

    def __init__(
        self, settings: DatasetSettings, folder: str, plan: AsSingleton, progress: Progress
    ) -> None:
        """Sets what is written where.

        Args:
            settings: what the dataset is.
            folder: where the files are written.
            plan: the `DatasetPlan`, as a side input.
            progress: counts what is done.
        """
        super().__init__()
        self._settings, self._folder, self._plan = settings, folder, plan
        self._progress = progress

    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[FinishedShards]:
        """Adds the chain to a pipeline."""
        settings = self._settings
        taken = self._plan.pvalue | "TakeLabels" >> beam.Map(_label_map).with_output_types(LabelMap)
        labels = AsSingleton(taken)
        spread = beam.FlatMapTuple(_spread).with_output_types(PlacedReference)
        shuffled = batches | ShuffleReferences(settings, self._plan)
        placed = shuffled | "SpreadReferences" >> spread | beam.Reshuffle()
        read = placed | ReadReferences(settings, labels)
        encoded = read | ReencodeImages(settings)
        built = encoded | BuildExamples(labels, settings=settings)
        # The plan has placed every image: the shares do not matter.
        names = settings.splits.names
        splits = built | SplitExamples(dict.fromkeys(names, 1 / len(names)))
        rejected = (read.rejected, encoded.rejected, built.rejected) | "Rejected" >> beam.Flatten()
        count = beam.Map(count_rejected, labels, self._progress).with_output_types(Any)
        counts = [
            built
            | "CountExamples" >> beam.Map(count_example, self._progress).with_output_types(Any),
            rejected | "CountRejected" >> count,
            *(self._write(name, splits[name]) for name in names),
        ]
        return counts | "Counts" >> beam.Flatten() | beam.CombineGlobally(gather_reports)

    def _write(self, split: str, records: beam.PCollection[bytes]) -> beam.PCollection[Any]:
        """Writes the files of a split, and reads them back."""
        is_packed = self._settings.compression == "gzip"
        compression = "uncompressed"
        if is_packed:
            compression = "gzip"
        files = records | f"Write {split}" >> beam.io.WriteToTFRecord(
            storage.join(self._folder, split),
            file_name_suffix=f".{SHARD}",
            num_shards=self._settings.shards.count or 0,
            compression_type=compression,
        )
        # Beam emits the names at the end of time, when some runners (Prism) process nothing more: a
        # side input brings them back to the beginning. One per split, because Prism loses some
        # names if they are flattened.
        once = records.pipeline | f"Once {split}" >> beam.Create([0])
        named = once | f"Name {split}" >> beam.FlatMap(lambda _, names: names, AsIter(files))
        spread = named | f"Spread {split}" >> beam.Reshuffle()
        return spread | f"Read {split}" >> beam.Map(read_written, self._settings.compression)
