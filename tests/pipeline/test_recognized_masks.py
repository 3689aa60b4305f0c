"""What recognition says of images and masks whose values need an explanation."""

import io
import json
import re
import shlex

import numpy as np
import pytest
from golden_inputs import draw_mask, encode
from PIL import Image, ImageFilter
from stored_records import read_records

import recordmill
from recordmill.schemas.features import Example
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

COLORS = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0], [64, 0, 128]], np.uint8)
SIZE = (48, 32)


def write(root, mask_of, ending="png"):
    """Six images, and the masks that a function draws."""
    for folder in ("images", "masks"):
        (root / folder).mkdir(parents=True)
    for n in range(6):
        (root / f"images/{n}.jpg").write_bytes(encode_picture(n, SIZE))
        (root / f"masks/{n}.{ending}").write_bytes(mask_of(n))


def draw_colors(n):
    ids = np.asarray(Image.open(_file(draw_mask(n, range(4), SIZE))))
    return encode(Image.fromarray(COLORS[ids]), "PNG")


def _file(data):
    return io.BytesIO(data)


def draw_ids(n):
    return draw_mask(n, range(3), SIZE)


def draw_smooth(n):
    mask = Image.new("L", SIZE, 0)
    mask.paste(255, (8, 8, 30 + n, 24))
    return encode(mask.filter(ImageFilter.GaussianBlur(0.7)), "PNG")


def ids_in(output):
    found = {}
    for path in output.glob("*.tfrecord"):
        for record in read_records(path):
            features = Example.FromString(bytes(record)).features.feature
            (name,) = features["image/filename"].bytes_list.value
            (mask,) = features["image/segmentation/class/encoded"].bytes_list.value
            found[name.decode()] = np.asarray(Image.open(_file(mask)))
    return found


def marker_of(done):
    return json.loads((done.output / "recordmill.json").read_bytes())


def test_two_levels_become_0_and_1(convert, tmp_path):
    write(tmp_path / "in", lambda n: draw_mask(n, (0, 255), SIZE))
    done = convert(tmp_path / "in")
    assert done.code == 0, done.stderr
    assert "image and mask pairs: 6" in done.stderr
    assert {*np.unique(np.stack([*ids_in(done.output).values()])).tolist()} == {0, 1}


def test_smooth_levels_ask_for_a_threshold(convert, tmp_path):
    write(tmp_path / "in", draw_smooth)
    done = convert(tmp_path / "in")
    assert done.code == 2
    assert "its masks have two levels with others between them" in done.stderr
    flag = next(word for word in shlex.split(done.stderr) if word.startswith("source.mask_thr"))
    done = convert(tmp_path / "in", "--set", flag.rstrip(","))
    assert done.code == 0, done.stderr
    assert {*np.unique(np.stack([*ids_in(done.output).values()])).tolist()} == {0, 1}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("label_colors.txt", "0 0 0 void\n128 0 0 car\n0 128 0 tree\n64 0 128 sky\n"),
        ("class_dict.csv", "name,r,g,b\nvoid,0,0,0\ncar,128,0,0\ntree,0,128,0\nsky,64,0,128\n"),
        (
            "colors.json",
            '{"void": [0, 0, 0], "car": [128, 0, 0], "tree": [0, 128, 0], "sky": [64, 0, 128]}',
        ),
    ],
)
def test_a_table_of_colors_is_used(name, text, convert, tmp_path):
    write(tmp_path / "in", draw_colors)
    (tmp_path / "in" / name).write_text(text, encoding="utf-8")
    done = convert(tmp_path / "in")
    assert done.code == 0, done.stderr
    assert marker_of(done)["labels"] == {"void": 0, "car": 1, "tree": 2, "sky": 3}
    assert {*np.unique(np.stack([*ids_in(done.output).values()])).tolist()} == {0, 1, 2, 3}


def test_colors_without_a_table_ask_for_one(convert, tmp_path):
    write(tmp_path / "in", draw_colors)
    done = convert(tmp_path / "in")
    assert done.code == 2
    assert "its masks have colors, and no table names them: write one" in done.stderr
    table = {f"class {at}": color for at, color in enumerate(COLORS.tolist())}
    (tmp_path / "in/colors.json").write_text(json.dumps(table), encoding="utf-8")
    done = convert(tmp_path / "in", "--set", "source.mask_colors=colors.json")
    assert done.code == 0, done.stderr
    assert marker_of(done)["labels"] == {name: at for at, name in enumerate(table)}


