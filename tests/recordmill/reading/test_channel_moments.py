import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from recordmill.reading.analyze_dataset import COLUMNS, read_moments
from recordmill.reading.dataset import open_dataset
from recordmill.schemas.errors import LoadError
from recordmill.storage.dataset_files import read_marker

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def gradient(width, height, mode="RGB", turned=False):
    """A picture that is another one in each channel and row, as a JPEG, perhaps with an orientation
    to be applied."""
    values = np.add.outer(np.arange(height) * 3, np.arange(width)) % 200
    image = Image.fromarray(
        np.stack([values, 255 - values, values // 2], axis=2).astype(np.uint8)
    ).convert(mode)
    exif = Image.Exif()
    exif[0x0112] = 6 if turned else 1
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=92, exif=exif)
    return stream.getvalue()


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, convert_images):
    root = tmp_path_factory.mktemp("rows")
    (root / "photos" / "cat").mkdir(parents=True)
    (root / "photos" / "cat" / "color.jpg").write_bytes(gradient(20, 12))
    (root / "photos" / "cat" / "gray.jpg").write_bytes(gradient(9, 7, "L"))
    (root / "photos" / "cat" / "turned.jpg").write_bytes(gradient(16, 10, turned=True))
    (root / "photos" / "cat" / "broken.jpg").write_bytes(gradient(9, 7)[:300])
    settings = {
        "analyze": False,
        "images.moments": True,
        "splits.fractions": {"train": 1.0},
        "shards.count": 2,
    }
    return convert_images(root / "photos", root / "out", settings)


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


def test_rows_say_what_is_stored_however_it_came_about(dataset):
    numbers = read_moments(open_dataset(str(dataset)), "train")
    expected = [
        [*pixels.shape[:2], *pixels.sum((0, 1)), *(pixels**2).sum((0, 1))]
        for pixels in stored_images(dataset)
    ]
    assert numbers.tolist() == [list(map(int, row)) for row in expected]
    assert numbers.dtype == np.int64
    assert numbers.shape == (3, len(COLUMNS))
    assert sorted(map(tuple, numbers[:, :2])) == [(7, 9), (12, 20), (16, 10)]


@pytest.mark.parametrize("split", ["test", "train+test"])
def test_a_split_without_images_is_one_sentence(dataset, split):
    sentence = f"{dataset} has no images in a split {split}: name one of train with --split"
    with pytest.raises(LoadError, match=f"^{re.escape(sentence)}$"):
        read_moments(open_dataset(str(dataset)), split)


@pytest.mark.parametrize(
    "change",
    [
        {"images": {"check": "header", "moments": True}},
        {"images": {"store": "raw", "moments": True}},
        {"images": {}},
        {"plan_version": 1},
    ],
)
def test_a_dataset_without_fitting_moments_is_refused(dataset, change):
    opened = open_dataset(str(dataset))
    plan = opened.marker.plan
    plan = replace(plan, recipe={**plan.recipe, **change}, settings={**plan.settings, **change})
    with pytest.raises(LoadError) as error:
        read_moments(replace(opened, marker_or_none=replace(opened.marker, plan=plan)), "train")
    assert str(error.value) == (
        f"{dataset} was converted without channel statistics: convert it "
        "again with "
        "--set analyze=true --overwrite"
    )


def test_sidecars_that_the_marker_does_not_list_are_refused(dataset):
    opened = open_dataset(str(dataset))
    for changes in ({"sidecar_sha256": "0" * 64}, {"sidecar": f"{dataset}/sidecars/gone.jsonl"}):
        shard = replace(opened.shards[0], **changes)
        with pytest.raises(LoadError) as error:
            read_moments(replace(opened, shards=(shard, *opened.shards[1:])), "train")
        assert str(error.value) == (
            f"{shard.sidecar} is missing, or not the file that recordmill.json lists: convert the "
            "images again with "
            "--overwrite"
        )


def test_an_image_that_tensorflow_would_see_otherwise_is_named(tmp_path, convert_images):
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    Image.new("RGBA", (8, 8), (255, 0, 0, 9)).save(tmp_path / "photos" / "cat" / "clear.png")
    settings = {
        "images.reencode": "never",
        "images.moments": True,
        "splits.fractions": {"train": 1.0},
    }
    output = str(convert_images(tmp_path / "photos", tmp_path / "out", settings))
    with pytest.raises(LoadError) as error:
        read_moments(open_dataset(output), "train")
    assert str(error.value) == (
        f"cat/clear.png is stored in {output} as TensorFlow does not read it, or not alike: "
        "convert it again with images.reencode: when_needed, and --overwrite"
    )
