"""The steps of `--writer=beam`, and of pipelines of your own: read images, prepare them, build Examples, write those.

The main job does the same work in the step that writes shards, so that pixels are never shuffled. Here, each image is
an element of its own. Every step gives two collections: what it makes, and `Tally`s of all that was rejected or built
so far. The next step takes both.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.metrics import Metrics
from apache_beam.pvalue import AsIter, TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.decorators import no_annotations

from recordmill import storage
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.totals import AnnotationTotals, RowTotals
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.tfrecord_file import DamagedFileError, read_back
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.records.convert_image import (
    LoadedImage,
    build_record,
    load_image,
    prepare_loaded,
    reject_image,
)
from recordmill.transforms.records.features.compute import FeatureFunctionError
from recordmill.transforms.shards.progress import PROGRESS
from recordmill.transforms.tally import Tally, merge_tallies

Made = tuple[Any, "beam.PCollection[Tally]"]
"""What a step makes, and the tallies so far."""

_SUFFIX = ".tfrecord"
_TALLIES = "tallies"
_NO_LABELS = LabelMap({})
_NO_CUTOFFS = SplitCutoffs()

coders.registry.register_coder(Tally, coders.PickleCoder)


class _Step(beam.DoFn):
    """Makes something of each element `(split, reference, ...)`, or counts why it cannot.

    Args:
        settings: what the dataset is.
        make: takes the layout, class ids and an element; gives what follows the reference in the next element.
    """

    def __init__(self, settings: DatasetSettings, make: Callable[..., tuple[Any, ...]] = tuple) -> None:
        self._settings = settings
        self._make = make

    def setup(self) -> None:
        self._layout = ExampleLayout(self._settings)

    def start_bundle(self) -> None:
        self._tally = Tally()

    def process(self, element: tuple[Any, ...], labels: LabelMap) -> Iterator[Any]:
        split, ref, *_ = element
        try:
            yield split, ref, *self._make(self._layout, labels, element)
        except Rejected as rejected:
            self._reject(split, ref, rejected, labels)
        except FeatureFunctionError as error:
            self._tally.problems.append(str(error))

    def _reject(self, split: str, ref: ImageRef, rejected: Rejected, labels: LabelMap) -> None:
        self._tally.add(split, ref, reject_image(ref, rejected, labels))
        Metrics.counter("recordmill", f"rejected_{rejected.reason}").inc()
        PROGRESS.add_done(1)

    def finish_bundle(self) -> Iterator[TaggedOutput]:
        yield TaggedOutput(_TALLIES, GlobalWindows.windowed_value(self._tally))


class _Assign(_Step):
    """Assigns each reference of a batch to its split."""

    def process(  # type: ignore[override]
        self, batch: ReferenceBatch, cutoffs: SplitCutoffs
    ) -> Iterator[tuple[str, ImageRef]]:
        splitter = ImageSplitter(self._settings.seed, self._settings.splits, cutoffs)
        for ref in batch.refs:
            _, split, left_out = splitter.place(ref)
            if not left_out:
                self._tally.assigned[split] += 1
                yield split, ref
        for notice in batch.notices:
            if notice.status == "fatal":
                raise ValueError(f"{notice.uri}: {notice.detail}")
            if notice.status == "rejected":
                self._reject("", notice, Rejected("list", notice.reason, notice.detail), _NO_LABELS)


class _Build(_Step):
    """Builds each Example, and counts it."""

    def process(self, element: tuple[Any, ...], labels: LabelMap) -> Iterator[tuple[str, bytes]]:
        for split, ref, image in super().process(element, labels):
            self._tally.add(split, ref, image)
            PROGRESS.add_done(1)
            yield split, image.record


def _apply(step: _Step, made: Made, side: Any) -> Made:
    elements, tallies = made
    outputs = elements | beam.ParDo(step, side).with_outputs(_TALLIES, main="made")
    return outputs.made, (tallies, outputs[_TALLIES]) | beam.Flatten()


def _load(layout: ExampleLayout, labels: LabelMap, element: tuple[str, ImageRef]) -> tuple[Any]:
    split, ref = element
    return (load_image(ref, layout.settings, labels, split),)


def _prepare(layout: ExampleLayout, _: LabelMap, element: tuple[Any, ...]) -> tuple[Any, ...]:
    loaded: LoadedImage = element[-1]
    return loaded, *prepare_loaded(loaded, layout)


def _build(layout: ExampleLayout, labels: LabelMap, element: tuple[Any, ...]) -> tuple[Any]:
    *_, loaded, image, computed = element
    return (build_record(loaded, image, computed, layout, labels),)


@dataclass
class AssignSplits(beam.PTransform):
    """Gives each image of a PCollection of batches of references its split.

    What the settings leave out is not passed on.

    Attributes:
        settings: what the dataset is.
        cutoffs: what `limit` and `splits.stratify` need, a `SplitCutoffs` or a side input of one.
    """

    settings: DatasetSettings
    cutoffs: Any = _NO_CUTOFFS

    @no_annotations  # type: ignore[untyped-decorator]  # Beam knows no type hints of several PCollections, and warns of each
    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> Made:
        """PCollection[ReferenceBatch] -> PCollection[(split, ImageRef)], PCollection[Tally]."""
        step = beam.ParDo(_Assign(self.settings), self.cutoffs).with_output_types(tuple[str, ImageRef])
        outputs = batches | step.with_outputs(_TALLIES, main="refs")
        return outputs.refs | beam.Reshuffle(), outputs[_TALLIES]


@dataclass
class ReadImages(beam.PTransform):
    """Reads each image of a PCollection of references; those without a class id are not read.

    Attributes:
        settings: what the dataset is.
        labels: class ids, a `LabelMap` or a side input of one.
    """

    settings: DatasetSettings
    labels: Any

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, refs: Made) -> Made:
        """PCollection[(split, ImageRef)] -> PCollection[(split, ImageRef, LoadedImage)]; and tallies."""
        return _apply(_Step(self.settings, _load), refs, self.labels)


@dataclass
class ReencodeImages(beam.PTransform):
    """Checks each image of a PCollection, re-encodes it if needed, and computes the features that functions give.

    Attributes:
        settings: what the dataset is.
    """

    settings: DatasetSettings

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, images: Made) -> Made:
        """PCollection[(split, ImageRef, LoadedImage)] -> PCollection[(the same, PreparedImage, features)]; and tallies.

        The prepared image is None where none is stored.
        """
        return _apply(_Step(self.settings, _prepare), images, _NO_LABELS)


@dataclass
class BuildExamples(beam.PTransform):
    """Serializes each prepared image of a PCollection.

    Attributes:
        settings: what the dataset is.
        labels: class ids, a `LabelMap` or a side input of one.
    """

    settings: DatasetSettings
    labels: Any

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, images: Made) -> Made:
        """PCollection[(split, ImageRef, LoadedImage, PreparedImage, features)] -> PCollection[(split, Example)]."""
        return _apply(_Build(self.settings, _build), images, self.labels)


@dataclass
class SplitExamples(beam.PTransform):
    """Makes a PCollection of each split's serialised Examples.

    Attributes:
        settings: what the dataset is.
    """

    settings: DatasetSettings

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, made: Made) -> Made:
        """PCollection[(split, Example)] -> {split: PCollection[Example]}; and tallies."""
        examples, tallies = made
        names = self.settings.splits.names
        parts = examples | beam.Partition(_index_of, len(names), names)  # type: ignore[arg-type]  # Beam takes functions too
        values = beam.Values().with_output_types(bytes)
        named = zip(names, parts, strict=True)
        return {name: part | f"Examples {name}" >> values for name, part in named}, tallies


def _index_of(element: tuple[str, bytes], _: int, names: tuple[str, ...]) -> int:
    return names.index(element[0])


@dataclass
class WriteExamples(beam.PTransform):
    """Writes each split's Examples with Beam's `WriteToTFRecord`, and reads the files back.

    Attributes:
        settings: what the dataset is; `shards.count` is the number of each split's files.
        folder: where they are written.
    """

    settings: DatasetSettings
    folder: str

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, made: Made) -> "beam.PCollection[Tally]":
        """{split: PCollection[Example]}, tallies -> PCollection[Tally] of exactly one element."""
        splits, tallies = made
        packed = self.settings.compression == "gzip"
        found = [tallies]
        for name, examples in splits.items():
            files = examples | f"Write {name}" >> beam.io.WriteToTFRecord(
                storage.join(self.folder, name),
                file_name_suffix=_SUFFIX,
                num_shards=self.settings.shards.count or 0,
                compression_type=CompressionTypes.GZIP if packed else CompressionTypes.UNCOMPRESSED,
            )
            # Beam gives the names at the end of time, where some runners (Prism) process nothing more: a side input
            # brings them back to its beginning.
            once = examples.pipeline | f"Once {name}" >> beam.Create([None])
            named = once | f"Name {name}" >> beam.FlatMap(_each, AsIter(files)).with_output_types(str)
            read = beam.Map(read_written, name, "gzip" if packed else "none").with_output_types(Tally)
            found.append(named | f"Spread {name}" >> beam.Reshuffle() | f"Read {name}" >> read)
        return found | beam.Flatten() | "MergeTallies" >> beam.CombineGlobally(merge_tallies)


def _each(_: None, names: Iterable[str]) -> Iterable[str]:
    return names


def read_written(path: str, split: str, compression: str) -> Tally:
    """What is in a file that Beam wrote, read back from it."""
    try:
        contents = read_back(path, compression)
    except DamagedFileError as error:
        return Tally(problems=[f"{path} is not what was written: {error}"])
    index = int(path.rpartition("-of-")[0].rpartition("-")[2])
    file = ShardReport(split, index, 0, RowTotals(), AnnotationTotals())
    return Tally(files=[replace(file, records=contents.records, bytes=contents.bytes, sha256=contents.sha256)])


def written_name(split: str, index: int, count: int) -> str:
    """The name of a file that `WriteExamples` writes."""
    return f"{split}-{index:05d}-of-{count:05d}{_SUFFIX}"
