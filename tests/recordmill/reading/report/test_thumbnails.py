import base64
import io
import threading
from dataclasses import replace

import pytest
from make_marker import make_marker
from make_settings import make_settings
from PIL import Image
from write_shard import write_shard

from recordmill.annotations.shapes import Shape
from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.reading.report import thumbnails
from recordmill.reading.report.thumbnails import (
    MOST_CLASSES,
    MOST_DRAWN_ON,
    MOST_IMAGES,
    SIDE,
    SIDE_DRAWN_ON,
    choose_samples,
    make_thumbnails,
)
from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.features import encode_example
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.transforms.inputs.sources.table import Table
from recordmill.transforms.inputs.tables.cells import ColumnSettings
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.shard_files import InputDigests

FEATURES = ExampleLayout(make_settings()).features


def thumbnails_of(places, side=SIDE, **settings):
    made = make_settings(**settings)
    features, marker = ExampleLayout(made).features, make_marker({"compression": made.compression})
    dataset = Dataset("", "recordmill", (), features, {"cat": 3, "dog": 5}, marker)
    return make_thumbnails(dataset, places, side)


@pytest.mark.parametrize(
    ("classes", "each"), [(1, 24), (2, 24), (3, 24), (4, 18), (7, 10), (10, 7), (24, 3)]
)
def test_few_classes_are_all_shown(classes, each):
    counts = {f"class {number}": 5 for number in range(classes)}
    assert choose_samples(counts) == dict.fromkeys(sorted(counts), each)


def test_many_classes_are_shown_from_the_largest_to_the_smallest():
    chosen = choose_samples({f"{number:05}": number + 1 for number in range(20_000)})
    assert (len(chosen), set(chosen.values())) == (MOST_CLASSES, {3})
    assert sum(chosen.values()) <= MOST_IMAGES
    names = list(chosen)
    assert (names[0], names[-1]) == ("19999", "00000")
    assert names == sorted(names, reverse=True)


@pytest.mark.parametrize(
    ("classes", "each"), [(1, 6), (4, 6), (5, 4), (7, 3), (12, 2), (13, 1), (24, 1)]
)
def test_with_boxes_there_are_fewer_and_some_of_each_class(classes, each):
    counts = {f"class {number:02}": 5 for number in range(classes)}
    chosen = choose_samples(counts, are_drawn_on=True)
    assert chosen == dict.fromkeys(counts, each)
    assert sum(chosen.values()) <= MOST_DRAWN_ON


def test_of_very_many_classes_with_boxes_some_are_shown():
    chosen = choose_samples(
        {f"{number:05}": number + 1 for number in range(20_000)}, are_drawn_on=True
    )
    assert (len(chosen), set(chosen.values())) == (MOST_CLASSES, {1})


def test_unlabeled_images_are_a_class_of_their_own():
    assert choose_samples({"": 4, "cat": 9}) == {"cat": 24, "": 24}
    assert choose_samples({}) == {}


@pytest.fixture
def shard(tmp_path):
    """`shard(images, compression)`: places of images that are stored as they are."""

    def write(images, compression="none"):
        converted = []
        for number, encoded in enumerate(images):
            record = (
                encode_example(FEATURES, {"encoded": encoded})
                if encoded
                else encode_example(FEATURES, {})
            )
            row = {
                "key": f"{number}",
                "bytes": 1,
                "sha256": "0" * 64,
                "class": "cat",
                "height": 9,
                "width": 9,
                "channels": 3,
            }
            converted.append(ConvertedImage(record, row_from_json({**row, "changes": []})))
        mark = InputDigests("0" * 64, "0" * 64)
        write_shard(str(tmp_path), "train", 0, converted, mark, compression)
        stored = StoredShard("train", "", str(tmp_path / "train-00000.tfrecord"))
        return [(stored, image.row) for image in converted]

    return write


