"""Semantic masks, from the files that a manifest names to records."""

import io
import json
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packed_inputs import packed
from PIL import Image
from stored_records import read_records

import recordmill
from recordmill.imaging.masks.mask_file import encode_values
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.features import Example
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {
    "source": {"kind": "manifest", "columns": {"uri": "image", "mask": "mask"}},
    "convention": "deeplab",
    "splits.fractions": {"train": 1},
}
RNG = np.random.default_rng(38)
IDS = {name: RNG.integers(0, 21, (16, 24), np.uint8) for name in "abc"}


@pytest.fixture
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def segmented(tmp_path):
    """Three images and their semantic masks."""
    root = tmp_path / "segmented"
    for folder in ("images", "masks"):
        (root / folder).mkdir(parents=True)
    rows = ["image,mask"]
    for name, ids in IDS.items():
        (root / "images" / f"{name}.jpg").write_bytes(encode_picture(name))
        (root / "masks" / f"{name}.png").write_bytes(encode_values(ids))
        rows.append(f"images/{name}.jpg,masks/{name}.png")
    (root / "list.csv").write_text("\n".join(rows), encoding="utf-8")
    return root


def masks_in(done):
    """The image's name and the ids in each record."""
    for path in done.shards():
        for record in read_records(path):
            features = Example.FromString(bytes(record)).features.feature
            names = features["image/filename"].bytes_list.value
            (mask,) = features["image/segmentation/class/encoded"].bytes_list.value
            yield b"".join(names).decode(), np.asarray(Image.open(io.BytesIO(mask)))


def stored(done):
    """The ids in each record, by the image's name."""
    return dict(masks_in(done))


def ledger(done):
    return json.loads((done.output / "recordmill.json").read_bytes())["annotations"]


def test_records_have_the_semantic_masks_of_their_images(convert, segmented):
    done = convert(segmented, settings=SETTINGS)
    assert done.code == 0, done.stderr
    found = stored(done)
    assert found.keys() == {"a.jpg", "b.jpg", "c.jpg"}
    assert all(np.array_equal(found[f"{name}.jpg"], ids) for name, ids in IDS.items())
    entry = ledger(done)["segmentation"]
    assert (entry["listed"], entry["written"], entry["dropped"]) == (3, 3, {})
    assert verify_dataset(str(done.output), level="pixels").findings == ()


def test_faulty_masks_reject_their_images_with_a_reason(convert, segmented):
    (segmented / "masks" / "a.png").unlink()
    (segmented / "masks" / "b.png").write_bytes(encode_values(IDS["b"][1:]))
    done = convert(segmented, settings=SETTINGS)
    assert done.code == 0, done.stderr
    assert stored(done).keys() == {"c.jpg"}
    entry = ledger(done)["segmentation"]
    assert (entry["listed"], entry["written"]) == (3, 1)
    assert entry["dropped"] == {"mask_size": 1, "no_mask_file": 1}
    lines = (done.output / "rejected.jsonl").read_text(encoding="utf-8").splitlines()
    rejected = {each["key"]: (each["reason"], each["detail"]) for each in map(json.loads, lines)}
    assert rejected.keys() == {"images/a.jpg", "images/b.jpg"}
    assert rejected["images/a.jpg"][0] == "no_mask_file"
    assert rejected["images/b.jpg"] == (
        "mask_size",
        "masks/b.png: the mask has 24 x 15 pixels, and the image 24 x 16",
    )
    assert verify_dataset(str(done.output), level="pixels").findings == ()


def test_colors_become_ids_by_a_table(convert, segmented):
    colors = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0]], np.uint8)
    for name, ids in IDS.items():
        Image.fromarray(colors[ids % 3]).save(segmented / "masks" / f"{name}.png")
    table = "".join(f"{red} {green} {blue} class {red}\n" for red, green, blue in colors[:2])
    (segmented / "colors.txt").write_text(f"{table}0 128 0 last\n", encoding="utf-8")
    source = SETTINGS["source"] | {"mask_colors": "colors.txt"}
    done = convert(segmented, settings=SETTINGS | {"source": source})
    assert done.code == 0, done.stderr
    found = stored(done)
    assert all(np.array_equal(found[f"{name}.jpg"], ids % 3) for name, ids in IDS.items())


