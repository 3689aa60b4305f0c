"""`images.function` and `keep` in whole runs: functions of the user's own, and the filters that
Recordmill has."""

import io
import json
import sys

import numpy as np
import pytest
from marker_counts import counts_of
from PIL import Image

from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.verify import main as verify
from recordmill.transforms.records.image_functions import find_function
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

OWN = """
import itertools
import numpy as np
import recordmill

counter = itertools.count()

def invert(image):
    return 255 - image

def keep_all(image):
    return image

def crop(image):
    return image[2:-2, 3:-3]

def left(image):
    return image[:, :40]

def gray(image):
    return image[:, :, :1]

def scribble(image):
    image[:4] = 0
    return image

def see(image):
    assert (image.dtype, image.ndim, image.flags.writeable) == (np.uint8, 3, True), image
    shapes.append(image.shape)
    return image

shapes = []

def reject_dark(image):
    if image.mean() < 60:
        raise recordmill.Reject("too dark\\nfor us")
    return image

def fail(image):
    raise RuntimeError("no weights\\nin here")

def leave(image):
    raise SystemExit("no license")

def at_random(image):
    return image // (1 + next(counter) % 2)

def no_array(image): return image.tolist()
def floats(image): return image / 255
def nans(image): return np.full(image.shape, np.nan)
def flat(image): return image[:, :, 0]
def nothing(image): return image[:0]
def long(image): return np.zeros((1, 70_000, 1), np.uint8)

def wanted(image): return bool(image.shape[1] > 20)
def never(image): return np.bool_(False)
def undecided(image): return None
def moody(image): return next(counter) % 2 == 0
"""
PAGE = "docs/fix_rejected.md has a remedy for each reason"
ALL = {"splits.fractions": {"train": 1.0}}


@pytest.fixture
def own(tmp_path, monkeypatch):
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "own_hooks.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    find_function.cache_clear()
    yield folder / "own_hooks.py"
    find_function.cache_clear()
    sys.modules.pop("own_hooks", None)


def pixels(encoded):
    return np.asarray(Image.open(io.BytesIO(encoded)))


def stored(done):
    return {
        row["key"]: example["image/encoded"]
        for row, example in zip(done.rows(), done.examples(), strict=True)
    }


def rejections(done):
    return [(row["key"], row["stage"], row["reason"], row["detail"]) for row in done.rejected]


def left_out(done):
    return {
        row["key"]: (row["left_out"], row["detail"]) for row in done.rows() if "left_out" in row
    }


def verified(done, capsys):
    capsys.readouterr()
    assert verify([str(done.output)]) == 0
    return json.loads(capsys.readouterr().out)["findings"] == []


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_function_changes_the_pixels_before_they_are_encoded(convert, tmp_path, kind):
    (tmp_path / "photos/cat").mkdir(parents=True)
    data = encode_picture("one", (24, 16), kind)
    (tmp_path / "photos/cat/0.img").write_bytes(data)
    done = convert(
        tmp_path / "photos",
        settings={**ALL, "images.function": "own_hooks:invert", "images.store": "png"},
    )
    ((row), (example)) = (*done.rows(), *done.examples())
    assert row["changes"] == ["prepared", "reencoded"]
    difference = pixels(example["image/encoded"]).astype(int) - (255 - pixels(data).astype(int))
    assert abs(difference).max() <= (2 if kind == "JPEG" else 0), (
        "libjpeg-turbo's and Pillow's decoders differ a little"
    )


@pytest.mark.usefixtures("own")
def test_it_may_return_another_size_or_one_channel_and_is_called_before_resizing(
    convert, photos, capsys
):
    cropped = convert(
        photos, settings={**ALL, "images": {"function": "own_hooks:crop", "resize": {"longest": 9}}}
    )
    assert {(row["width"], row["height"]) for row in cropped.rows()} == {(9, 6)}  # of 18 x 12
    assert {tuple(row["changes"]) for row in cropped.rows()} == {
        ("prepared", "reencoded", "resized")
    }
    assert verified(cropped, capsys)
    gray = convert(photos, "--overwrite", settings={**ALL, "images.function": "own_hooks:gray"})
    assert {(row["channels"], *row["changes"]) for row in gray.rows()} == {
        (1, "prepared", "reencoded")
    }
    expanded = {"function": "own_hooks:gray", "grayscale": "expand"}
    done = convert(photos, "--overwrite", settings={**ALL, "images": expanded})
    assert {row["channels"] for row in done.rows()} == {3}
    assert {tuple(row["changes"]) for row in done.rows()} == {
        ("grayscale_expanded", "prepared", "reencoded")
    }


