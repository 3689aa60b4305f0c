"""The pictures of the data card, `samples.svg`, of whole runs."""

import base64
import io
import json
from collections import Counter
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from recordmill.annotations.shapes import color_of_class
from recordmill.pipeline import convert_transform
from recordmill.reading.dataset import open_dataset
from recordmill.reading.verify_dataset import verify_dataset
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ONE_SPLIT = {"splits.fractions": {"train": 1.0}}

SVG = "{http://www.w3.org/2000/svg}"


def drawing_of(done):
    """The parsed drawing of a dataset whose files fit together."""
    assert done.code == 0, done.stderr
    assert verify_dataset(open_dataset(str(done.output))).findings == ()
    assert "\n![Images of the dataset, as they are stored](samples.svg)\n" in card_of(done)
    return ElementTree.fromstring((done.output / "samples.svg").read_bytes())


def card_of(done):
    return (done.output / "README.md").read_text(encoding="utf-8")


def pictures_in(drawing):
    """The pictures by the keys of their images, without what is drawn over them."""
    found = {}
    for each in drawing.iter(f"{SVG}svg"):
        image = each.find(f"{SVG}image")
        if image is not None:
            data = base64.b64decode(image.get("href").removeprefix("data:image/jpeg;base64,"))
            found[each.get("aria-label")] = Image.open(io.BytesIO(data))
    return found


def captions_of(drawing):
    """The lines below the pictures."""
    return [
        "".join(each.itertext()).strip()
        for each in drawing.iter(f"{SVG}text")
        if each.get("fill") == "#1a2230"
    ]


def test_some_images_of_each_class_are_shown_as_they_are_stored(convert, class_folders, tmp_path):
    photos = class_folders(tmp_path / "photos", {"<cat>": 9, "d&g": 3, "emu": 1}, size=(480, 320))
    drawing = drawing_of(convert(photos))
    pictures = pictures_in(drawing)
    assert Counter(key.partition("/")[0] for key in pictures) == {"<cat>": 4, "d&g": 3, "emu": 1}
    assert captions_of(drawing) == ["<cat>"] * 4 + ["d&g"] * 3 + ["emu"]
    for key, picture in pictures.items():
        stored = Image.open(photos / key).resize((240, 160), Image.Resampling.BOX)
        assert np.abs(np.asarray(picture, int) - np.asarray(stored, int)).mean() < 4


def test_annotations_are_drawn_in_the_color_of_their_class(convert, tmp_path):
    root = tmp_path / "animals"
    (root / "images").mkdir(parents=True)
    for name in "ab":
        (root / f"images/{name}.jpg").write_bytes(encode_picture(name, (480, 240)))
    images = [
        {"id": number, "file_name": f"{name}.jpg", "width": 480, "height": 240}
        for number, name in enumerate("ab")
    ]
    cat = {
        "id": 1,
        "image_id": 0,
        "category_id": 1,
        "bbox": [48, 24, 96, 48],
        "segmentation": [[48, 24, 144, 24, 144, 72, 48, 72]],
        "keypoints": [96, 48, 2, 144, 72, 1],
        "num_keypoints": 2,
    }
    dog = {"id": 2, "image_id": 0, "category_id": 2, "bbox": [0, 0, 480, 240]}
    names = ["nose", "tail"]
    categories = [
        {"id": 1, "name": "cat", "keypoints": names, "skeleton": [[1, 2]]},
        {"id": 2, "name": "dog", "keypoints": names, "skeleton": [[1, 2]]},
    ]
    content = {"images": images, "annotations": [cat, dog], "categories": categories}
    (root / "annotations.json").write_text(json.dumps(content), encoding="utf-8")
    drawing = drawing_of(convert(root, settings={"masks": "png", **ONE_SPLIT}))
    labels = drawing.get("aria-label")
    assert (
        labels == "Images of the dataset with their boxes, masks and key points, as they are stored"
    )
    assert captions_of(drawing) == ["\u25a0 cat\u2002\u25a0 dog"]
    shapes = Counter()
    for group in drawing.iter(f"{SVG}g"):
        shapes.update(
            (group.get("stroke"), each.tag.removeprefix(SVG), *place_of(each)) for each in group
        )
    first, second = map(color_of_class, (1, 2))
    assert shapes == {
        (first, "rect", "24.0", "12.0", "48.0", "24.0"): 1,
        (first, "text", "27.0", "11"): 1,
        (second, "rect", "0.0", "0.0", "240.0", "120.0"): 1,
        (second, "text", "3.0", "11"): 1,
        (first, "line", "48.0", "24.0", "72.0", "36.0"): 1,
        (first, "circle", "48.0", "24.0"): 1,
        (first, "circle", "72.0", "36.0"): 1,
    }
    (mask,) = masks_in(drawing, first)
    assert mask.size == (240, 120)
    assert mask.getbbox() == (24, 12, 72, 36)