def test_png_names_the_setting_that_stores_ids_over_255_and_it_does(convert, segmented):
    wide = {name: ids.astype(np.uint16) * 300 for name, ids in IDS.items()}
    for name, ids in wide.items():
        (segmented / "masks" / f"{name}.png").write_bytes(encode_values(ids))
    refused = convert(segmented, settings=SETTINGS | {"max_rejected.segmentation.count": 0})
    assert refused.code != 0
    assert "--set masks=png16 stores ids up to 65,535" in refused.stderr
    done = convert(segmented, settings=SETTINGS | {"masks": "png16"})
    assert done.code == 0, done.stderr
    card = (done.output / "README.md").read_text(encoding="utf-8")
    assert "in 16 bits of gray, of the image's size; 65,535 is ignored |" in card
    found = stored(done)
    assert all(np.array_equal(found[f"{name}.jpg"], ids) for name, ids in wide.items())
    for elements in (recordmill.open(done.output)["train"], recordmill.load(done.output)):
        loaded = by_name(elements)
        assert {ids.dtype for ids in loaded.values()} == {np.dtype(np.uint16)}
        assert all(np.array_equal(loaded[f"{name}.jpg"], ids) for name, ids in wide.items())
    assert verify_dataset(str(done.output), level="pixels").findings == ()


def test_png16_without_semantic_masks_is_refused(convert, segmented):
    source = {"kind": "manifest", "columns": {"uri": "image"}}
    done = convert(segmented, settings={"source": source, "masks": "png16"})
    assert done.code == 2
    assert "masks is png16, which is for ids over 255 in semantic masks" in done.stderr
    assert "set masks=png" in done.stderr


def by_name(elements):
    """The ids of loaded elements by the image's name."""
    found = {}
    for each in elements:
        name = each["image/filename"]
        found[(name if isinstance(name, bytes) else name.numpy()).decode()] = each["segmentation"]
    return {name: np.asarray(ids) for name, ids in found.items()}


def test_loading_gives_semantic_masks_as_arrays(convert, segmented, tf):
    done = convert(segmented, settings=SETTINGS)
    opened = recordmill.open(done.output)["train"]
    loaded = recordmill.load(done.output)
    assert loaded.element_spec["segmentation"] == tf.TensorSpec((None, None), tf.uint8)
    undecoded = recordmill.load(done.output, decode=False, annotations=["segmentation"])
    for found in map(by_name, (opened, loaded, undecoded)):
        assert found.keys() == {"a.jpg", "b.jpg", "c.jpg"}
        for name, ids in IDS.items():
            assert found[f"{name}.jpg"].dtype == np.uint8
            assert np.array_equal(found[f"{name}.jpg"], ids)
    assert "segmentation" not in recordmill.open(done.output, annotations=[])["train"][0]


@pytest.mark.parametrize("size", [(7, 31), (40, 5)])
def test_loaded_semantic_masks_are_resized_by_nearest_pixels(convert, segmented, tf, size):
    done = convert(segmented, settings=SETTINGS)
    resized = recordmill.load(done.output, image_size=size)
    assert resized.element_spec["segmentation"] == tf.TensorSpec(size, tf.uint8)
    found = by_name(resized)
    for name, ids in IDS.items():
        wanted = tf.image.resize(ids[..., None], size, "nearest")[..., 0]
        assert np.array_equal(found[f"{name}.jpg"], wanted)


def test_batches_have_semantic_masks(convert, segmented, tf):
    done = convert(segmented, settings=SETTINGS)
    (batch,) = recordmill.load(done.output, batch_size=3)
    assert batch["segmentation"].shape == (3, *IDS["a"].shape)
    names = [name.decode()[0] for name in batch["image/filename"].numpy()]
    assert np.array_equal(batch["segmentation"], np.stack([IDS[name] for name in names]))
    (batch,) = recordmill.load(done.output, batch_size=3, image_size=(4, 6))
    assert batch["image/encoded"].shape == (3, 4, 6, 3)
    assert batch["segmentation"].shape == (3, 4, 6)