@pytest.mark.usefixtures("own")
def test_it_gets_upright_images_and_sees_each_once_after_the_sample(convert, tmp_path):
    (tmp_path / "photos/cat").mkdir(parents=True)
    exif = Image.Exif()
    exif[0x0112] = 6
    picture = Image.open(io.BytesIO(encode_picture("one", (24, 16), "PNG")))
    picture.save(tmp_path / "photos/cat/turned.jpg", exif=exif)
    picture.convert("L").save(tmp_path / "photos/cat/zgray.png")
    done = convert(
        tmp_path / "photos",
        "--set=report=false",
        settings={**ALL, "images.function": "own_hooks:see"},
    )
    assert done.code == 0, done.stderr
    shapes = sys.modules["own_hooks"].shapes
    assert sorted(shapes) == 3 * [(16, 24, 1)] + 3 * [(24, 16, 3)], (
        "twice for the plan, once for the dataset"
    )


@pytest.mark.usefixtures("own")
def test_a_function_that_changes_nothing_is_reported(convert, photos):
    done = convert(photos, settings={**ALL, "images.function": "own_hooks:keep_all"})
    assert done.line["changes"] == {"reencoded": 10}
    assert done.line["notes"] == ["images.function had no effect on any of 10 images"]


@pytest.mark.usefixtures("own")
def test_pixels_of_arrays_are_changed_too(convert, tmp_path):
    images = np.random.default_rng(1).integers(0, 255, (5, 6, 8, 3), np.uint8)
    np.savez(
        tmp_path / "data.npz",
        x_train=images,
        y_train=np.arange(5),
        x_test=images[:1],
        y_test=np.arange(1),
    )
    settings = {
        "images.function": "own_hooks:invert",
        "images.store": "png",
        "convention": "default",
    }
    done = convert(tmp_path / "data.npz", "--config=configs/arrays.yaml", settings=settings)
    assert done.code == 0, done.stderr
    found = sorted(pixels(data).tobytes() for data in stored(done).values())
    assert found == sorted((255 - image).tobytes() for image in (*images, images[0]))


@pytest.mark.usefixtures("own")
def test_images_that_look_alike_once_prepared_stay_together(convert, tmp_path):
    (tmp_path / "photos/cat").mkdir(parents=True)
    for number in range(20):
        left, right = (
            encode_picture("same", (40, 30), "PNG"),
            encode_picture(number, (40, 30), "PNG"),
        )
        both = np.concatenate([pixels(left), pixels(right)], axis=1)
        Image.fromarray(both).save(tmp_path / f"photos/cat/{number}.png")
    settings = {"images.near_duplicates": "together", "splits.fractions": {"a": 0.5, "b": 0.5}}
    apart = convert(tmp_path / "photos", settings=settings)
    assert (apart.code, len(apart.marker["splits"])) == (0, 2)
    joined = convert(
        tmp_path / "photos",
        "--overwrite",
        settings={**settings, "images.function": "own_hooks:left"},
    )
    assert joined.code == 1
    assert "20 of 20 images" in joined.errors[0]
    failed = convert(
        tmp_path / "photos",
        "--overwrite",
        settings={**settings, "images.function": "own_hooks:fail"},
    )
    assert failed.errors[0].startswith("images.function: own_hooks:fail failed on cat/")


@pytest.mark.usefixtures("own")
def test_a_rejection_by_a_function_shows_its_message(convert, photos, capsys):
    Image.new("RGB", (24, 16), (9, 9, 9)).save(photos / "cat/black.png")
    done = convert(photos, settings={**ALL, "images.function": "own_hooks:reject_dark"})
    assert (done.code, done.marker["ledger"]["rejected"]) == (0, {"function": 1})
    assert rejections(done) == [("cat/black.png", "encode", "function", "too dark for us")]
    assert len(done.rejected[0]["sha256"]) == 64
    assert verified(done, capsys)


