"""What of images is not stored is said under "worth a look", and the printed settings help."""

import json
import re

import numpy as np
import pytest
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

RAMP = np.linspace(500, 3_499, 24 * 24).reshape(24, 24)


@pytest.fixture
def run(tmp_path, capsys):
    """Converts the folder `in` to PNGs; gives the remarks on losses, and each image by its key."""

    def run(*more):
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        common = ["--set=report=false", "--set=images.store=png", "--set=convention=inception"]
        common.append("--set=splits.fractions={train: 1.0}")
        code = launch([f"--input={tmp_path / 'in'}", f"--output={output}", *common, *more], build)
        said = capsys.readouterr().err
        assert code == 0, said
        remarks = json.loads((output / "recordmill.json").read_text())["remarks"]
        assert all(remark in " ".join(said.split()) for remark in remarks)
        about = ("further", "bits per channel", "float")
        remarks = [remark for remark in remarks if any(map(remark.__contains__, about))]
        rows = {}
        for path in (output / "sidecars").iterdir():
            for row in map(json.loads, path.read_text().splitlines()):
                rows[row["key"]] = row
        return remarks, rows, output

    return run


def save(path, values, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, **options)


def stored(output):
    """The largest value of each stored image, read with TensorFlow's own reader."""
    import tensorflow as tf

    largest = set()
    for path in output.glob("train-*"):
        for record in tf.data.TFRecordDataset([str(path)]).as_numpy_iterator():
            features = tf.train.Example.FromString(record).features.feature
            encoded = features["image/encoded"].bytes_list.value[0]
            largest.add(int(tf.io.decode_image(encoded).numpy().max()))
    return largest


def test_images_of_12_bits_are_named_and_the_printed_setting_makes_them_bright(run, tmp_path):
    for number in range(24):
        name = f"{'cat' if number % 2 else 'dog'}/{number}.png"
        save(tmp_path / "in" / name, (RAMP + number).astype(np.uint16))
    remarks, rows, output = run()
    assert remarks == [
        "24 images of 16 bits per channel use at most 12 of them, so they are stored dark, with "
        "values of at most 13 of 255: set images.bits=12 to store the bits in use."
    ]
    assert {tuple(row["losses"].items()) for row in rows.values()} == {(("brightest", 13),)}
    assert stored(output) == {13}
    printed = re.search(r"set (images\.bits=\d+)", remarks[0])[1]
    remarks, rows, output = run(f"--set={printed}")
    assert remarks == [
        "24 images have more than 8 bits per channel: the highest 8 of the 12 in images.bits are "
        "stored."
    ]
    assert all("losses" not in row for row in rows.values())
    assert stored(output) == set(range(3_499 >> 4, ((3_499 + 23) >> 4) + 1))


def test_pages_frames_and_floats_are_counted(run, tmp_path):
    source = tmp_path / "in"
    for label, first in (("cat", 0), ("dog", 3)):  # equal names would be those of pairs
        for number in range(3):
            place = first + number
            pages = [Image.new("L", (8, 8), shade) for shade in range(number, 30 + number)]
            (source / label).mkdir(parents=True, exist_ok=True)
            name = source / label / f"stack{place}.tif"
            pages[0].save(name, save_all=True, append_images=pages[1:])
            name = source / label / f"moving{place}.gif"
            pages[0].save(name, save_all=True, append_images=pages[1:])
            save(source / label / f"deep{place}.png", (RAMP * 18).astype(np.uint16))
            float_name = source / label / f"float{place}.tif"
            save(float_name, (RAMP * (number - 1) + 0.25 * (number == 1)).astype(np.float32))
    remarks, rows, _ = run()
    assert remarks == [
        "6 documents have further pages: 174 pages are not stored. Save each page as a file of its "
        "own.",
        "6 animations have further frames, which are not stored.",
        "12 images have more than 8 bits per channel: the highest 8 are stored.",
        "32-bit or float values were taken as 0 to 1 (2 images), as 0 to 65,535 (2 images) and "
        "from the smallest to the largest value of each image (2 images), so equal grays may stand "
        "for different values: scale the images alike, to 0 to 255, before you convert them.",
    ]
    assert rows["cat/stack2.tif"]["losses"] == {"pages": 29}
    assert rows["dog/float3.tif"]["losses"] == {"stretched": 1}
    assert "losses" not in rows["cat/moving0.gif"]


def test_losses_are_still_said_when_records_are_reused(run, tmp_path):
    for number in range(6):
        save(tmp_path / "in" / "cat" / f"{number}.png", RAMP.astype(np.uint16))
        save(tmp_path / "in" / "dog" / f"{number}.png", RAMP.astype(np.uint16))
    before, _, output = run()
    save(tmp_path / "in" / "dog" / "6.png", RAMP.astype(np.uint16))
    after, rows, _ = run(f"--reuse={output}", "--set=seed=0")
    assert [remark.replace("12 images", "13 images") for remark in before] == after
    assert len(rows) == 13
