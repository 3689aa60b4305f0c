"""Second images of pairs, from the files that patterns or a manifest name to records."""

import hashlib
import io
import json
import re
import shlex

import numpy as np
import pytest
from PIL import Image
from stored_records import read_records

from recordmill.reading.dataset import open_dataset
from recordmill.reading.example import ParsedExample, expect
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.reading.verify_images import check_pixels
from recordmill.schemas.features import Example
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {
    "source": {
        "kind": "class_folders",
        "class_from": "none",
        "pairs_of": "A/{name}.jpg",
        "pairs": {"target": "B/{name}.png"},
    },
    "images.store": "png",
    "splits.fractions": {"train": 1},
}


@pytest.fixture
def paired(tmp_path):
    """Three images in `A`, and their second images in `B`."""
    root = tmp_path / "paired"
    for name in "abc":
        for folder, kind in (("A", "JPEG"), ("B", "PNG")):
            path = root / folder / f"{name}.{'jpg' if folder == 'A' else 'png'}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_picture((folder, name), kind=kind))
    return root


def read_features(done):
    """The features of each record, by the image's key."""
    found = {}
    for path in done.shards():
        for record in read_records(path):
            features = Example.FromString(bytes(record)).features.feature
            (key,) = features["image/filename"].bytes_list.value
            found[key.decode()] = features
    return found


def second(features, name="target"):
    (encoded,) = features[f"image/{name}/encoded"].bytes_list.value
    return encoded


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)))


def marker(done):
    return json.loads((done.output / "recordmill.json").read_bytes())


def rejected(done):
    lines = (done.output / "rejected.jsonl").read_text(encoding="utf-8").splitlines()
    return {each["key"]: (each["reason"], each["detail"]) for each in map(json.loads, lines)}


def test_records_have_the_second_images_of_their_images(convert, paired):
    done = convert(paired, settings=SETTINGS)
    assert done.code == 0, done.stderr
    found = read_features(done)
    assert found.keys() == {"a.jpg", "b.jpg", "c.jpg"}
    for name, features in found.items():
        source = (paired / "B" / name.replace(".jpg", ".png")).read_bytes()
        assert second(features) == source
        assert features["image/target/format"].bytes_list.value[:] == [b"png"]
    made = marker(done)
    assert made["ledger"]["listed"] == made["ledger"]["written"] == 3
    entry = made["annotations"]["pairs"]
    assert (entry["listed"], entry["written"], entry["dropped"]) == (3, 3, {})
    assert verify_dataset(str(done.output), level="pixels").findings == ()


