import io

import pytest
from PIL import Image

from recordmill.reading import verify_dataset as module
from recordmill.reading.dataset import open_dataset
from recordmill.reading.verify_dataset import verify_dataset

COMMENT = "the image in image/encoded has metadata: comment"


def encode(kind="JPEG", **options):
    stream = io.BytesIO()
    Image.new("RGB", (24, 16), (9, 90, 200)).save(stream, kind, **options)
    return stream.getvalue()


def found(path, level="files"):
    return [
        str(each)
        for each in verify_dataset(open_dataset(str(path)), level, no_metadata=True).findings
    ]


@pytest.fixture
def store(tmp_path, example, frame):
    """Writes a TFRecord file of Examples with the given features."""

    def store(*records):
        (tmp_path / "a.tfrecord").write_bytes(
            b"".join(frame(example(record)) for record in records)
        )
        return tmp_path / "a.tfrecord"

    return store


@pytest.mark.parametrize("level", ["frames", "files", "pixels"])
def test_metadata_are_found_in_anybodys_records(store, level):
    exif = Image.Exif()
    exif[0x010F] = "maker"
    exif.get_ifd(0x8825)[2] = (48.0, 8.0, 0.0)
    path = store(
        {"image/encoded": encode()},
        {"image/encoded": encode(comment=b"by")},
        {
            "left": encode("PNG", exif=exif),
            "right": encode("WEBP") + b"tail",
            "note": b"text",
            "label": 3,
        },
    )
    lines = found(path, level)
    assert [line.partition(": ")[2] for line in lines] == [
        COMMENT,
        "the image in left has metadata: Exif, GPS position",
        "the image in right has metadata: data after the end",
    ]
    assert [line.partition(", ")[2].partition(" at")[0] for line in lines] == [
        "record 1",
        "record 2",
        "record 2",
    ]


def test_images_whose_metadata_cannot_be_ruled_out_are_found(store):
    image = encode()
    path = store(
        {"image/encoded": encode("GIF")}, {"image/encoded": image[:-2]}, {"image/encoded": image}
    )
    assert [line.partition(": ")[2] for line in found(path)] == [
        "the image in image/encoded is GIF: metadata in this format cannot be ruled out",
        "the image in image/encoded cannot be read to its end: "
        f"JPEG: no marker can be read at byte {len(image) - 2:,}, after the first scan",
    ]


def test_records_without_images_prove_nothing(store):
    assert found(store({"label": 1}, {"image/encoded": b"text"})) == [
        "no record has an encoded image, so metadata cannot be ruled out"
    ]


def test_metadata_are_found_in_files_that_are_large_enough_for_processes(
    tmp_path, example, frame, monkeypatch
):
    for name in "ab":
        (tmp_path / f"{name}.tfrecord").write_bytes(
            frame(example({"image/encoded": encode(comment=b"by")}))
        )
    monkeypatch.setattr(module, "_WORTH_PROCESSES", 0)
    findings = verify_dataset(
        open_dataset(str(tmp_path)), "frames", threads=2, no_metadata=True
    ).findings
    assert [str(each).partition(", ")[2].partition(": ")[2] for each in findings] == [
        COMMENT,
        COMMENT,
    ]


def test_nothing_is_looked_for_unasked(store):
    path = store({"image/encoded": encode(comment=b"by")})
    assert verify_dataset(open_dataset(str(path)), "pixels").findings == ()
