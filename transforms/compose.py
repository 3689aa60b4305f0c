"""The steps of `--writer=beam`, and of pipelines of your own: read images, prepare them, build Examples, write those.

The main job does the same work in the step that writes shards, so that pixels are never shuffled. Here, each image is
an element of its own. Every step gives two collections: what it makes, and a `Tally` of what was rejected or built in
each bundle so far. The next step takes both.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam import coders
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.pvalue import AsIter, TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints.decorators import no_annotations

from recordmill import storage
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.sidecar_row import RejectedRow
from recordmill.schemas.dataset.totals import AnnotationTotals, BoxExample, RowTotals, Totals
from recordmill.schemas.formatting import format_count
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.reference_digest import add_digests, digest_of
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.tfrecord_file import read_back
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.records import convert_image
from recordmill.transforms.records.annotations import add_image
from recordmill.transforms.records.features.find_function import FunctionError
from recordmill.transforms.shards.progress import PROGRESS

Made = tuple[Any, "beam.PCollection[Tally]"]
"""What a step makes, and the tallies so far."""

_NO_CUTOFFS, _NO_LABELS = SplitCutoffs(), LabelMap({})


@dataclass(slots=True)
class Tally(Totals):
    """The outcomes of references, added up in any order.

    Attributes:
        splits: totals by split: the Examples that were built, and what was rejected.
        annotations: boxes and labels that are in no Example.
        digest: `schemas.reference_digest.digest_of` the references, added up.
        rejected_such: for each reason the first rejected reference by key, in words.
        problems: the first of the sentences that fail the run, if there are any.
        files: the files that were written; their numbers are read from them.
    """

    splits: dict[str, RowTotals] = field(default_factory=dict)
    annotations: AnnotationTotals = field(default_factory=AnnotationTotals)
    digest: int = 0
    rejected_such: dict[str, BoxExample] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    files: list[ShardReport] = field(default_factory=list)

    @classmethod
    def of(cls, parts: "Iterable[Tally]") -> "Tally":
        """All of them together."""
        total = cls()
        for part in parts:
            total.merge(part)
        return total

    def merge(self, other: "Tally") -> None:
        """Adds the counts of others; one problem stays, since a function may fail for each of a billion images."""
        Totals.merge(self, other)
        self.problems = sorted(self.problems)[:1]

    def add(self, split: str, ref: ImageRef, image: convert_image.ConvertedImage) -> None:
        """Adds the outcome of one reference."""
        row = image.row
        self.splits.setdefault(split, RowTotals()).add(row, split)
        self.digest = add_digests(self.digest, digest_of(ref))
        if image.annotations is not None:
            add_image(self.annotations, row.key, image.annotations)
        if isinstance(row, RejectedRow) and row.rejected is not None:
            such = BoxExample(row.key, 0, " ".join(f"{row.key} ({row.detail})".split()))
            self.rejected_such[row.rejected] = min(such, self.rejected_such.get(row.rejected, such))
        PROGRESS.add_done(1)

    def find_problem(self) -> str:
        """Why the files may not be used, in a sentence; the empty string if they hold each Example that was built."""
        problems = list(self.problems)
        for name, rows in sorted(self.splits.items()):
            found = sum(file.records for file in self.files if file.split == name)
            if found != rows.records:
                built = f"split {name} has {format_count(rows.records, 'Example')}"
                problems.append(f"{built}, and its files hold {found:,}: something was lost or written twice")
        return min(problems, default="")


coders.registry.register_coder(Tally, coders.PickleCoder)


class _Step(beam.DoFn):
    """Makes something of each element `(split, reference, ...)`, or counts why it cannot."""

    def __init__(self, settings: DatasetSettings) -> None:
        self._settings = settings

    def setup(self) -> None:
        self._layout = ExampleLayout(self._settings)

    def start_bundle(self) -> None:
        self._tally = Tally()

    def process(self, element: tuple[Any, ...], labels: LabelMap) -> Iterator[Any]:
        split, ref, *_ = element
        try:
            yield self._make(element, labels)
        except Rejected as rejected:
            self._tally.add(split, ref, convert_image.reject_image(ref, rejected, labels))
        except FunctionError as error:
            self._tally.merge(Tally(problems=[str(error)]))

    def _make(self, element: tuple[Any, ...], labels: LabelMap) -> tuple[Any, ...]:
        raise NotImplementedError

    def finish_bundle(self) -> Iterator[TaggedOutput]:
        yield TaggedOutput("tallies", GlobalWindows.windowed_value(self._tally))


class _Read(_Step):
    def _make(self, element: tuple[Any, ...], labels: LabelMap) -> tuple[Any, ...]:
        split, ref = element
        return split, ref, convert_image.load_image(ref, self._settings, labels, split)


class _Reencode(_Step):
    def _make(self, element: tuple[Any, ...], labels: LabelMap) -> tuple[Any, ...]:
        return *element, *convert_image.prepare_loaded(element[2], self._layout)


class _Build(_Step):
    def _make(self, element: tuple[Any, ...], labels: LabelMap) -> tuple[Any, ...]:
        split, ref, loaded, image, computed = element
        built = convert_image.build_record(loaded, image, computed, self._layout, labels)
        self._tally.add(split, ref, built)
        return split, built.record


@dataclass
class _ImageStep(beam.PTransform):
    """A step for each image of a PCollection.

    Attributes:
        settings: what the dataset is.
        labels: class ids, a `LabelMap` or a side input of one.
    """

    step: ClassVar[type[_Step]]
    settings: DatasetSettings
    labels: Any = _NO_LABELS

    @no_annotations  # type: ignore[untyped-decorator]  # Beam knows no type hints of several PCollections, and warns of each
    def expand(self, made: Made) -> Made:
        elements, tallies = made
        outputs = elements | beam.ParDo(self.step(self.settings), self.labels).with_outputs("tallies", main="made")
        return outputs.made, (tallies, outputs.tallies) | beam.Flatten()


class ReadImages(_ImageStep):
    """PCollection[(split, ImageRef)] -> PCollection[(split, ImageRef, LoadedImage)]; reads what has a class id."""

    step = _Read


class ReencodeImages(_ImageStep):
    """... -> PCollection[(..., PreparedImage or None, features)]; checks images, and re-encodes them if needed."""

    step = _Reencode


class BuildExamples(_ImageStep):
    """... -> PCollection[(split, serialised Example)]."""

    step = _Build


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
    def expand(self, batches: beam.PCollection[ReferenceBatch]) -> Made:
        """PCollection[ReferenceBatch] -> PCollection[(split, ImageRef)], and no tallies yet."""
        assign = beam.FlatMap(_assign, self.settings, self.cutoffs)
        refs = batches | assign.with_output_types(tuple[str, Any])  # the coder of ImageRef would make one of a Notice
        return refs | beam.Reshuffle(), batches.pipeline | "NoTallies" >> beam.Create([Tally()])


def _assign(batch: ReferenceBatch, settings: DatasetSettings, cutoffs: SplitCutoffs) -> Iterator[tuple[str, ImageRef]]:
    splitter = ImageSplitter(settings.seed, settings.splits, cutoffs)
    for notice in batch.notices:
        if notice.status == "fatal":
            raise ValueError(f"{notice.uri}: {notice.detail}")
    yield from (("", notice) for notice in batch.notices if notice.status == "rejected")
    yield from ((split, ref) for ref in batch.refs if (split := splitter.place(ref)[1]))


@dataclass
class SplitExamples(beam.PTransform):
    """Makes a PCollection of each split's Examples.

    Attributes:
        settings: what the dataset is.
    """

    settings: DatasetSettings

    @no_annotations  # type: ignore[untyped-decorator]
    def expand(self, made: Made) -> Made:
        """PCollection[(split, serialised Example)] -> {split: PCollection[serialised Example]}; and tallies."""
        examples, tallies = made
        names = self.settings.splits.names
        parts = zip(names, examples | beam.Partition(_index_of, len(names), names), strict=True)  # type: ignore[arg-type]
        values = beam.Values().with_output_types(bytes)
        return {name: part | f"Examples {name}" >> values for name, part in parts}, tallies


def _index_of(element: tuple[str, bytes], _: int, names: tuple[str, ...]) -> int:
    return names.index(element[0])


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
    def expand(self, made: Made) -> beam.PCollection[Tally]:
        """{split: PCollection[serialised Example]}, tallies -> PCollection[Tally] of exactly one element."""
        splits, tallies = made
        packed = self.settings.compression == "gzip"
        kind = CompressionTypes.GZIP if packed else CompressionTypes.UNCOMPRESSED
        found = [tallies]
        for name, examples in splits.items():
            prefix = storage.join(self.folder, name)
            write = beam.io.WriteToTFRecord(
                prefix, file_name_suffix=".tfrecord", num_shards=self.count, compression_type=kind
            )
            files = examples | f"Write {name}" >> write
            # Beam gives the names at the end of time, where some runners (Prism) process nothing more: a side input
            # brings them back to its beginning.
            once = examples.pipeline | f"Once {name}" >> beam.Create([name])
            named = once | f"Name {name}" >> beam.FlatMap(_pair, AsIter(files)) | f"Spread {name}" >> beam.Reshuffle()
            read = beam.MapTuple(read_written, packed=packed).with_output_types(Tally)
            found.append(named | f"Read {name}" >> read)
        return found | beam.Flatten() | "AddUp" >> beam.CombineGlobally(Tally.of)


def _pair(split: str, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    return ((split, path) for path in paths)


def read_written(split: str, path: str, packed: bool = False) -> Tally:
    """What is in a file that Beam wrote, read back from it."""
    contents = read_back(path, "gzip" if packed else "none")
    index = int(path.rpartition("-of-")[0].rpartition("-")[2])
    file = ShardReport(split, index, contents.records, RowTotals(), AnnotationTotals())
    return Tally(files=[replace(file, records=contents.records, bytes=contents.bytes, sha256=contents.sha256)])