def test_sidecars_have_the_digests_of_second_images(convert, paired):
    done = convert(paired, settings=SETTINGS)
    (path,) = (done.output / "sidecars").glob("train*.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    files = {row["key"]: row["annotations"]["pairs"]["files"] for row in rows}
    data = (paired / "B" / "a.png").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    assert files["A/a.jpg"] == [{"key": "B/a.png", "size": len(data), "sha256": digest}]


def test_second_images_are_prepared_as_images_are(convert, paired):
    upright = Image.open(io.BytesIO(encode_picture("turned", (24, 16), "PNG")))
    exif = Image.Exif()
    exif[0x0112] = 6
    upright.save(paired / "B" / "a.png", exif=exif)
    resized = SETTINGS | {"images.resize": {"exact": [8, 8]}}
    done = convert(paired, settings=resized)
    assert done.code == 0, done.stderr
    alone = convert(
        paired / "B",
        settings={**resized, "source": {"kind": "class_folders", "class_from": "none"}},
        output=paired.parent / "alone",
    )
    stored = {
        name: features["image/encoded"].bytes_list.value[0]
        for name, features in read_features(alone).items()
    }
    found = {name: second(features) for name, features in read_features(done).items()}
    assert found["a.jpg"] == stored["a.png"]
    assert found["b.jpg"] == stored["b.png"]
    assert pixels(found["a.jpg"]).shape == (8, 8, 3)


def test_remarks_say_what_second_images_lose(convert, paired):
    for name in "ab":
        values = np.arange(24 * 16, dtype=np.uint16).reshape(16, 24) * 100
        Image.fromarray(values).save(paired / "B" / f"{name}.png")
    done = convert(paired, settings=SETTINGS | {"images.store": "jpeg"})
    assert "2 second images were reduced to 8 bits: set images.depth=16" in done.stderr
    assert "3 second images with a lossless extension, such as .png, became JPEG" in done.stderr
    kept = convert(paired, settings=SETTINGS | {"images.depth": 16}, output=paired.parent / "kept")
    assert np.array_equal(pixels(second(read_features(kept)["a.jpg"])), values)
    assert "reduced" not in kept.stderr


def test_missing_and_bad_second_images_reject_their_images(convert, paired):
    (paired / "B" / "a.png").unlink()
    (paired / "B" / "b.png").write_bytes(encode_picture("b", kind="PNG")[:200])
    done = convert(paired, settings=SETTINGS)
    assert done.code == 0, done.stderr
    assert read_features(done).keys() == {"c.jpg"}
    found = rejected(done)
    assert found["A/a.jpg"] == (
        "no_second_image",
        "B/a.png: named by source.pairs.target: no such file or directory",
    )
    assert found["A/b.jpg"][0] == "bad_second_image"
    assert found["A/b.jpg"][1].startswith("B/b.png: truncated: ")
    entry = marker(done)["annotations"]["pairs"]
    assert (entry["listed"], entry["written"]) == (3, 1)
    assert entry["dropped"] == {"bad_second_image": 1, "no_second_image": 1}
    assert verify_dataset(str(done.output), level="pixels").findings == ()


def test_verify_decodes_second_images(convert, paired):
    done = convert(paired, settings=SETTINGS)
    expected = expect(open_dataset(done.output))
    example = Example()
    encoded = {"image/encoded": encode_picture("a"), "image/target/encoded": encode_picture("b")}
    for key, data in encoded.items():
        example.features.feature[key].bytes_list.value.append(data)
    assert check_pixels(ParsedExample(example.SerializeToString()), expected) is None
    example.features.feature["image/target/encoded"].bytes_list.value[0] = encoded["image/encoded"][
        :300
    ]
    kind, text = check_pixels(ParsedExample(example.SerializeToString()), expected)
    assert kind == "pixels"
    assert text.startswith("the second image in image/target/encoded cannot be decoded: truncated")


def test_a_second_image_without_an_image_is_counted(convert, paired):
    (paired / "A" / "a.jpg").unlink()
    (paired / "readme.txt").write_text("two sides", encoding="utf-8")
    (paired / "A" / "other.gif").write_bytes(encode_picture("other", kind="GIF"))
    done = convert(paired, settings=SETTINGS)
    assert done.code == 0, done.stderr
    ledger = marker(done)["ledger"]
    assert ledger["ignored"]["second_image"] == 1
    assert ledger["rejected"] == {"name_mismatch": 1}
    assert (ledger["listed"], ledger["written"]) == (5, 2)


def test_an_update_after_an_edit_equals_a_rebuild(convert, paired):
    assert convert(paired, settings=SETTINGS).code == 0
    (paired / "B" / "b.png").write_bytes(encode_picture("new", kind="PNG"))
    (paired / "B" / "c.png").unlink()
    again = convert(paired, "--update", settings=SETTINGS)
    assert again.code == 0, again.stderr
    rebuilt = convert(paired, settings=SETTINGS, output=paired.parent / "rebuilt")
    shards = [[path.read_bytes() for path in sorted(done.shards())] for done in (again, rebuilt)]
    assert shards[0] == shards[1]
    assert second(read_features(again)["b.jpg"]) == encode_picture("new", kind="PNG")
    assert rejected(again).keys() == {"A/c.jpg"}


def test_images_in_split_and_class_folders_have_second_ones_next_to_them(convert, tmp_path):
    root = tmp_path / "suffixes"
    for path in ("train/cat/1", "train/dog/2", "val/cat/3"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        for end in ("", "_low", "_depth"):
            (root / f"{path}{end}.jpg").write_bytes(encode_picture((path, end)))
    source = {
        "kind": "class_folders",
        "pairs_of": "{class}/{id}.jpg",
        "pairs": {"low": "{class}/{id}_low.jpg", "depth": "{class}/{id}_depth.jpg"},
    }
    settings = {
        "source": source,
        "splits.from_folders": {"train": "train", "val": "validation"},
        "limit_per_class": 2,
    }
    done = convert(root, settings=settings)
    assert done.code == 0, done.stderr
    found = read_features(done)
    assert found.keys() == {"1.jpg", "2.jpg", "3.jpg"}
    for path in ("train/cat/1", "train/dog/2", "val/cat/3"):
        features = found[f"{path[-1]}.jpg"]
        for name in ("low", "depth"):
            assert second(features, name) == (root / f"{path}_{name}.jpg").read_bytes()
    made = marker(done)
    assert made["splits"]["train"]["classes"] == {"cat": 1, "dog": 1}
    assert made.get("counted") is None
    assert made["annotations"]["pairs"]["written"] == 6


def test_a_manifest_names_second_images_by_columns(convert, paired):
    rows = ["image,other,name,class", *(f"A/{n}.jpg,B/{n}.png,{n},letter" for n in "abc")]
    rows[3] = "A/c.jpg,B/x.png,c,letter"
    (paired / "rows.csv").write_text("\n".join(rows), encoding="utf-8")
    source = {
        "kind": "manifest",
        "columns": {"uri": "image", "label": "class"},
        "pairs": {"target": "other", "again": "B/{name}.png"},
    }
    done = convert(paired, settings=SETTINGS | {"source": source})
    assert done.code == 0, done.stderr
    found = read_features(done)
    assert found.keys() == {"a.jpg", "b.jpg"}
    for name, features in found.items():
        data = (paired / "B" / name.replace(".jpg", ".png")).read_bytes()
        assert second(features, "target") == second(features, "again") == data
    assert rejected(done)["A/c.jpg"][0] == "no_second_image"
    made = marker(done)
    assert made["annotations"]["pairs"]["dropped"] == {"no_second_image": 2}
    assert made["splits"]["train"]["classes"] == {"letter": 2}
    assert made["ledger"]["ignored"] == {}


def test_pairs_in_class_folders_are_not_taken_for_other_pairs(convert, tmp_path):
    root = tmp_path / "classes"
    for number in range(20):
        for label in ("cat", "dog"):
            for folder in ("photo", "sketch"):
                path = root / label / folder / f"{number * 7919 % 1000:04}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(encode_picture((label, folder, number)))
    source = {
        "kind": "class_folders",
        "pairs_of": "{class}/photo/{name}.jpg",
        "pairs": {"sketch": "{class}/sketch/{name}.jpg"},
    }
    done = convert(root, settings={"source": source})
    assert done.code == 0, done.stderr
    assert "second images" not in done.stderr
    assert marker(done)["annotations"]["pairs"]["written"] == 40


@pytest.mark.parametrize(
    ("first", "second_one", "name"),
    [
        ("low/{}.jpg", "high/{}.png", "high"),
        ("DIV_HR/{}.png", "DIV_LR/X2/{}x2.png", "DIV_LR_X2"),
        ("train/hazy/{}.jpg", "train/clear/{}.jpg", "clear"),
        ("a b/{}.jpg", "a b/depth/{}.png", "depth"),
        ("{}_hazy.png", "{}_clear.png", "clear"),
        ("val/{}.jpg", "val/{}_depth.png", "depth"),
        ("img{}_noisy.jpg", "img{}_clean.jpg", "clean"),
    ],
)
def test_the_flags_that_the_error_offers_store_both(convert, tmp_path, first, second_one, name):
    root = tmp_path / "in"
    for number in range(24):
        stem = f"{number * 7919 % 100_000:05}"
        for form in (first, second_one):
            path = root / form.format(stem)
            path.parent.mkdir(parents=True, exist_ok=True)
            kind = "PNG" if form.endswith(".png") else "JPEG"
            path.write_bytes(encode_picture((form, number), kind=kind))
    refused = convert(root, settings={})
    assert refused.code == 2
    said = re.split(r"to store both in one record, add |each in one record\): ", refused.stderr)
    assert len(said) == 2, refused.stderr
    flags = said[1].split(";")[0]
    done = convert(root, *shlex.split(flags), settings={})
    assert done.code == 0, done.stderr
    made = marker(done)
    assert made["ledger"] | {"written": 24, "listed": 24, "ignored": {}} == made["ledger"]
    assert made["annotations"]["pairs"]["written"] == 24
    assert f"image/{name}/encoded" in made["features"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"pairs": {"b": "B/{name}.jpg"}}, "source.pairs needs the paths of the images"),
        ({"pairs_of": "A/{name}.jpg"}, "source.pairs_of has no effect, since source.pairs is not"),
        (
            {"pairs_of": "A/{name}.jpg", "pairs": {"b": "B/{id}.jpg"}},
            "source.pairs.b is 'B/{id}.jpg': it can use only {name} in braces",
        ),
        (
            {"pairs_of": "A/x.jpg", "pairs": {"b": "B/x.jpg"}},
            "source.pairs_of is 'A/x.jpg': it has each name in braces once",
        ),
        (
            {"pairs_of": "A/{name}.jpg", "pairs": {"a/b": "B/{name}.jpg"}},
            "source.pairs has the name 'a/b': use letters, digits, - and _",
        ),
        (
            {"pairs_of": "A/{name}.jpg", "pairs": {"b": "A/{name}.jpg"}},
            "source.pairs.b is the same as source.pairs_of",
        ),
    ],
)
def test_impossible_patterns_are_refused_in_a_sentence(convert, paired, source, said):
    done = convert(paired, settings={"source": {"kind": "class_folders", **source}})
    assert done.code == 2
    assert said in done.stderr


def test_pairs_need_encoded_images(convert, paired):
    own = {"features": {"name": {"field": "filename", "type": "bytes"}}}
    for given in ({"images.store": "raw"}, {"decode": "none", "convention": own}):
        done = convert(paired, settings={"source": SETTINGS["source"]} | given)
        assert done.code == 2
        assert "source.pairs needs" in done.stderr