def test_batches_for_pytorch_have_semantic_masks(convert, segmented):
    pytest.importorskip("torch")
    done = convert(segmented, settings=SETTINGS)
    opened = recordmill.open(done.output)["train"]
    order = recordmill.EpochOrder(records=3, batch_size=3, shuffle=False)
    (batch,) = recordmill.TorchStream(opened, order)
    names = [name.decode()[0] for name in batch["image/filename"]]
    assert np.array_equal(batch["segmentation"], np.stack([IDS[name] for name in names]))


def test_limits_hold_for_faulty_masks(convert, segmented):
    (segmented / "masks" / "a.png").unlink()
    limits = {"max_rejected.segmentation.count": 0}
    done = convert(segmented, settings=SETTINGS | limits)
    assert done.code == 3
    assert "1 of 3 semantic masks (33.33%) was faulty (no_mask_file: 1)" in done.stderr


def test_an_edited_mask_changes_its_record_in_an_update(convert, segmented):
    first = convert(segmented, settings=SETTINGS)
    assert first.code == 0, first.stderr
    (segmented / "masks" / "b.png").write_bytes(encode_values(IDS["b"] + 1))
    again = convert(segmented, "--update", settings=SETTINGS)
    assert again.code == 0, again.stderr
    assert np.array_equal(stored(again)["b.jpg"], IDS["b"] + 1)
    assert np.array_equal(stored(again)["a.jpg"], IDS["a"])


def test_a_mask_that_was_missing_is_stored_by_an_update(convert, segmented):
    place = segmented / "masks" / "a.png"
    mask = place.read_bytes()
    place.unlink()
    assert stored(convert(segmented, settings=SETTINGS)).keys() == {"b.jpg", "c.jpg"}
    place.write_bytes(mask)
    again = convert(segmented, "--update", settings=SETTINGS)
    assert again.code == 0, again.stderr
    assert np.array_equal(stored(again)["a.jpg"], IDS["a"])


def samples(ending):
    """The images and masks as samples of WebDataset; the last one has no mask."""
    members = {}
    for name, ids in IDS.items():
        members |= {f"{name}.jpg": encode_picture(name), f"{name}.seg.png": encode_values(ids)}
    return packed(members | {"d.jpg": encode_picture("d")}, ending)


@pytest.mark.parametrize("ending", [".tar", ".tar.gz", ".zip"])
def test_masks_in_samples_of_archives(ending, convert, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / f"in/shard-0{ending}").write_bytes(samples(ending))
    source = {"kind": "archives", "labels": "beside", "label_part": "", "mask_part": "seg.png"}
    done = convert(tmp_path / "in", settings=SETTINGS | {"source": source})
    assert done.code == 0, done.stderr
    found = stored(done)
    assert found.keys() == {"a.jpg", "b.jpg", "c.jpg"}
    assert all(np.array_equal(found[f"{name}.jpg"], ids) for name, ids in IDS.items())
    entry = ledger(done)["segmentation"]
    assert (entry["listed"], entry["written"]) == (4, 3)
    assert entry["dropped"] == {"no_mask_file": 1}
    assert "there is no seg.png next to it" in (done.output / "rejected.jsonl").read_text()
    (sidecar,) = (done.output / "sidecars").glob("train*.jsonl")
    assert f'"key":"shard-0{ending}/a.seg.png"' in sidecar.read_text(encoding="utf-8")


