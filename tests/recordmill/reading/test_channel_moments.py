import io
import json
from dataclasses import replace

import numpy as np
import pytest
from make_marker import make_marker
from PIL import Image

from recordmill.reading.analyze_dataset import COLUMNS, choose_split, read_moments
from recordmill.schemas.errors import LoadError
from recordmill.storage.dataset_files import read_marker

REBUILD = "convert the images again with --overwrite"


def gradient(width, height, mode="RGB", turned=False):
    """A picture that is another one in each channel and row, as a JPEG, perhaps with an orientation to be applied."""
    values = np.add.outer(np.arange(height) * 3, np.arange(width)) % 200
    image = Image.fromarray(np.stack([values, 255 - values, values // 2], axis=2).astype(np.uint8)).convert(mode)
    exif = Image.Exif()
    exif[0x0112] = 6 if turned else 1
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=92, exif=exif)
    return stream.getvalue()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, convert_images):
    root = tmp_path_factory.mktemp("rows")
    (root / "photos" / "cat").mkdir(parents=True)
    (root / "photos" / "cat" / "colour.jpg").write_bytes(gradient(20, 12))
    (root / "photos" / "cat" / "gray.jpg").write_bytes(gradient(9, 7, "L"))
    (root / "photos" / "cat" / "turned.jpg").write_bytes(gradient(16, 10, turned=True))
    (root / "photos" / "cat" / "broken.jpg").write_bytes(gradient(9, 7)[:300])
    settings = {"analyze": False, "images.moments": True, "splits.fractions": {"train": 1.0}, "shards.count": 2}
    return convert_images(root / "photos", root / "out", settings)


@pytest.fixture
def marker(dataset):
    return read_marker(str(dataset))


def stored_images(dataset):
    """The pixels of every record, in order, as Pillow decodes what is stored."""
    from recordmill import load_convention, parse_example

    features = load_convention("default").example_features
    for shard in read_marker(str(dataset)).splits["train"].shards:
        rows = map(json.loads, (dataset / shard.sidecar).read_text().splitlines())
        content = (dataset / shard.name).read_bytes()
        for row in rows:
            if "offset" in row:
                record = content[row["offset"] + 12 : row["offset"] + 12 + row["length"]]
                encoded = parse_example(features, record)["image/encoded"]
                yield np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB")).astype(np.int64)


def test_rows_say_what_is_stored_however_it_came_about(dataset, marker):
    numbers = read_moments(str(dataset), marker, "train")
    expected = [[*pixels.shape[:2], *pixels.sum((0, 1)), *(pixels**2).sum((0, 1))] for pixels in stored_images(dataset)]
    assert numbers.tolist() == [list(map(int, row)) for row in expected]
    assert numbers.dtype == np.int64
    assert numbers.shape == (3, len(COLUMNS))
    assert sorted(map(tuple, numbers[:, :2])) == [(7, 9), (12, 20), (16, 10)]


def test_a_split_is_named_or_train(marker):
    assert choose_split(marker, None, "x") == choose_split(marker, "train", "x") == "train"
    with pytest.raises(LoadError, match=r"^x has no split test: name one of train with --split$"):
        choose_split(marker, "test", "x")
    empty = make_marker(splits={"train": {}, "test": {"classes": {"cat": 1}}})
    assert choose_split(empty, "test", "x") == "test"
    with pytest.raises(LoadError, match=r"^split train of x has no images: name another with --split$"):
        choose_split(empty, None, "x")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"images": {"check": "header", "moments": True}}, "D was made with images.check: header, without its pixels"),
        ({"images": {"check": "decode", "moments": False}}, "the sidecars of D have no moments: convert it again with"),
        ({"images": {"store": "raw", "moments": True}}, "D holds raw pixels, and the model decodes images: convert it"),
        ({"images": {}}, "the sidecars of D have no moments: convert it again with --set analyze=true --overwrite"),
        ({"plan_version": 1}, "D was made by an older version, whose moments are of other pixels: convert it again"),
    ],
)
def test_a_dataset_without_fitting_moments_is_refused(marker, change, problem):
    changed = replace(marker, plan=replace(marker.plan, recipe={**marker.plan.recipe, **change}))
    with pytest.raises(LoadError) as error:
        read_moments("D", changed, "train")
    assert str(error.value).startswith(problem)


def with_sidecar(marker, **changes):
    train = marker.splits["train"]
    return replace(marker, splits={"train": replace(train, shards=(replace(train.shards[0], **changes),))})


def test_sidecars_that_the_marker_does_not_list_are_refused(dataset, marker):
    name = marker.splits["train"].shards[0].sidecar
    with pytest.raises(LoadError) as error:
        read_moments(str(dataset), with_sidecar(marker, sidecar_sha256="0" * 64), "train")
    assert str(error.value) == f"{dataset}/{name} is not the file that recordmill.json lists: {REBUILD}"
    with pytest.raises(LoadError) as error:
        read_moments(str(dataset), with_sidecar(marker, sidecar="sidecars/gone.jsonl"), "train")
    assert str(error.value) == f"{dataset} lacks sidecars/gone.jsonl: {REBUILD}"


def test_an_image_that_tensorflow_would_see_otherwise_is_named(tmp_path, convert_images):
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    Image.new("RGBA", (8, 8), (255, 0, 0, 9)).save(tmp_path / "photos" / "cat" / "clear.png")
    settings = {"images.reencode": "never", "images.moments": True, "splits.fractions": {"train": 1.0}}
    output = str(convert_images(tmp_path / "photos", tmp_path / "out", settings))
    with pytest.raises(LoadError) as error:
        read_moments(output, read_marker(output), "train")
    assert str(error.value) == (
        f"cat/clear.png is stored in {output} as TensorFlow does not read it, or not alike: "
        "convert it again with images.reencode: when_needed, and --overwrite"
    )