def shown(made):
    kind, data = made.uri.split(",")
    assert kind == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_each_record_gives_its_own_small_picture(shard, draw_file, compression):
    colors = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (120, 120, 120)]
    files = [
        draw_file(color, kind)
        for color, kind in zip(colors, ("JPEG", "PNG", "JPEG", "WEBP"), strict=True)
    ]
    uris = thumbnails_of(shard(files, compression)[::-1], compression=compression)
    for uri, color in zip(uris, colors[::-1], strict=True):
        picture = shown(uri)
        assert picture.size == (SIDE, SIDE // 2)
        assert all(abs(a - b) <= 4 for a, b in zip(picture.getpixel((20, 20)), color, strict=True))


@pytest.fixture
def draw_file():
    def draw(color, kind="JPEG"):
        stream = io.BytesIO()
        Image.new("RGB", (400, 200), color).save(stream, kind)
        return stream.getvalue()

    return draw


def test_what_cannot_be_shown_is_left_empty(shard, draw_file, monkeypatch):
    whole = draw_file((1, 2, 3))
    places = shard([whole, whole[: len(whole) // 2], b"no picture", None, whole])
    uris = thumbnails_of(places)
    assert [bool(uri) for uri in uris] == [True, False, False, False, True]
    large = [(where, replace(row, height=10_000, width=10_000)) for where, row in places[:1]]
    assert thumbnails_of(large) == [None]
    assert (
        thumbnails_of(
            places, convention="plain", source=Table(columns={"a": ColumnSettings(type="int")})
        )
        == [None] * 5
    )


@pytest.mark.parametrize(("channels", "color"), [(1, (90, 90, 90)), (3, (10, 90, 200))])
def test_raw_pixels_are_shown_by_their_shape(shard, channels, color):
    pixels = bytes(color[:channels]) * (20 * 30)
    ((where, row),) = shard([pixels])
    (uri,) = thumbnails_of([(where, replace(row, height=20, width=30, channels=channels))])
    picture = shown(uri)
    assert picture.size == (30, 20)
    assert all(
        abs(a - b) <= 4 for a, b in zip(picture.convert("RGB").getpixel((5, 5)), color, strict=True)
    )


def test_a_store_is_asked_for_several_images_at_once(shard, draw_file, monkeypatch):
    places = shard([draw_file((1, 2, 3))] * 8)
    all_asked, read = threading.Barrier(8, timeout=20), thumbnails.storage.read_range

    def read_with_others(*wanted):
        all_asked.wait()
        return read(*wanted)

    monkeypatch.setattr(thumbnails.storage, "read_range", read_with_others)
    monkeypatch.setattr(thumbnails.storage, "is_local", lambda path: False)
    assert all(thumbnails_of(places))


def test_a_compressed_shard_is_read_from_its_start_and_not_far(shard, draw_file, monkeypatch):
    places = shard([draw_file((1, 2, 3))] * 5, "gzip")
    monkeypatch.setattr(thumbnails, "MOST_UNPACKED", places[3][1].offset)
    uris = thumbnails_of(places, compression="gzip")
    assert [bool(uri) for uri in uris] == [True, True, True, False, False]


BOXES = {"xmin": [0.25, 0.0], "ymin": [0.5, 0.0], "xmax": [0.75, 0.125], "ymax": [1.0, 0.125]}
BOXES |= {"bbox": [0.5, 0.25, 1.0, 0.75, 0.0, 0.0, 0.125, 0.125], "box_labels": [5, 3]}
BOXES |= {"box_label_texts": [b"dog", b"cat"]}


@pytest.fixture
def boxed(tmp_path, draw_file):
    """`boxed(convention)`: the place of an image with a large dog and a small cat in the upper left
    corner."""

    def write(convention):
        features = ExampleLayout(make_settings(convention=convention)).features
        record = encode_example(features, {"encoded": draw_file((90, 90, 90)), **BOXES})
        row = row_from_json(
            {
                "key": "0",
                "bytes": 1,
                "sha256": "0" * 64,
                "class": None,
                "height": 200,
                "width": 400,
                "channels": 3,
                "changes": [],
            }
        )
        mark = InputDigests("0" * 64, "0" * 64)
        write_shard(str(tmp_path), "train", 0, [ConvertedImage(record, row)], mark, "none")
        return StoredShard("train", "", str(tmp_path / "train-00000.tfrecord")), row

    return write


@pytest.mark.parametrize("convention", ["tf_object_detection", "tfds"])
@pytest.mark.parametrize("side", [SIDE, SIDE_DRAWN_ON])
def test_boxes_are_shapes_over_the_picture(boxed, convention, side):
    (made,) = thumbnails_of([boxed(convention)], side, convention=convention)
    assert shown(made).size == (made.width, made.height) == (side, side // 2)
    # TFDS stores ids only, whose names are in the label map.
    assert made.shapes == (
        Shape(5, "dog", (0.25, 0.5, 0.75, 1.0)),
        Shape(3, "cat", (0.0, 0.0, 0.125, 0.125)),
    )
