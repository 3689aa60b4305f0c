"""The steps of `--writer=beam`, and of pipelines of your own.

They read and prepare images, build Examples, and write them. The main job does the same work in the
step that writes shards, so pixels are never shuffled. Here, each image is an element of its own. A
rejected image carries the reason, so all images reach the end, where they are counted.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.pvalue import AsIter
from pydantic import TypeAdapter

from recordmill import storage
from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.schemas.dataset.file_names import SHARD, parse_beam_name
from recordmill.schemas.dataset.side_files import RejectedRow
from recordmill.schemas.dataset.totals import (
    AnnotationTotals,
    BoxExample,
    FinishedShards,
    RowTotals,
    ShardReport,
)
from recordmill.schemas.digests import digest_of
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.schemas.str_path import StrPath
from recordmill.storage.tfrecord_file import read_back
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.plan_shards import ShuffleReferences
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.records import convert_image
from recordmill.transforms.records.annotations import add_image
from recordmill.transforms.records.image_functions import FunctionError
from recordmill.transforms.shards.resources import PROGRESS


@dataclass(frozen=True, slots=True)
class PendingImage:
    """An image on its way through the steps; each step adds something, until there is an outcome.

    Attributes:
        split: the split that it goes to.
        ref: the reference.
        loaded: what was read.
        image: what will be stored of it, if anything.
        features: what functions computed.
        outcome: its Example, or why there is none; a sentence if it fails the run.
    """

    split: str
    ref: ImageRef
    loaded: Any = None
    image: PreparedImage | None = None
    features: Any = None
    outcome: convert_image.ConvertedImage | str | None = None


@dataclass
class _ImageStep(beam.PTransform):
    """A step that handles images one by one.

    Attributes:
        settings: what the dataset is.
        plan: the `DatasetPlan`, which has the class ids, or a side input with it.
    """

    work: ClassVar[Any]
    settings: DatasetSettings
    plan: Any

    def expand(self, images: beam.PCollection[Any]) -> beam.PCollection[Any]:
        work = beam.Map(_advance, type(self).work, ExampleLayout(self.settings), self.plan)
        return images | work.with_output_types(Any)  # Beam would make a schema of the type


def _advance(
    image: PendingImage, work: Any, layout: ExampleLayout, plan: DatasetPlan
) -> PendingImage:
    """Does the work of a step for an image that has no outcome yet."""
    try:
        if image.outcome is None:
            return work(image, layout, plan)
        return image
    except Rejected as rejected:
        rejection = convert_image.reject_image(image.ref, rejected, plan.label_map, image.loaded)
        return PendingImage(image.split, image.ref, outcome=rejection)
    except FunctionError as error:
        return PendingImage(image.split, image.ref, outcome=str(error))


def _read(image: PendingImage, layout: ExampleLayout, plan: DatasetPlan) -> PendingImage:
    return replace(
        image,
        loaded=convert_image.load_image(image.ref, layout.settings, plan.label_map, image.split),
    )


def _reencode(image: PendingImage, layout: ExampleLayout, _: DatasetPlan) -> PendingImage:
    prepared, features = convert_image.prepare_loaded(image.loaded, layout)
    return replace(image, image=prepared, features=features)


def _build(image: PendingImage, layout: ExampleLayout, plan: DatasetPlan) -> PendingImage:
    built = convert_image.build_record(
        image.loaded, image.image, image.features, layout, plan.label_map
    )
    return PendingImage(image.split, image.ref, outcome=built)


class ReadImages(_ImageStep):
    """PCollection[PendingImage] -> the same with `loaded`; only images with a class id are read."""

    work = _read


class ReencodeImages(_ImageStep):
    """PCollection[PendingImage] -> the same with `image` and `features`.

    Images are checked and, if needed, re-encoded.
    """

    work = _reencode

    def expand(self, images: beam.PCollection[Any]) -> beam.PCollection[Any]:
        """Checks `settings.images`, which may be made in Python, and adds the step.

        Raises:
            ValueError: a value in it is not allowed.
        """
        TypeAdapter(ImageSettings).validate_python(asdict(self.settings.images))
        return super().expand(images)


class BuildExamples(_ImageStep):
    """PCollection[PendingImage] -> the same with `outcome` only."""

    work = _build


@dataclass
class SplitExamples(beam.PTransform):
    """Makes one PCollection of Examples per split.

    Attributes:
        settings: what the dataset is.
    """

    settings: DatasetSettings

    def expand(self, images: beam.PCollection[Any]) -> dict[str, beam.PCollection[bytes]]:
        """PCollection[PendingImage] -> {split: PCollection[serialized Example]}."""
        splits = self.settings.splits.names
        return {
            name: images | name >> beam.FlatMap(_record, name).with_output_types(bytes)
            for name in splits
        }


def _record(image: PendingImage, split: str) -> Iterator[bytes]:
    if (
        image.split == split
        and isinstance(image.outcome, convert_image.ConvertedImage)
        and image.outcome.record
    ):
        yield image.outcome.record


def _spread(shard: tuple[str, int], batches: Iterable[ShardBatch]) -> Iterator[PendingImage]:
    for batch in batches:
        yield from (PendingImage(shard[0], ref) for ref in batch.refs)


def read_written(path: str, compression: str = "none") -> ShardReport:
    """Reads back a file that Beam wrote, and reports its contents."""
    split, index = parse_beam_name(path.rpartition("/")[2])
    read = read_back(path, compression)
    none = (RowTotals(), AnnotationTotals(), "")  # its images are counted separately
    return ShardReport(split, index, read.records, *none, read.records, read.bytes, read.sha256)


def count_outcome(image: PendingImage) -> FinishedShards:
    """The totals of one image, to be added up."""
    if not isinstance(image.outcome, convert_image.ConvertedImage):
        return FinishedShards(
            rejected_examples={"": BoxExample(image.ref.key, 0, str(image.outcome))}
        )
    PROGRESS.add_done(1)
    row, annotations = image.outcome.row, image.outcome.annotations
    totals = FinishedShards(
        splits={image.split: RowTotals.of([row], image.split)}, digest=f"{digest_of(image.ref):x}"
    )
    if annotations:
        add_image(totals.annotations, row.key, annotations)
    if isinstance(row, RejectedRow) and row.reason is not None:
        totals.rejected_examples[row.reason] = BoxExample(row.key, 0, f"{row.key} ({row.detail})")
    return totals


def convert_with_beam(
    batches: beam.PCollection[Any],
    settings: DatasetSettings,
    folder: StrPath,
    plan: Any,
    own: Any = None,
) -> beam.PCollection[Any]:
    """Chains the steps, writes splits with Beam's `WriteToTFRecord`, and counts images and files.

    Args:
        batches: PCollection[ReferenceBatch].
        settings: what the dataset is.
        folder: where `shards.count` files of each split are written.
        plan: the `DatasetPlan`, or a side input with it.
        own: a step of your own between `ReencodeImages` and `BuildExamples`:
            PCollection[PendingImage] -> the same.

    Returns:
        PCollection[FinishedShards] of exactly one element; its `find_problem` says whether the
        files may be used.
    """
    folder = os.fspath(folder)
    spread = beam.FlatMapTuple(_spread).with_output_types(Any)
    listed = (
        batches | ShuffleReferences(settings, plan) | "SpreadImages" >> spread | beam.Reshuffle()
    )
    images = listed | ReadImages(settings, plan) | ReencodeImages(settings, plan)
    built = (images | own if own else images) | BuildExamples(settings, plan)
    is_packed = settings.compression == "gzip"
    how = {"file_name_suffix": f".{SHARD}", "num_shards": settings.shards.count or 0}
    how["compression_type"] = "gzip" if is_packed else "uncompressed"
    counted = [built | "CountImages" >> beam.Map(count_outcome).with_output_types(Any)]
    for split, examples in (built | SplitExamples(settings)).items():
        files = examples | f"Write {split}" >> beam.io.WriteToTFRecord(
            storage.join(folder, split), **how
        )
        # Beam emits the names at the end of time, when some runners (Prism) process nothing more: a
        # side input brings them back to the beginning. One per split, because Prism loses some
        # names if they are flattened.
        once = batches.pipeline | f"Once {split}" >> beam.Create([0])
        named = once | f"Name {split}" >> beam.FlatMap(lambda _, names: names, AsIter(files))
        spread = named | f"Spread {split}" >> beam.Reshuffle()
        counted.append(
            spread | f"Read {split}" >> beam.Map(read_written, "gzip" if is_packed else "none")
        )
    return counted | beam.Flatten() | beam.CombineGlobally(gather_reports)