def place_of(shape):
    names = ("x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "width", "height")
    return [shape.get(name) for name in names if shape.get(name) is not None]


def masks_in(drawing, color):
    """The layers in a color that cover any pixels; what they cover."""
    found = []
    for image in drawing.iter(f"{SVG}image"):
        kind, _, data = image.get("href").partition(",")
        if kind == "data:image/png;base64":
            layer = Image.open(io.BytesIO(base64.b64decode(data)))
            covered = Image.fromarray(np.asarray(layer))
            if covered.getbbox() and bytes(layer.getpalette()[3:6]).hex() == color[1:]:
                found.append(covered)
    return found


def test_twelve_classes_of_many_are_shown_and_the_same_each_time(convert, class_folders, tmp_path):
    photos = class_folders(tmp_path / "photos", {f"{number:02}": 3 for number in range(20)})
    done = convert(photos)
    classes = captions_of(drawing_of(done))
    assert len(classes) == len({*classes}) == 12
    again = convert(photos, output=tmp_path / "again", settings={"shards.count": 1})
    content = (done.output / "samples.svg").read_bytes()
    same = convert(photos, output=tmp_path / "same")
    assert (same.output / "samples.svg").read_bytes() == content
    assert captions_of(drawing_of(again)) == classes


def test_an_image_of_several_classes_is_shown_once(convert, tmp_path):
    root = tmp_path / "signs"
    root.mkdir()
    (root / "a.jpg").write_bytes(encode_picture("a", (80, 60)))
    rows = ["filename,width,height,class,xmin,ymin,xmax,ymax"]
    rows += [f"a.jpg,80,60,{name},1,2,30,40" for name in "abcdef"]
    (root / "boxes.csv").write_text("\n".join(rows), encoding="utf-8")
    drawing = drawing_of(convert(root, settings=ONE_SPLIT))
    assert [*pictures_in(drawing)] == ["a.jpg"]
    (caption,) = captions_of(drawing)
    assert caption.split("\u2002") == [*(f"\u25a0 {name}" for name in "abcd"), "and 2 more"]


def test_without_a_report_there_are_none(convert, photos):
    done = convert(photos, settings={"report": False})
    assert "samples.svg" not in done.files
    assert "samples.svg" not in card_of(done)


def test_records_without_images_have_none(convert, tmp_path):
    (tmp_path / "rows").mkdir()
    table = "\n".join(["height,weight", *(f"{number},{number + 1}" for number in range(40))])
    (tmp_path / "rows/table.csv").write_text(table, encoding="utf-8")
    done = convert(tmp_path / "rows", settings={"source.kind": "table", "convention": "plain"})
    assert done.code == 0, done.stderr
    assert "samples.svg" not in done.files | {*card_of(done).split()}


def test_a_drawing_that_fails_is_a_note(convert, photos, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a picture is\nbroken")

    monkeypatch.setattr(convert_transform, "draw_samples", fail)
    done = convert(photos)
    note = "samples.svg was not made (a picture is broken): the data card has no pictures"
    assert (done.code, done.line["notes"]) == (0, [note])
    assert "samples.svg" not in done.files | {*card_of(done).split()}
    assert verify_dataset(open_dataset(str(done.output))).findings == ()


def test_a_file_of_the_users_stays(convert, photos):
    done = convert(photos)
    (done.output / "samples.svg").unlink()
    marker = json.loads((done.output / "recordmill.json").read_bytes())
    marker["files"].remove("samples.svg")
    del marker["run"]["digests"]["samples.svg"]
    (done.output / "recordmill.json").write_text(json.dumps(marker), encoding="utf-8")
    (done.output / "samples.svg").write_text("mine", encoding="utf-8")
    refused = convert(photos, "--overwrite", settings={"images.quality": 90})
    assert refused.code != 0
    assert (done.output / "samples.svg").read_text(encoding="utf-8") == "mine"
