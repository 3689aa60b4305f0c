import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from make_marker import make_marker
from make_settings import make_settings
from write_shard import write_shard

from recordmill.annotations.shapes import Shape
from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.reading.report import image_statistics
from recordmill.reading.report.image_statistics import (
    HEAT_CELLS,
    Column,
    ObjectPlaces,
    choose_evenly,
    gather_values,
)
from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature, encode_example
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.transforms.inputs.sources.table import Table
from recordmill.transforms.inputs.tables.cells import ColumnSettings
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.shard_files import InputDigests

TABLE = make_settings(
    convention="plain",
    source=Table(
        columns={
            "count": ColumnSettings(type="int", default=0),
            "name": ColumnSettings(type="string", default=""),
            "sizes": ColumnSettings(type="float[]"),
        }
    ),
)
BOXES = make_settings(convention="tf_object_detection")


@pytest.fixture
def staged(tmp_path):
    """`staged(settings, shards)`: a dataset whose shards hold these records, as fields."""

    def write(settings, shards, **marker):
        reports = []
        for index, records in enumerate(shards):
            row = {"bytes": 1, "sha256": "0" * 64, "class": None, "changes": []}
            images = [
                ConvertedImage(
                    encode_example(ExampleLayout(settings).features, fields),
                    row_from_json({**row, "key": f"{index}/{number}"}),
                )
                for number, fields in enumerate(records)
            ]
            mark = InputDigests("0" * 64, "0" * 64)
            reports.append(
                write_shard(str(tmp_path), "train", index, images, mark, settings.compression)
            )
        names = [str(tmp_path / f"train-{report.index:05d}.tfrecord") for report in reports]
        made = zip(names, reports, strict=True)
        stored = tuple(
            StoredShard("train", "", name, report.records, report.bytes) for name, report in made
        )
        features = ExampleLayout(settings).features
        return Dataset(
            str(tmp_path), "recordmill", stored, features, marker_or_none=make_marker(**marker)
        )

    return write


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_columns_of_all_records(staged, compression):
    rows = [
        [{"count": 3, "name": b"x", "sizes": [0.5, 1.5]}, {"count": 9, "name": b"x"}],
        [{"name": b"y", "sizes": [2.5]}],
    ]
    found = gather_values(staged(replace(TABLE, compression=compression), rows))
    assert (found.records, found.shards, found.whole, found.further) == (3, 2, True, 0)
    count, name, sizes = found.columns
    assert (count.feature.key, count.numbers, count.missing) == ("count", [3, 9], 1)
    assert (name.numbers, name.missing) == ([], 0)
    assert (sizes.numbers, sizes.missing) == ([0.5, 1.5, 2.5], 1)


def listed(boxes):
    """The ledger of a marker in which so many boxes were listed."""
    return {"boxes": {"unit": "box", "listed": boxes, "written": boxes, "dropped": {}}}


@pytest.mark.parametrize("convention", ["tf_object_detection", "tfds"])
def test_boxes_by_their_share_of_the_image(staged, convention):
    settings = make_settings(convention=convention)
    sides = {
        "ymin": [0.0, 0.0, 0.0],
        "xmin": [0.0, 0.5, 0.0],
        "ymax": [1.0, 0.5, 1e-9],
        "xmax": [1.0, 1.0, 1e-9],
    }
    sides["bbox"] = [0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0, 0.0, 1e-9, 1e-9]
    dataset = staged(settings, [[sides, {}]], annotations=listed(3))
    found = gather_values(dataset)
    areas = found.objects["boxes"].areas
    assert {int(at): int(areas[at]) for at in np.flatnonzero(areas)} == {
        0: 1,
        18: 1,
        19: 1,
    }
    assert found.records == 2
    assert gather_values(replace(dataset, marker_or_none=make_marker())).records == 0


def test_boxes_that_are_not_numbers_are_left_out_without_a_warning(staged):
    far, nan = float("inf"), float("nan")
    sides = {
        "ymin": [0.0, far, 0.0, 0.0],
        "xmin": [nan, 0.0, 0.0, 0.0],
        "ymax": [1.0, far, far, 1.0],
    }
    settings = make_settings(convention="tf_object_detection")
    dataset = staged(settings, [[{**sides, "xmax": [1.0, 1.0, 0.0, 1.0]}]], annotations=listed(4))
    with warnings.catch_warnings(action="error"):
        assert int(gather_values(dataset).objects["boxes"].areas.sum()) == 1