FIT = "return height x width x 1 or 3 values of uint8, 0 to 255"


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize("count", [1, None])
@pytest.mark.parametrize(
    ("setting", "name", "why"),
    [
        ("images.function", "fail", "{} failed on {}: RuntimeError: no weights in here"),
        ("images.function", "leave", "{} failed on {}: SystemExit: no license"),
        (
            "images.function",
            "no_array",
            "{} returned, for {}, a value of the type list: return a numpy array",
        ),
        (
            "images.function",
            "floats",
            f"{{}} returned, for {{}}, an array of shape [16, 24, 3] of float64: {FIT}",
        ),
        (
            "images.function",
            "nans",
            f"{{}} returned, for {{}}, an array of shape [16, 24, 3] of float64: {FIT}",
        ),
        (
            "images.function",
            "flat",
            f"{{}} returned, for {{}}, an array of shape [16, 24] of uint8: {FIT}",
        ),
        ("images.function", "nothing", "{} returned, for {}, 24 x 0 pixels: return another size"),
        (
            "images.function",
            "long",
            "{} returned, for {}, 70000 x 1 pixels; max_side is 65,500: return another size",
        ),
        (
            "images.function",
            "at_random",
            "{} gave two answers for {}: its answer must depend on the image alone",
        ),
        ("keep.function", "fail", "{} failed on {}: RuntimeError: no weights in here"),
        (
            "keep.function",
            "undecided",
            "{} returned, for {}, a value of the type NoneType: return True or False",
        ),
        (
            "keep.function",
            "moody",
            "{} gave two answers for {}: its answer must depend on the image alone",
        ),
    ],
)
def test_a_function_that_is_wrong_fails_the_run_in_one_sentence(
    convert, tmp_path, class_folders, setting, name, why, count
):
    root = class_folders(tmp_path / "photos", {"cat": 1})
    done = convert(root, settings={**ALL, setting: f"own_hooks:{name}", "shards.count": count})
    assert done.answer == (1, f"{setting}: {why.format(f'own_hooks:{name}', 'cat/00.jpg')}")
    assert not (done.output / "recordmill.json").exists()


SHIPS = {"source.kind": "yolo", "convention": "tf_object_detection", **ALL}


@pytest.fixture
def ships(tmp_path):
    root = tmp_path / "ships"
    for folder in ("images", "labels"):
        (root / folder).mkdir(parents=True)
    for name, text in {
        "a": "0 0.5 0.5 0.5 0.5\n1 0.5 0.5 0.2 0.2\n",
        "b": "0 0.5 0.5 0.5 0.5\n",
        "c": "",
    }.items():
        (root / f"images/{name}.jpg").write_bytes(
            encode_picture(name, (24, 16) if name != "b" else (12, 9))
        )
        (root / f"labels/{name}.txt").write_text(text, encoding="utf-8")
    (root / "data.yaml").write_text("names: [ship, boat]\n", encoding="utf-8")
    return root


@pytest.mark.usefixtures("own")
def test_the_size_of_images_with_boxes_must_not_change(convert, ships):
    done = convert(ships, settings={**SHIPS, "images.function": "own_hooks:crop"})
    why = (
        "own_hooks:crop returned, for images/{}.jpg, {} pixels for an image of {} with boxes: "
        "keep its size"
    )
    code, sentence = done.answer
    assert (code, sentence in {
        f"images.function: {why.format('a', '18 x 12', '24 x 16')}",
        f"images.function: {why.format('b', '6 x 5', '12 x 9')}",
    }) == (1, True), sentence  # fmt: skip
    for name in "ab":
        (ships / f"labels/{name}.txt").write_text("", encoding="utf-8")
    assert convert(ships, settings={**SHIPS, "images.function": "own_hooks:crop"}).code == 0


@pytest.mark.usefixtures("own")
def test_boxes_move_with_resizing_as_without_a_function(convert, ships, tmp_path):
    images = {"resize": {"exact": [30, 30], "fit": "pad"}}
    names = ("image/object/bbox/xmin", "image/object/bbox/ymax")
    boxes = []
    for number, more in enumerate(({}, {"function": "own_hooks:scribble"})):
        done = convert(
            ships,
            output=tmp_path / f"out{number}",
            settings={**SHIPS, "images": {**images, **more}},
        )
        assert done.code == 0, done.stderr
        boxes.append(
            [
                [list(record.features.feature[name].float_list.value) for name in names]
                for record in records(done)
            ]
        )
    assert boxes[0] == boxes[1]


