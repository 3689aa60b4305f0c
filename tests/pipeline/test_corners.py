"""Corners and angles of oriented boxes, from annotations to records."""

import numpy as np
import pytest

import recordmill
from recordmill.reading.verify_dataset import verify_dataset
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

FEATURES = {
    "image/encoded": {"field": "encoded", "type": "bytes"},
    "xmin": {"field": "xmin", "type": "float", "shape": [None]},
    "corners": {"field": "corners", "type": "float", "shape": [None]},
    "angle": {"field": "angle", "type": "float", "shape": [None]},
}
OBLIQUE = "0 0.5 0.25 0.75 0.5 0.5 0.75 0.25 0.5\n"


@pytest.fixture
def ships(tmp_path):
    """Oriented boxes as Ultralytics writes them: an oblique one, an upright one, and none."""
    root = tmp_path / "ships"
    for folder in ("images", "labels"):
        (root / folder).mkdir(parents=True)
    for name, text in (("a", OBLIQUE), ("b", "0 0.5 0.5 0.25 0.5\n"), ("c", "")):
        (root / "images" / f"{name}.jpg").write_bytes(encode_picture(name, (40, 40)))
        (root / "labels" / f"{name}.txt").write_text(text)
    (root / "data.yaml").write_text("names: [ship]\ntask: obb\n")
    return root


def test_a_mapping_may_store_corners_and_angles(convert, ships):
    settings = {"convention": {"features": FEATURES}, "splits": {"fractions": {"train": 1}}}
    done = convert(ships, settings=settings)
    assert done.code == 0, done.stderr
    opened = sorted(recordmill.open(done.output)["train"], key=lambda each: len(each["xmin"]))
    assert [each["corners"].shape for each in opened] == [(0, 4, 2), (1, 4, 2), (1, 4, 2)]
    found = {round(float(each["angle"][0])): each["corners"][0].tolist() for each in opened[1:]}
    assert found == {
        45: [[0.5, 0.25], [0.75, 0.5], [0.5, 0.75], [0.25, 0.5]],
        0: [[0.375, 0.25], [0.625, 0.25], [0.625, 0.75], [0.375, 0.75]],
    }
    assert all(each["corners"].dtype == np.float32 for each in opened)
    entry = done.marker["annotations"]["corners"]
    assert (entry["unit"], entry["listed"], entry["written"]) == ("oriented box", 1, 1)
    assert verify_dataset(done.output).findings == ()


def test_oriented_boxes_without_a_place_are_noted_with_what_stores_them(convert, ships):
    done = convert(ships)
    note = (
        "not stored: oriented boxes (1); the fields corners and angle of a convention of your own "
        "store oriented boxes"
    )
    assert note in done.line["notes"]
    assert "corners" not in done.marker["annotations"]