def test_a_heat_map_counts_the_boxes_over_each_cell(staged):
    sides = {"ymin": [0.0, 0.0], "xmin": [0.0, 0.5], "ymax": [1.0, 0.25], "xmax": [1.0, 0.75]}
    names = {"box_label_texts": [b"cat", b"dog"], "box_labels": [1, 2]}
    settings = make_settings(convention="tf_object_detection")
    places = gather_values(staged(settings, [[sides | names]], annotations=listed(2))).objects
    expected = np.ones((HEAT_CELLS, HEAT_CELLS))
    expected[: HEAT_CELLS // 4, HEAT_CELLS // 2 : 3 * HEAT_CELLS // 4] = 2
    assert np.allclose(places["boxes"].heat, expected)
    assert places["boxes"].shares == {"cat": [1.0], "dog": [0.0625]}


def test_a_box_over_a_part_of_a_cell_counts_as_that_part():
    places = ObjectPlaces()
    places.add([Shape(sides=(0.0, 0.0, 0.5 / HEAT_CELLS, 0.5 / HEAT_CELLS))])
    assert np.flatnonzero(places.heat).tolist() == [0]
    assert places.heat[0, 0] == pytest.approx(0.25)


def test_boxes_without_one_of_their_sides_are_left_out(staged):
    sides = {"ymin": [0.0], "xmin": [0.0], "xmax": [1.0]}
    found = gather_values(
        staged(make_settings(convention="tf_object_detection"), [[sides]], annotations=listed(1))
    )
    assert (found.records, int(found.objects["boxes"].areas.sum())) == (1, 0)


def test_images_without_boxes_or_columns_are_not_read():
    features = ExampleLayout(make_settings()).features
    dataset = Dataset(
        "",
        "recordmill",
        (StoredShard("train", "", "/nowhere", 1, 9),),
        features,
        marker_or_none=make_marker(),
    )
    assert gather_values(dataset).records == 0


@pytest.mark.parametrize(
    ("limits", "records", "shards"),
    [
        ({"MOST_RECORDS": 6}, 6, 3),
        ({"MOST_BYTES": 1}, 3, 3),
        ({"MOST_SHARDS": 2}, 8, 2),
    ],
)
def test_of_a_large_dataset_the_first_records_of_some_shards_are_read(
    staged, monkeypatch, limits, records, shards
):
    for name, value in limits.items():
        monkeypatch.setattr(image_statistics, name, value)
    found = gather_values(
        staged(TABLE, [[{"count": 10 * shard + at} for at in range(4)] for shard in range(3)])
    )
    assert (found.records, found.shards, found.whole) == (records, shards, False)
    assert {value // 10 for value in found.columns[0].numbers} == (
        {0, 2} if shards == 2 else {0, 1, 2}
    )


def test_columns_and_their_values_are_bounded(staged, monkeypatch):
    monkeypatch.setattr(image_statistics, "MOST_COLUMNS", 2)
    found = gather_values(staged(TABLE, [[{"name": b"x"}]]))
    assert ([column.feature.key for column in found.columns], found.further) == (
        ["count", "name"],
        1,
    )
    monkeypatch.setattr(image_statistics, "MOST_VALUES", 5)
    column = Column(Feature("a", "float", "a", "", many=True))
    for _ in range(9):
        column.add([1.0, 2.0])
    assert len(column.numbers) == 6


def test_a_damaged_record_is_an_error(staged):
    dataset = staged(TABLE, [[{"count": 1}, {"count": 2}]])
    path = Path(dataset.shards[0].path)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(LoadError, match=rf"^{re.escape(str(path))} is damaged: record 1 at byte "):
        gather_values(dataset)


@pytest.mark.parametrize(
    ("count", "most", "chosen"), [(3, 5, [0, 1, 2]), (10, 4, [0, 3, 6, 9]), (101, 2, [0, 100])]
)
def test_shards_are_chosen_evenly(count, most, chosen):
    assert list(choose_evenly(range(count), most)) == chosen