def records(done):
    from recordmill.schemas.features import Example
    from tests.pipeline.conftest import split_records

    return [
        Example.FromString(data)
        for path in done.shards()
        for _, data in split_records(path.read_bytes())
    ]


@pytest.mark.usefixtures("own")
def test_images_that_are_not_kept_are_counted_with_their_boxes(convert, ships, capsys):
    done = convert(ships, settings={**SHIPS, "keep": "own_hooks:wanted"})
    marker = done.marker
    assert marker["ledger"] == {
        "listed": 4,
        "written": 2,
        "rejected": {},
        "left_out": {"unwanted": 1},
        "ignored": {"class_names": 1},
    }
    assert counts_of(marker, "boxes") == {"listed": 3, "written": 2, "with_left_out_images": 1}
    assert done.rejected == []
    assert left_out(done) == {"images/b.jpg": ("unwanted", "own_hooks:wanted")}
    assert verified(done, capsys)
    page = (done.output / "report.html").read_text(encoding="utf-8")
    assert "keep.function" in page
    assert "returned false" in page
    assert inspect([str(done.output), "--where=b.jpg"]) == 1
    sentence = "images/b.jpg was left out: unwanted (own_hooks:wanted)"
    assert json.loads(capsys.readouterr().out)["message"] == sentence
    card = (done.output / "README.md").read_text(encoding="utf-8")
    assert "| left out | `unwanted`: `keep.function` returned false | 1 |" in card


TAGS = {
    "source": {"kind": "manifest", "columns": {"uri": "path", "labels": "tags"}, "separator": "|"},
    "convention": {"features": {
        "encoded": {"field": "encoded", "type": "bytes"},
        "labels": {"field": "labels", "type": "int64", "shape": [None]},
        "texts": {"field": "label_texts", "type": "bytes", "shape": [None]},
    }},
    **ALL,
}  # fmt: skip


def test_labels_of_images_that_are_not_kept_are_counted(convert, tmp_path, capsys):
    root = tmp_path / "tagged"
    root.mkdir()
    for name, size in {"a": (24, 16), "b": (12, 9)}.items():
        (root / f"{name}.jpg").write_bytes(encode_picture(name, size))
    (root / "list.csv").write_text(
        "path,tags\na.jpg,red|blue\nb.jpg,red|green|blue\n", encoding="utf-8"
    )
    done = convert(root, settings={**TAGS, "keep.min_side": 10})
    assert counts_of(done.marker, "labels") == {
        "listed": 5,
        "written": 2,
        "with_left_out_images": 3,
    }
    assert verified(done, capsys)