@pytest.mark.parametrize(
    ("draw", "name", "text", "unnamed", "code"),
    [
        (
            draw_colors,
            "label_colors.txt",
            "0 0 0 void\n128 0 0 car\n0 128 0 tree\n",
            [64, 0, 128],
            3,
        ),
        (draw_ids, "class_names.txt", "road\ncar\n", 2, 0),
    ],
)
def test_values_that_the_file_of_classes_lacks_are_asked_for(
    draw, name, text, unnamed, code, convert, tmp_path
):
    write(tmp_path / "in", draw)
    (tmp_path / "in" / name).write_text(text, encoding="utf-8")
    done = convert(tmp_path / "in")
    assert done.code == 2
    assert f"values that {name} does not name, such as {unnamed}: add them" in done.stderr
    flags = [word for word in shlex.split(done.stderr) if word.startswith(("source.", "ignore="))]
    assert convert(tmp_path / "in", "--set", flags[0]).code == code
    assert "does not name" not in convert(tmp_path / "in", "--set", flags[1]).stderr


def test_a_damaged_table_of_colors_is_named(convert, tmp_path):
    write(tmp_path / "in", draw_colors)
    (tmp_path / "in/colors.txt").write_text("0 0 0 void\n0 0 0 car\n", encoding="utf-8")
    said = "its masks have colors, and colors.txt names no classes: the table of colors has 'car'"
    assert said in convert(tmp_path / "in").stderr


@pytest.mark.parametrize(("folder", "code"), [("masks", 0), ("other", 2)])
def test_names_tell_which_of_two_drawn_images_is_the_mask(folder, code, convert, tmp_path):
    """As where a program has drawn the images, such as charts or renderings."""
    write(tmp_path / "in", draw_ids)
    for n in range(6):
        (tmp_path / f"in/images/{n}.jpg").unlink()
        (tmp_path / f"in/images/{n}.png").write_bytes(draw_colors(n))
    (tmp_path / "in/masks").rename(tmp_path / "in" / folder)
    done = convert(tmp_path / "in")
    assert done.code == code, done.stderr
    assert ("image and mask pairs: 6" in done.stderr) is (code == 0)


def test_red_is_not_the_id_128(convert, tmp_path):
    def draw_red(n):
        red = np.zeros((SIZE[1], SIZE[0], 3), np.uint8)
        red[4 : 20 + n, 4:20, 0] = 128
        return encode(Image.fromarray(red), "PNG")

    write(tmp_path / "in", draw_red)
    assert "its masks have colors" in convert(tmp_path / "in").stderr
    kind = {"source.kind": "image_masks", "convention": "deeplab"}
    done = convert(tmp_path / "in", settings=kind)
    assert done.code == 3
    assert "the mask has colors: name a table of them in source.mask_colors" in done.stderr


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_ids_over_255_are_stored_in_16_bits(ending, convert, tmp_path):
    def draw_wide(n):
        ids = np.asarray(Image.open(_file(draw_mask(n, range(4), SIZE))))
        wide = np.array([0, 7, 300, 65_535], np.uint16)[ids]
        return encode(Image.fromarray(wide), {"png": "PNG", "tif": "TIFF"}[ending])

    write(tmp_path / "in", draw_wide, ending)
    (tmp_path / "in/codes.txt").write_text("0:void\n7:car\n300:tree\n", encoding="utf-8")
    done = convert(tmp_path / "in")
    assert done.code == 0, done.stderr
    assert "--set masks=png16" in done.stderr
    found = ids_in(done.output)
    assert found.keys() == {f"{n}.jpg" for n in range(6)}
    for n in range(6):
        drawn = np.asarray(Image.open(_file(draw_wide(n))))
        assert np.array_equal(found[f"{n}.jpg"], drawn)
    assert marker_of(done)["labels"] == {"void": 0, "car": 7, "tree": 300}


