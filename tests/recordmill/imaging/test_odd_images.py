"""Real files from the test suites of image libraries and fuzzers, compared with what is expected of
each."""

import csv
import io

import numpy as np
import pytest
from PIL import Image

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.rejection import Rejected

KNOWN_DIFFERENCES = {
    # Twelve pixels, half of them pure red: quality 95 rounds blue from 0 to 3.2 on average, where 3
    # are allowed.
    "Pillow/08931cfa_imagedraw_polygon_1px_high_translucent.png": "mean",
}

SETTINGS = ImageSettings()


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_odd_images_are_accepted_and_rejected_as_expected(shared_data, step):
    folder = shared_data / "odd-images"
    with (folder / "expected.tsv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t"))
    assert len(rows) == 2_403
    found = {
        row["path"]: difference(row, (folder / row["path"]).read_bytes()) for row in rows[::step]
    }
    expected = {path: known for path, known in KNOWN_DIFFERENCES.items() if path in found}
    assert {path: found[path] for path in found if found[path]} == expected


def difference(row, data) -> str:
    """What is not as expected, or nothing."""
    try:
        prepared = prepare_image(data, SETTINGS)
    except Rejected as bad:
        return f"rejected: {bad}" if row["expected"] == "ACCEPT" else ""
    if row["expected"] == "REJECT":
        return "accepted"
    decoded = Image.open(io.BytesIO(prepared.encoded))
    assert decoded.size == (prepared.width, prepared.height)
    if row["size"] not in ("-", f"{prepared.width}x{prepared.height}"):
        return f"size {prepared.width}x{prepared.height}"
    if row["mean_rgb"] == "-":
        return ""
    expected = np.array([float(value) for value in row["mean_rgb"].split(",")])
    means = np.asarray(decoded.convert("RGB")).reshape(-1, 3).mean(axis=0)
    return "mean" if np.abs(means - expected).max() > 3 else ""