def test_colors_in_samples_become_ids_by_a_table(convert, tmp_path):
    colors = np.array([[0, 0, 0], [255, 0, 0], [0, 128, 0]], np.uint8)
    ids = np.arange(24).reshape(4, 6) % 3
    mask = io.BytesIO()
    Image.fromarray(colors[ids]).save(mask, "PNG")
    members = {"a.jpg": encode_picture("a", (6, 4)), "a.seg.png": mask.getvalue()}
    (tmp_path / "in").mkdir()
    (tmp_path / "in/shard-0.tar").write_bytes(packed(members, ".tar"))
    (tmp_path / "in/colors.txt").write_text("0 0 0 sky\n255 0 0 road\n0 128 0 car\n")
    source = {"kind": "archives", "labels": "beside", "label_part": "", "mask_part": "seg.png"}
    source["mask_colors"] = "colors.txt"
    done = convert(tmp_path / "in", settings=SETTINGS | {"source": source})
    assert done.code == 0, done.stderr
    assert np.array_equal(stored(done)["a.jpg"], ids)


def test_samples_of_images_and_masks_alone_are_stored_by_the_command_that_is_offered(
    convert, tmp_path
):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/shard-0.tar").write_bytes(samples(".tar"))
    asked = convert(tmp_path / "in", output=tmp_path / "out")
    assert asked.code == 2
    command = asked.stderr.rpartition("to store both in one record: ")[2]
    flags = shlex.split(command)[shlex.split(command).index("--set") :]
    done = convert(tmp_path / "in", *flags, "--set=splits.fractions={train: 1}")
    assert done.code == 0, done.stderr
    assert stored(done).keys() == {"a.jpg", "b.jpg", "c.jpg"}


def test_the_note_on_masks_in_samples_says_how_to_store_them(convert, tmp_path):
    (tmp_path / "in").mkdir()
    members = {}
    for name, ids in IDS.items():
        members |= {f"{name}.jpg": encode_picture(name), f"{name}.seg.png": encode_values(ids)}
        members[f"{name}.txt"] = b"a street"
    (tmp_path / "in/train-0.tar").write_bytes(packed(members, ".tar"))
    done = convert(tmp_path / "in")
    assert done.code == 0, done.stderr
    flags = ["--set", "source.mask_part=seg.png", "--set", "convention=deeplab"]
    assert " ".join(flags) in " ".join(done.stderr.split())
    done = convert(tmp_path / "in", *flags, output=tmp_path / "with masks")
    assert done.code == 0, done.stderr
    assert stored(done).keys() == {"a.jpg", "b.jpg", "c.jpg"}


def test_an_edited_mask_in_an_archive_changes_its_record_in_an_update(convert, tmp_path):
    (tmp_path / "in").mkdir()
    shard = tmp_path / "in/shard-0.tar"
    shard.write_bytes(samples(".tar"))
    source = {"kind": "archives", "labels": "beside", "label_part": "", "mask_part": "seg.png"}
    first = convert(tmp_path / "in", settings=SETTINGS | {"source": source})
    assert first.code == 0, first.stderr
    members = {
        f"{name}.{part}": data
        for name, ids in IDS.items()
        for part, data in (
            ("jpg", encode_picture(name)), ("seg.png", encode_values(ids[::-1]))
        )
    }  # fmt: skip
    shard.write_bytes(packed(members, ".tar"))
    again = convert(tmp_path / "in", "--update", settings=SETTINGS | {"source": source})
    assert again.code == 0, again.stderr
    assert all(np.array_equal(stored(again)[f"{name}.jpg"], ids[::-1]) for name, ids in IDS.items())


def write_parquet(path):
    def cell(data):
        return {"bytes": data, "path": None}

    rows = [
        {"image": cell(encode_picture(name)), "label_mask": cell(encode_values(ids))}
        for name, ids in IDS.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)


def test_masks_in_cells_of_parquet(convert, tmp_path):
    (tmp_path / "in").mkdir()
    write_parquet(tmp_path / "in/train.parquet")
    done = convert(tmp_path / "in")
    assert done.code == 2
    way = done.stderr.partition("for semantic masks in label_mask, add ")[2]
    flags = shlex.split(way)[:6]
    assert flags[-1] == "convention=deeplab"
    done = convert(tmp_path / "in", *flags)
    assert done.code == 0, done.stderr
    found = [mask for _, mask in masks_in(done)]
    assert len(found) == 3
    assert all(any(np.array_equal(each, ids) for each in found) for ids in IDS.values())
    assert ledger(done)["segmentation"]["written"] == 3