def test_images_in_class_folders_keep_their_class_and_their_mask(convert, tmp_path):
    for n, label in enumerate(("cat", "dog", "cat")):
        for folder, data in (
            ("images", encode_picture(n, SIZE)),
            ("masks", draw_mask(n, range(3), SIZE)),
        ):
            path = tmp_path / "in" / folder / label / f"{n}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    done = convert(tmp_path / "in")
    assert done.code == 0, done.stderr
    assert "image and mask pairs: 3 in 2 classes, such as" in done.stderr
    found = {}
    for elements in recordmill.open(done.output, features="all").values():
        found |= {each["image/filename"].decode(): each for each in elements}
    assert {name: int(each["label"]) for name, each in found.items()} == {
        "0.png": 0,
        "1.png": 1,
        "2.png": 0,
    }
    for n in range(3):
        drawn = np.asarray(Image.open(_file(draw_mask(n, range(3), SIZE))))
        assert np.array_equal(found[f"{n}.png"]["segmentation"], drawn)
    lost = convert(tmp_path / "in", "--overwrite", "--set", "convention=deeplab")
    assert (
        "not stored: the classes of 3 images: the convention (DeepLab) has no place for them; "
        "--set convention=tfds stores them"
    ) in lost.stderr


def test_the_error_has_flags_that_store_masks_of_colors_in_class_folders(convert, tmp_path):
    for n, label in enumerate(("cat", "dog", "cat")):
        for folder, data in (("images", encode_picture(n, SIZE)), ("masks", draw_colors(n))):
            path = tmp_path / "in" / folder / label / f"{n}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    table = {f"class {at}": color for at, color in enumerate(COLORS.tolist())}
    (tmp_path / "in/colors.json").write_text(json.dumps(table), encoding="utf-8")
    refused = convert(tmp_path / "in")
    assert refused.code == 2
    said = refused.stderr.partition("to store the masks of images, which have no class then, add ")
    done = convert(tmp_path / "in", *shlex.split(said[2]))
    assert done.code == 0, done.stderr
    for n in range(3):
        drawn = np.asarray(Image.open(_file(draw_mask(n, range(4), SIZE))))
        assert np.array_equal(ids_in(done.output)[f"{n}.png"], drawn)
    assert marker_of(done)["labels"] == {name: at for at, name in enumerate(table)}


def test_slopes_of_16_bits_do_not_look_like_masks(convert, tmp_path):
    def draw_depth(n):
        slope = np.arange(SIZE[0] * SIZE[1], dtype=np.uint16).reshape(SIZE[::-1])
        return encode(Image.fromarray(slope * 20 + n), "PNG")

    write(tmp_path / "in", draw_depth)
    done = convert(tmp_path / "in")
    assert done.code == 2
    assert "images and masks hold images of the same names" in done.stderr