@pytest.fixture
def mixed(tmp_path):
    """One image for each filter, next to four that meet all conditions."""
    root = tmp_path / "mixed/cat"
    root.mkdir(parents=True)
    noise = np.random.default_rng(3).integers(0, 256, (64, 64, 3), np.uint8)
    for number in range(4):
        Image.fromarray(np.roll(noise, number, 0)).save(root / f"good{number}.png")
    Image.fromarray(noise[:, :20]).save(root / "narrow.png")
    Image.fromarray(noise[:30, :30]).save(root / "small.png")
    Image.fromarray(noise // 20).save(root / "dark.png")
    Image.fromarray(noise).resize((8, 8)).resize((64, 64), Image.Resampling.BICUBIC).save(
        root / "blurred.png"
    )
    return root.parent


FILTERS = {"min_side": 31, "max_aspect": 2, "min_sharpness": 500, "min_brightness": 40}


def test_each_filter_leaves_out_its_images(convert, mixed, capsys):
    done = convert(mixed, settings={**ALL, "keep": {**FILTERS, "min_side": 20}})
    found = {key: reason for key, (reason, _) in left_out(done).items()}
    assert found == {
        "cat/narrow.png": "too_long",
        "cat/dark.png": "too_dark",
        "cat/blurred.png": "too_blurred",
    }
    done = convert(mixed, "--overwrite", settings={**ALL, "keep": FILTERS})
    assert left_out(done)["cat/small.png"] == ("too_small", "30 x 30 pixels")
    assert left_out(done)["cat/narrow.png"] == ("too_small", "20 x 64 pixels")
    assert done.marker["ledger"]["left_out"] == {"too_blurred": 1, "too_dark": 1, "too_small": 2}
    assert (done.code, done.keys()) == (0, [f"cat/good{number}.png" for number in range(4)])
    assert verified(done, capsys)
    again = convert(mixed, settings={**ALL, "keep": FILTERS})
    assert again.line["status"] == "kept"


def test_filters_of_sizes_are_applied_before_a_function_sees_the_image(convert, mixed, own):
    own.write_text(
        "def prepare(image):\n    assert min(image.shape[:2]) > 30\n    return image[:30, :30]\n"
    )
    done = convert(
        mixed, settings={**ALL, "images.function": "own_hooks:prepare", "keep.min_side": 31}
    )
    assert (done.code, done.marker["ledger"]["written"]) == (0, 6)


def test_images_that_are_kept_are_the_same_bytes_as_without_filters(convert, photos, tmp_path):
    Image.new("RGB", (9, 9)).save(photos / "cat/small.png")
    settings = {**ALL, "images.check": "header"}
    plain, kept = (
        convert(photos, output=tmp_path / str(number), settings={**settings, **more})
        for number, more in enumerate(({}, {"keep": {"min_side": 10, "min_sharpness": 1}}))
    )
    before = stored(plain)
    del before["cat/small.png"]
    rows = [row for row in kept.rows() if "rejected" not in row]
    assert {
        row["key"]: data["image/encoded"] for row, data in zip(rows, kept.examples(), strict=True)
    } == before
    assert plain.marker["plan"]["id"] != kept.marker["plan"]["id"]


@pytest.mark.usefixtures("own")
def test_losing_everything_or_a_class_fails_the_run(convert, tmp_path, class_folders):
    root = class_folders(tmp_path / "photos", {"cat": 3})
    done = convert(root, settings={**ALL, "keep": "own_hooks:never"})
    (staging,) = done.staging
    assert done.answer == (
        3,
        "nothing is left: all 3 images were rejected or left out (3 unwanted)",
        PAGE,
        f"{staging}/report.html shows what was converted",
    )
    class_folders(root, {"dog": 2}, (12, 8))
    done = convert(root, settings={**ALL, "keep.min_side": 9})
    (staging,) = done.staging
    assert done.answer == (
        3,
        "all images of 1 class were rejected or left out (dog), and max_rejected.lost_classes is 0",
        "accept the loss with --set max_rejected.lost_classes=1",
        PAGE,
        f"{staging}/report.html shows what was converted",
    )
    allowed = convert(root, settings={**ALL, "keep.min_side": 9, "max_rejected.lost_classes": 1})
    assert (allowed.code, allowed.marker["ledger"]["left_out"]) == (0, {"too_small": 2})


def test_an_emptied_split_is_lost_or_noted_and_its_sidecar_kept(
    convert, tmp_path, class_folders, capsys
):
    root = tmp_path / "photos"
    class_folders(root / "train", {"cat": 3})
    class_folders(root / "test", {"cat": 2}, (12, 8))
    settings = {"splits.from_folders": {"train": "train", "test": "test"}, "keep.min_side": 9}
    failed = convert(root, settings=settings)
    (staging,) = failed.staging
    assert failed.answer == (
        3,
        "all images of 1 split were rejected or left out (test), and max_rejected.lost_classes is "
        "0",
        "accept the loss with --set max_rejected.lost_classes=1",
        PAGE,
        f"{staging}/report.html shows what was converted",
    )
    done = convert(
        root, settings={**settings, "max_rejected.lost_classes": 1}, output=tmp_path / "allowed"
    )
    assert done.code == 0
    assert "split test is empty: its images were rejected or left out" in done.line["notes"]
    assert "sidecars/rejected-00000.jsonl" in done.files
    assert verified(done, capsys)
    assert inspect([str(done.output), "--where=test/cat/00.jpg"]) == 1
    assert "was left out: too_small (12 x 8 pixels)" in capsys.readouterr().out


def test_what_is_left_out_does_not_count_as_rejected(convert, tmp_path, class_folders):
    root = class_folders(tmp_path / "photos", {"cat": 3})
    class_folders(root, {"cat": 0, "dog": 1})
    for number in range(30):
        (root / f"cat/small{number}.jpg").write_bytes(encode_picture(number, (12, 8)))
    done = convert(
        root, settings={**ALL, "keep.min_side": 9, "max_rejected": {"count": 0, "share": 0}}
    )
    assert (done.code, done.marker["ledger"]["left_out"]) == (0, {"too_small": 30})


@pytest.mark.runner
@pytest.mark.usefixtures("own")
@pytest.mark.slow
def test_beams_writer_leaves_the_same_images_out(convert, photos):
    Image.new("RGB", (24, 16), (9, 9, 9)).save(photos / "cat/black.png")
    Image.new("RGB", (9, 9), (200, 9, 9)).save(photos / "cat/small.png")
    settings = {
        **ALL,
        "images.function": "own_hooks:reject_dark",
        "keep.min_side": 10,
        "shards.count": 1,
    }
    done = convert(photos, "--writer=beam", settings=settings)
    assert (done.code, done.line["ledger"]) == (
        0,
        {
            "listed": 12,
            "written": 10,
            "rejected": {"function": 1},
            "ignored": {},
            "left_out": {"too_small": 1},
        },
    )


def test_changed_code_is_another_dataset(convert, photos, own):
    settings = {**ALL, "images.function": "own_hooks:invert", "keep": "own_hooks:wanted"}
    done = convert(photos, settings=settings)
    first = done.marker["plan"]
    assert set(first["recipe"]["hooks"]) == {"images", "keep"}
    own.write_text(OWN + "# changed\n", encoding="utf-8")
    find_function.cache_clear()
    sys.modules.pop("own_hooks")
    refused = convert(photos, settings=settings)
    assert (refused.code, refused.line["status"]) == (1, "refused")


def test_a_failed_run_resumes_with_the_shards_that_were_finished(convert, photos, class_folders):
    class_folders(photos, {"emu": 2}, (12, 8))
    settings = {**ALL, "shards.count": 3, "keep.min_side": 9}
    assert convert(photos, settings=settings).code == 3
    done = convert(photos, settings={**settings, "max_rejected.lost_classes": 1})
    assert done.line["notes"][-1] == "3 of 3 shards had been finished by an earlier run"
    assert done.marker["ledger"]["left_out"] == {"too_small": 2}


@pytest.mark.usefixtures("own")
@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"images.function": "invert"},
            "images.function is 'invert': write package.module:function",
        ),
        ({"keep": "blur"}, "keep.function is 'blur': write package.module:function"),
        ({"keep": {"min_side": 0}}, "keep.min_side"),
        ({"keep": {"max_aspect": 0.5}}, "keep.max_aspect"),
        ({"keep": {"blur": 3}}, "keep.blur"),
        (
            {"images.function": "own_hooks:none"},
            "images.function 'own_hooks:none': the module own_hooks has no function 'none'",
        ),
        ({"keep": "own_none:none"}, "keep.function 'own_none:none': the module cannot be imported"),
        (
            {"images.function": "own_hooks:invert", "images.reencode": "never"},
            "images.function needs re-encoding, and images.reencode is never: remove one of them",
        ),
        (
            {"images.function": "own_hooks:invert", "images.reencode": "when_needed"},
            "images.reencode is when_needed, and images.function changes every image: remove one "
            "of them",
        ),
        (
            {
                "images.function": "own_hooks:invert",
                "decode": "none",
                "convention": "feature_vector",
                "features.feature": {"function": "own_hooks:fail", "of": "file"},
            },
            "images.function has no effect, since no image is decoded",
        ),
        (
            {
                "keep.min_side": 3,
                "decode": "none",
                "convention": "feature_vector",
                "features.feature": {"function": "own_hooks:fail", "of": "file"},
            },
            "keep has no effect, since no image is decoded",
        ),
    ],
)
def test_settings_of_functions_without_effect_are_refused(convert, photos, settings, why):
    done = convert(photos, settings=settings)
    assert done.code == 2
    assert why in done.errors[0]
