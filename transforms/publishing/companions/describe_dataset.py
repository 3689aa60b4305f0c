"""All files that describe a dataset, made while it is published.

A describer takes the dataset, complete in staging, and yields `(file name, content)` for each file that it makes, if
any. The content comes in pieces, so a file about every record needs no more memory than one about none. The same
dataset gives the same bytes, which do not depend on place, time or run.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter

from recordmill import storage
from recordmill.schemas.dataset.file_names import EXAMPLES, INDEX, REPORT_DATA, VERSIONS, index_name
from recordmill.schemas.dataset.json_values import as_json, to_json
from recordmill.schemas.dataset.record_index import pack_head, pack_table, parse_places
from recordmill.schemas.dataset.side_files import ReportData
from recordmill.schemas.dataset.templates import load_template
from recordmill.schemas.label_map import LabelMap, quoted
from recordmill.storage.record_reader import FRAMING_BYTES
from recordmill.transforms.publishing.companions.croissant import describe_croissant
from recordmill.transforms.publishing.companions.data_card import describe_card
from recordmill.transforms.publishing.companions.tfds_files import describe_tfds
from recordmill.transforms.publishing.marker import StagedDataset
from recordmill.transforms.records.change_examples import read_examples

Describer = Callable[[StagedDataset], Iterable[tuple[str, Iterable[bytes]]]]


def describe_label_map(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Makes the label map of TensorFlow's Object Detection API, if the convention has a file for it: `label_map.pbtxt`.

    Its readers reserve the id 0 for the background and refuse a file in which a class has it (object_detection/utils/
    label_map_util.py, `_validate_label_map`). COCO files from other tools often list a class 0 that no box has.
    """
    if name := dataset.layout.convention.label_map_file:
        counted = {label for split in dataset.marker.splits.values() for label in split.class_counts}
        labels = {label: number for label, number in dataset.marker.labels.items() if number or label in counted}
        yield name, [LabelMap(labels).as_pbtxt().encode()]


def note_background(labels: Mapping[str, int], counts: Mapping[str, int], file: str) -> str:
    """A note if a label map is written and a class that is not empty has the id 0; else the empty string.

    Args:
        labels: class ids.
        counts: the size of each class.
        file: the label map's name; empty if there is none.
    """
    names = [label for label, number in labels.items() if not number and counts.get(label)]
    if not names or not file:
        return ""
    return (
        f"{file} gives {names[0]!r} the id 0, which the Object Detection API keeps for the background, and refuses: "
        "set labels.ids=names to count classes from 1"
    )


def describe_schema(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Makes `schema.pbtxt`, for any dataset: a `tensorflow_metadata.proto.v0.Schema`, for TFX and TFT.

    `tensorflow_transform.tf_metadata.schema_utils.schema_as_feature_spec` turns it into features for
    `tf.io.parse_example`: an empty shape gives `FixedLenFeature([])`, no shape `VarLenFeature`. Written as text, it
    needs no import.
    """
    text = load_template(__package__, "schema.pbtxt.jinja", quoted=quoted).render(
        features=dataset.layout.features, sure=dataset.sure_features, labels=dataset.marker.labels
    )
    yield "schema.pbtxt", [text.encode()]


def describe_report_data(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Makes `report.json`, if the settings ask for a report and there is something in it."""
    if not dataset.settings.report:
        return
    first = sorted((report for report in dataset.reports if not report.index), key=attrgetter("split"))
    data = ReportData(tuple(dataset.remarks), read_examples(dataset.path_of(report, EXAMPLES) for report in first))
    if data != ReportData():
        yield REPORT_DATA, [as_json(to_json(data))]


def describe_records(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Makes `records.index`, for any dataset: the place of each record, as docs/format.md describes it."""
    places = (dataset.read_column(shard.report, "places") for shard in dataset.shards)
    yield INDEX, chain([pack_head([shard.entry for shard in dataset.shards])], places)


def describe_versions(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Makes `records.versions`, for any dataset: a later run copies unchanged records without reading their sources."""
    paths = [dataset.path_of(shard.report, "versions") for shard in dataset.shards]
    yield VERSIONS, chain([pack_table(map(storage.read_range, paths), len(paths))], map(storage.read_range, paths))


def describe_index(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Makes `sidecars/<shard>.idx` for each shard, if the settings ask for it.

    Indexes are for readers that seek: DALI (`tfrecord2idx`) and PyTorch's `tfrecord` package. One line per record,
    `<offset> <length>`, in bytes; the length includes the 16 bytes of framing. They are in `sidecars/`, because a
    reader that globs for shards (`train-*`) must not find them.
    """
    for shard in dataset.shards if dataset.settings.index_files else ():
        places = parse_places(dataset.read_column(shard.report, "places"))[:, :2].tolist()
        lines = "".join(f"{offset} {length + FRAMING_BYTES}\n" for offset, length in places)
        yield index_name(shard.name), [lines.encode()]


DESCRIBERS: tuple[Describer, ...] = (
    describe_card,
    describe_label_map,
    describe_tfds,
    describe_schema,
    describe_croissant,
    describe_records,
    describe_versions,
    describe_report_data,
    describe_index,
)
"""All describers, in the order in which the marker lists their files."""


def describe_dataset(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yields the name below the output folder and the content of every file that describes a dataset.

    Consume each content before asking for the next file.
    """
    for describe in DESCRIBERS:
        yield from describe(dataset)
