"""The steps of `--writer=beam`, and of pipelines of your own: read images, prepare them, build Examples, write those.

The main job does the same work in the step that writes shards, so that pixels are never shuffled. Here, each image is
an element of its own, which also carries why it was rejected. Every image therefore arrives at the end, where all are
counted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam import coders
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.pvalue import AsIter
from apache_beam.typehints.decorators import no_annotations

from recordmill import storage
from recordmill.imaging import PreparedImage
from recordmill.schemas.dataset.shard_report import FinishedShards, ShardReport
from recordmill.schemas.dataset.sidecar_row import RejectedRow
from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample, RowTotals
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.reference_digest import digest_of
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.tfrecord_file import read_back
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.publishing.gather_reports import GatherReports
from recordmill.transforms.records import convert_image
from recordmill.transforms.records.annotations import add_image
from recordmill.transforms.records.features.find_function import FunctionError
from recordmill.transforms.shards.progress import PROGRESS

_NO_CUTOFFS, _NO_LABELS = SplitCutoffs(), LabelMap({})


@dataclass(frozen=True, slots=True)
class PendingImage:
    """An image on its way through the steps; each adds something, until there is an outcome.

    Attributes:
        split: the split that it goes to; the empty string if it was rejected when it was listed.
        ref: the reference.
        loaded: what was read.
        image: what is stored of it, if anything is.
        features: what functions computed.
        outcome: its Example, or why there is none.
        problem: why the run fails, in a sentence; the empty string if it does not.
    """

    split: str
    ref: ImageRef
    loaded: Any = None
    image: PreparedImage | None = None
    features: Mapping[str, Any] = field(default_factory=dict)
    outcome: convert_image.ConvertedImage | None = None
    problem: str = ""


coders.registry.register_coder(PendingImage, coders.PickleCoder)
coders.registry.register_coder(FinishedShards, coders.PickleCoder)

_Work = Callable[[PendingImage, ExampleLayout, LabelMap], PendingImage]


class _Step(beam.DoFn):
    """Does the work of a step for each image that has no outcome yet."""

    def __init__(self, work: _Work, settings: DatasetSettings) -> None:
        self._work, self._settings = work, settings

    def setup(self) -> None:
        self._layout = ExampleLayout(self._settings)

    def process(self, image: PendingImage, labels: LabelMap) -> Iterator[PendingImage]:
        if image.outcome is None and not image.problem:
            try:
                image = self._work(image, self._layout, labels)
            except Rejected as rejected:
                outcome = convert_image.reject_image(image.ref, rejected, labels)
                image = PendingImage(image.split, image.ref, outcome=outcome)
            except FunctionError as error:
                image = PendingImage(image.split, image.ref, problem=str(error))
        yield image


@dataclass
class _ImageStep(beam.PTransform):
    """A step for each image of a PCollection.

    Attributes:
        settings: what the dataset is.
        labels: class ids, a `LabelMap` or a side input of one.
    """

    work: ClassVar[_Work]
    settings: DatasetSettings
    labels: Any = _NO_LABELS

    @no_annotations  # type: ignore[untyped-decorator]  # Beam would make a schema of the type
    def expand(self, images: beam.PCollection[PendingImage]) -> beam.PCollection[PendingImage]:
        return images | beam.ParDo(_Step(type(self).work, self.settings), self.labels)


def _read(image: PendingImage, layout: ExampleLayout, labels: LabelMap) -> PendingImage:
    return replace(image, loaded=convert_image.load_image(image.ref, layout.settings, labels, image.split))


def _reencode(image: PendingImage, layout: ExampleLayout, labels: LabelMap) -> PendingImage:
    prepared, features = convert_image.prepare_loaded(image.loaded, layout)
    return replace(image, image=prepared, features=features)


def _build(image: PendingImage, layout: ExampleLayout, labels: LabelMap) -> PendingImage:
    built = convert_image.build_record(image.loaded, image.image, image.features, layout, labels)
    return PendingImage(image.split, image.ref, outcome=built)


class ReadImages(_ImageStep):
    """PCollection[PendingImage] -> the same with what was read; only images with a class id are read."""

    work = _read


class ReencodeImages(_ImageStep):
    """PCollection[PendingImage] -> the same with what is stored; images are checked, and re-encoded if needed."""

    work = _reencode


class BuildExamples(_ImageStep):
    """PCollection[PendingImage] -> the same with nothing but their outcomes."""

    work = _build


@dataclass
class AssignSplits(beam.PTransform):
    """Makes an element of each image of a PCollection of batches of references; what is left out is not passed on.

    Attributes:
        settings: what the dataset is.
        cutoffs: what `limit` and `splits.stratify` need, a `SplitCutoffs` or a side input of one.
    """

    settings: DatasetSettings
    cutoffs: Any = _NO_CUTOFFS

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> beam.PCollection[PendingImage]:
        """PCollection[ReferenceBatch] -> PCollection[PendingImage]."""
        return batches | beam.FlatMap(_assign, self.settings, self.cutoffs) | beam.Reshuffle()


def _assign(batch: ReferenceBatch, settings: DatasetSettings, cutoffs: SplitCutoffs) -> Iterator[PendingImage]:
    splitter = ImageSplitter(settings.seed, settings.splits, cutoffs)
    for notice in batch.notices:
        if notice.status == "fatal":
            raise ValueError(f"{notice.uri}: {notice.detail}")
    yield from (PendingImage("", notice) for notice in batch.notices if notice.status == "rejected")
    yield from (PendingImage(split, ref) for ref in batch.refs if (split := splitter.place(ref)[1]))


@dataclass
class SplitExamples(beam.PTransform):
    """Makes a PCollection of each split's Examples.

    Attributes:
        settings: what the dataset is.
    """

    settings: DatasetSettings

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, images: beam.PCollection[PendingImage]) -> dict[str, beam.PCollection[bytes]]:
        """PCollection[PendingImage] -> {split: PCollection[serialised Example]}."""
        splits = self.settings.splits.names
        return {name: images | name >> beam.FlatMap(_record, name).with_output_types(bytes) for name in splits}


def _record(image: PendingImage, split: str) -> Iterator[bytes]:
    if image.split == split and image.outcome is not None and image.outcome.record is not None:
        yield image.outcome.record


@dataclass
class WriteExamples(beam.PTransform):
    """Writes each split's Examples with Beam's `WriteToTFRecord`, and reads the files back.

    Attributes:
        settings: what the dataset is.
        folder: where the files are written.
        count: the number of each split's files.
    """

    settings: DatasetSettings
    folder: str
    count: int

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, splits: dict[str, beam.PCollection[bytes]]) -> beam.PCollection[ShardReport]:
        """{split: PCollection[serialised Example]} -> PCollection[ShardReport]: the number of records of each file."""
        compression = "gzip" if self.settings.compression == "gzip" else "none"
        kind = CompressionTypes.GZIP if compression == "gzip" else CompressionTypes.UNCOMPRESSED
        how = {"file_name_suffix": ".tfrecord", "num_shards": self.count, "compression_type": kind}
        found = []
        for name, examples in splits.items():
            write = beam.io.WriteToTFRecord(storage.join(self.folder, name), **how)
            files = examples | f"Write {name}" >> write
            # Beam gives the names at the end of time, where some runners (Prism) process nothing more: a side input
            # brings them back to its beginning.
            once = examples.pipeline | f"Once {name}" >> beam.Create([name])
            named = once | f"Name {name}" >> beam.FlatMap(lambda _, paths: paths, AsIter(files))
            spread = named | f"Spread {name}" >> beam.Reshuffle()
            found.append(spread | f"Read {name}" >> beam.Map(read_written, name, compression))
        return found | beam.Flatten()


def read_written(path: str, split: str, compression: str = "none") -> ShardReport:
    """What is in a file that Beam wrote, read back from it."""
    read = read_back(path, compression)
    index = int(path.rpartition("-of-")[0].rpartition("-")[2])
    report = ShardReport(split, index, read.records, RowTotals(), AnnotationTotals(), records=read.records)
    return replace(report, bytes=read.bytes, sha256=read.sha256)


def count_outcome(image: PendingImage) -> FinishedShards:
    """The totals of one image, to be added up."""
    if image.outcome is None:
        return FinishedShards(problems={"": BoxExample(image.ref.key, 0, image.problem)})
    PROGRESS.add_done(1)
    row, annotations = image.outcome.row, image.outcome.annotations
    totals = FinishedShards(splits={image.split: RowTotals.of([row], image.split)}, digest=f"{digest_of(image.ref):x}")
    if annotations is not None:
        add_image(totals.annotations, row.key, annotations)
    if isinstance(row, RejectedRow) and row.rejected is not None:
        text = " ".join(f"{row.key} ({row.detail})".split())
        totals.rejected_such[row.rejected] = BoxExample(row.key, 0, text)
    return totals


def convert_with_beam(
    batches: beam.PCollection[ReferenceBatch],
    settings: DatasetSettings,
    folder: str,
    count: int,
    labels: Any = _NO_LABELS,
    cutoffs: Any = _NO_CUTOFFS,
    own: beam.PTransform | None = None,
) -> beam.PCollection[FinishedShards]:
    """Chains the steps: converts each image, writes each split's Examples, and counts both.

    Args:
        batches: PCollection[ReferenceBatch].
        settings: what the dataset is.
        folder: where the files are written.
        count: the number of each split's files.
        labels: class ids, a `LabelMap` or a side input of one.
        cutoffs: what `limit` and `splits.stratify` need, a `SplitCutoffs` or a side input of one.
        own: a step of your own between `ReencodeImages` and `BuildExamples`: PCollection[PendingImage] -> the same.

    Returns:
        PCollection[FinishedShards] of exactly one element; its `find_problem` says whether the files may be used.
    """
    images = batches | AssignSplits(settings, cutoffs) | ReadImages(settings, labels) | ReencodeImages(settings, labels)
    built = (images | own if own else images) | BuildExamples(settings, labels)
    files = built | SplitExamples(settings) | WriteExamples(settings, folder, count)
    return (built | beam.Map(count_outcome), files) | beam.Flatten() | beam.CombineGlobally(GatherReports())