@pytest.mark.parametrize("largest", [3, 26_003])
@pytest.mark.parametrize(
    ("image", "mask"),
    [
        ("leftImg8bit/train/a/{}_leftImg8bit.png", "gtFine/train/a/{}_gtFine_instanceIds.png"),
        ("images/{}.png", "instances/{}.png"),
        ("JPEGImages/{}.png", "SegmentationObject/{}.png"),
    ],
)
def test_numbers_of_objects_are_not_taken_for_ids_of_classes(
    convert, tmp_path, image, mask, largest
):
    for n in range(6):
        numbers = np.zeros(SIZE[::-1], np.uint8 if largest < 256 else np.uint16)
        numbers[4:20, 4 : 20 + n] = largest
        drawn = encode(Image.fromarray(numbers), "PNG")
        for form, data in ((image, encode_picture(n, SIZE)), (mask, drawn)):
            path = tmp_path / "in" / form.format(f"a_{n}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    done = convert(tmp_path / "in")
    assert done.code == 2
    assert "image_masks" not in done.stderr
    offers_objects = "--config configs/cityscapes_objects.yaml" in done.stderr
    assert offers_objects == image.startswith("leftImg8bit")


def test_a_list_names_the_classes(convert, tmp_path):
    write(tmp_path / "in", lambda n: draw_mask(n, (0, 2, 255), SIZE))
    (tmp_path / "in/codes.txt").write_text("void\ncar\ntree\n", encoding="utf-8")
    done = convert(tmp_path / "in")
    assert done.code == 0, done.stderr
    assert marker_of(done)["labels"] == {"void": 0, "car": 1, "tree": 2}
    report = (done.output / "report.html").read_text(encoding="utf-8")
    assert re.search('<bdi class="region" style="--c:#[0-9a-f]{6}">tree</bdi>', report)
    assert "3 classes of the semantic masks." in report
    assert "| 2 | tree |\n" in (done.output / "README.md").read_text(encoding="utf-8")
    assert (done.output / "labels.txt").read_text() == "0:void\n1:car\n2:tree\n"


def test_other_ids_of_an_edited_list_are_noted_without_a_setting_that_would_fail(convert, tmp_path):
    write(tmp_path / "in", lambda n: draw_mask(n, range(3), SIZE))
    (tmp_path / "in/codes.txt").write_text("void\ncar\ntree\n", encoding="utf-8")
    convert(tmp_path / "in")
    (tmp_path / "in/codes.txt").write_text("void\ntree\ncar\n", encoding="utf-8")
    done = convert(tmp_path / "in", "--update")
    assert done.code == 0, done.stderr
    assert (
        "2 classes have other ids than in the dataset that is replaced (car 1 -> 2, tree 2 -> 1): "
        "they are the source's numbers, which have changed"
    ) in done.stderr


def test_names_of_other_things_are_not_those_of_ids(convert, tmp_path):
    write(tmp_path / "in", lambda n: draw_mask(n, range(3), SIZE))
    rows = "".join(f"images/{n}.jpg,masks/{n}.png,{'ab'[n % 2]}\n" for n in range(6))
    (tmp_path / "in/rows.csv").write_text(f"image,mask,class\n{rows}", encoding="utf-8")
    columns = {"uri": "image", "mask": "mask", "label": "class"}
    source = {"kind": "manifest", "columns": columns}
    done = convert(tmp_path / "in", settings={"source": source, "convention": "deeplab"})
    assert done.code == 0, done.stderr
    assert marker_of(done)["labels"] == {"a": 0, "b": 1}
    assert not [*done.output.glob("*.labels.txt")]
    report = (done.output / "report.html").read_text(encoding="utf-8")
    assert '<bdi class="region"' not in report


def test_names_need_the_ids_in_masks(convert, tmp_path):
    write(tmp_path / "in", lambda n: draw_mask(n, range(3), SIZE))
    names = {"source.class_names": ["x", "y", "z"]}
    kind = {"source.kind": "image_masks", "convention": "deeplab"}
    done = convert(tmp_path / "in", settings=kind | names)
    assert done.code == 2
    assert "set labels.ids=integers" in done.stderr
    done = convert(tmp_path / "in", settings=kind | names | {"labels.ids": "integers"})
    assert done.code == 0, done.stderr
    assert marker_of(done)["labels"] == {"x": 0, "y": 1, "z": 2}


def test_a_list_of_too_few_classes_stops_the_run(convert, tmp_path):
    write(tmp_path / "in", lambda n: draw_mask(n, range(4), SIZE))
    (tmp_path / "in/codes.txt").write_text("void\ncar\n", encoding="utf-8")
    done = convert(tmp_path / "in")
    assert done.code == 2
    assert "codes.txt" in done.stderr


def test_second_images_other_than_masks_still_ask(convert, tmp_path):
    for kind in ("depth", "masks"):
        root = tmp_path / kind
        write(root, lambda n: encode_picture(("second", n), SIZE, "PNG", "L"))
        (root / "masks").rename(root / kind)
        done = convert(root)
        assert done.code == 2
        assert "hold images of the same names" in done.stderr


def test_masks_of_another_size_still_ask(convert, tmp_path):
    write(tmp_path / "in", lambda n: draw_mask(n, range(4), (24, 16)))
    done = convert(tmp_path / "in")
    assert done.code == 2
    assert "hold images of the same names" in done.stderr


def test_patterns_of_the_users_own_are_kept(convert, tmp_path):
    write(tmp_path / "in/train", lambda n: draw_mask(n, range(4), SIZE))
    (tmp_path / "in/test/images").mkdir(parents=True)
    for n in range(3):
        (tmp_path / f"in/test/images/{n}.jpg").write_bytes(encode_picture(("test", n), SIZE))
    done = convert(tmp_path / "in", "--set", "ignore=[x.csv]")
    assert done.code == 2
    assert '--set \'ignore=["x.csv","/test/images/"]\'' in done.stderr
    done = convert(tmp_path / "in", "--set", 'ignore=["x.csv","/test/images/"]')
    assert done.code == 0, done.stderr
    assert marker_of(done)["splits"]["train"]["records"] == 6
