"""images.metadata, from the file to the record, the sidecar, the marker, the summary, and the
verifier."""

import hashlib
import io
import json

import pytest
from PIL import Image
from walk_metadata import leftovers

from recordmill.pipeline.verify import main as verify

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

EXIF = Image.Exif()
EXIF[0x010F] = "maker"
EXIF.get_ifd(0x8825).update({1: "N", 2: (48.0, 8.0, 0.0)})


@pytest.fixture
def holiday(tmp_path):
    """Three photographs: one with a position, one with a position and turned, one without
    metadata."""
    turned = Image.Exif()
    turned.load(EXIF.tobytes())
    turned[0x0112] = 6
    folder = tmp_path / "holiday" / "beach"
    folder.mkdir(parents=True)
    for name, options in (
        ("a", {"exif": EXIF, "comment": b"us"}),
        ("b", {"exif": turned}),
        ("c", {}),
    ):
        Image.new("RGB", (24, 16), (9, 90, len(options))).save(folder / f"{name}.jpg", **options)
    return folder.parent


def run(convert, holiday, **settings):
    done = convert(holiday, settings={"splits.fractions": {"train": 1.0}, **settings})
    assert done.code == 0, done.stderr
    rows = {row["key"][-5]: row for row in done.rows()}
    examples = {example["image/filename"][:1].decode(): example for example in done.examples()}
    return done, json.loads((done.output / "recordmill.json").read_bytes()), rows, examples


@pytest.mark.parametrize("check", ["decode", "header"])
def test_stripped_images_have_no_metadata_and_digests_of_their_own(convert, holiday, check, capsys):
    done, marker, rows, examples = run(
        convert, holiday, **{"images.metadata": "strip", "images.check": check}
    )
    assert {name: row["changes"] for name, row in rows.items()} == {
        "a": ["metadata_stripped"],
        "b": ["reencoded", "rotated"],
        "c": [],
    }
    for name, example in examples.items():
        source, stored = (holiday / "beach" / f"{name}.jpg").read_bytes(), example["image/encoded"]
        assert leftovers(stored) == []
        assert rows[name]["sha256"] == hashlib.sha256(source).hexdigest()
        assert example["image/key/sha256"] == hashlib.sha256(stored).hexdigest().encode()
    before = Image.open(holiday / "beach" / "a.jpg")
    assert Image.open(io.BytesIO(examples["a"]["image/encoded"])).tobytes() == before.tobytes()
    assert marker["changes"] == {"metadata_stripped": 1, "reencoded": 1, "rotated": 1}
    assert "gps_positions" not in marker
    assert verify([str(done.output), "--no-metadata", "--level", "pixels"]) == 0


def test_positions_are_counted_where_they_are_kept(convert, holiday, capsys):
    done, marker, rows, _ = run(convert, holiday)
    assert {name: row["changes"] for name, row in rows.items()} == {
        "a": [],
        "b": ["reencoded", "rotated"],
        "c": [],
    }
    said = "1 image has a GPS position: images.metadata: strip removes all metadata."
    assert marker["gps_positions"] == done.line["gps_positions"] == 1
    assert said in marker["remarks"]
    assert said in done.stderr
    assert said in (done.output / "report.html").read_text(encoding="utf-8")
    assert verify([str(done.output), "--no-metadata"]) == 1
    assert (
        "(beach/a.jpg): the image in image/encoded has metadata: Exif, GPS position, comment"
        in capsys.readouterr().err
    )


def test_the_orientation_stays_where_nothing_is_rotated(convert, holiday):
    images = {"metadata": "orientation", "reencode": "never", "formats": ["JPEG"]}
    done, marker, rows, examples = run(convert, holiday, images=images)
    assert {name: row["changes"] for name, row in rows.items()} == {
        "a": ["metadata_stripped"],
        "b": ["metadata_stripped"],
        "c": [],
    }
    exif = {
        name: dict(Image.open(io.BytesIO(each["image/encoded"])).getexif())
        for name, each in examples.items()
    }
    assert exif == {"a": {}, "b": {0x0112: 6}, "c": {}}
    assert "gps_positions" not in marker
    assert verify([str(done.output), "--no-metadata"]) == 0
