"""Class folders and file names become TFRecords: exact contents of everything a dataset holds."""

import hashlib
import json
import struct
import unicodedata

import apache_beam as beam
import pytest
import yaml
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.job import Job
from recordmill.pipeline.run import build
from recordmill.schemas.features import Example
from recordmill.schemas.settings.source import Input
from recordmill.transforms.planning.runs import RunSettings

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

CHANGED_SETTINGS = {
    "source": {"kind": "class_folders"},
    "shards": {"count": 2},
    "splits": {"fractions": {"train": 0.6, "test": 0.4}},
}


@pytest.fixture
def dataset(convert, photos):
    """Ten images in four shards, one rejected file, one ignored."""
    (photos / "cat" / "text.jpg").write_bytes(b"no picture")
    (photos / ".DS_Store").touch()
    done = convert(
        photos, settings={"shards.count": 2, "splits.fractions": {"train": 0.6, "test": 0.4}}
    )
    assert (done.code, done.errors) == (0, [])
    return done


def test_every_image_becomes_exactly_one_example_with_exact_values(dataset, photos, picture):
    expected = []
    for label, label_id, count in (("cat", 0, 6), ("dog", 1, 4)):
        for number in range(count):
            encoded = picture((label, number))
            assert (photos / label / f"{number:02}.jpg").read_bytes() == encoded
            expected.append(
                {
                    "image/encoded": encoded,
                    "image/format": b"jpg",
                    "image/height": 16,
                    "image/width": 24,
                    "image/class/label": label_id,
                    "image/class/text": label.encode(),
                    "image/filename": f"{number:02}.jpg".encode(),
                    "image/key/sha256": hashlib.sha256(encoded).hexdigest().encode(),
                }
            )
    by_digest = lambda example: example["image/key/sha256"]  # noqa: E731
    assert sorted(dataset.examples(), key=by_digest) == sorted(expected, key=by_digest)


def test_a_dataset_is_its_files_and_nothing_else(dataset):
    shards = {
        f"{split}-0000{index}-of-00002.tfrecord" for split in ("train", "test") for index in (0, 1)
    }
    sidecars = {f"sidecars/{name}.jsonl" for name in shards}
    described = {"README.md", "croissant.json", "schema.pbtxt"}
    described |= {"report.html", "report.json", "samples.svg"}
    described |= {
        "records.index",
        "records.versions",
        "dataset_info.json",
        "features.json",
        "image.class.label.labels.txt",
    }
    listed = {"labels.txt", "config.yaml", "rejected.jsonl", "duplicates.jsonl", "recordmill.json"}
    assert dataset.files == shards | sidecars | listed | described


def test_sidecars_point_at_their_records(dataset, records_of):
    for shard in dataset.shards():
        content = shard.read_bytes()
        rows = [
            json.loads(line)
            for line in (dataset.output / f"sidecars/{shard.name}.jsonl").read_text().splitlines()
        ]
        written = [row for row in rows if "rejected" not in row]
        assert [(row["offset"], row["length"]) for row in written] == [
            (offset, len(data)) for offset, data in records_of(content)
        ]
        for row in written:
            record = content[row["offset"] + 12 : row["offset"] + 12 + row["length"]]
            assert row["key"].rpartition("/")[2].encode() in record
            assert row["sha256"].encode() in record
            example = Example.FromString(record)
            image = example.features.feature["image/encoded"].bytes_list.value
            of_image = hashlib.sha256(image[0]).hexdigest()
            image[0] = b""
            assert (
                row["rest"]
                == hashlib.sha256(example.SerializeToString(deterministic=True)).hexdigest()
            )
            assert row["record"] == hashlib.sha256((row["rest"] + of_image).encode()).hexdigest()


def test_the_index_has_the_place_of_every_record(dataset, records_of):
    """It is read as docs/format.md describes it, in the order of the splits' names."""
    index = (dataset.output / dataset.marker["index"]).read_bytes()
    splits = sorted(dataset.marker["splits"].items())
    shards = [shard for _, split in splits for shard in split["shards"]]
    assert struct.unpack_from("<8s2Q", index) == (b"RMINDEX2", 4, 10)
    for number, shard in enumerate(shards):
        assert struct.unpack_from("<Q32s", index, 24 + 40 * number) == (
            shard["records"],
            bytes.fromhex(shard["sha256"]),
        )
    assert len(index) == 24 + 40 * 4 + 24 * 10
    entries = list(struct.iter_unpack("<3Q", index[24 + 40 * 4 :]))
    expected = []
    for shard in shards:
        rows = [
            json.loads(line)
            for line in (dataset.output / shard["sidecar"]).read_text().splitlines()
        ]
        keys = [row["key"] for row in rows if "rejected" not in row]
        places = [
            (at, len(data))
            for at, data in records_of((dataset.output / shard["name"]).read_bytes())
        ]
        for (offset, length), key in zip(places, keys, strict=True):
            digest = hashlib.sha256(b"0\0key\0" + key.encode()).digest()
            expected.append((offset, length, int.from_bytes(digest[16:24], "big")))
    assert entries == expected
    for name, split in splits:
        own, entries = entries[: split["records"]], entries[split["records"] :]
        assert [each[2] for each in own] == sorted(each[2] for each in own), name


def test_the_fingerprint_is_the_sum_over_all_records_in_any_shards(
    dataset, convert, photos, tmp_path
):
    def add_up(rows_by_split, label=None):
        digests = [
            hashlib.sha256(f"{split}\0{row['record']}\0{row['key']}".encode()).digest()
            for split, rows in rows_by_split.items()
            for row in rows
            if "rejected" not in row and label in (None, row["class"])
        ]
        return f"{sum(int.from_bytes(each, 'big') for each in digests) % 2**256:064x}"

    rows = {split: dataset.rows(split) for split in ("train", "test")}
    assert dataset.marker["fingerprint"] == {
        "dataset": add_up(rows),
        "splits": {split: add_up({split: own}) for split, own in rows.items()},
        "classes": {label: add_up(rows, label) for label in ("cat", "dog")},
    }
    settings = {"shards.count": 1, "splits.fractions": {"train": 0.6, "test": 0.4}}
    resharded = convert(photos, settings=settings, output=tmp_path / "resharded")
    assert len(resharded.shards()) == 2 < len(dataset.shards())
    assert resharded.marker["fingerprint"] == dataset.marker["fingerprint"]
    other = convert(photos, settings=settings | {"labels.offset": 1}, output=tmp_path / "other")
    assert other.marker["fingerprint"]["dataset"] != dataset.marker["fingerprint"]["dataset"]


def test_a_sidecar_row_says_all_of_an_image(dataset, photos):
    (row,) = [row for row in dataset.rows() if row["key"] == "dog/03.jpg"]
    encoded = (photos / "dog/03.jpg").read_bytes()
    del row["offset"], row["length"], row["moments"], row["record"], row["rest"]
    assert row == {
        "key": "dog/03.jpg",
        "bytes": len(encoded),
        "sha256": hashlib.sha256(encoded).hexdigest(),
        "class": "dog",
        "label": 1,
        "height": 16,
        "width": 24,
        "channels": 3,
        "changes": [],
    }


def test_the_ledger_is_exact(dataset):
    ledger = {
        "listed": 12,
        "written": 10,
        "rejected": {"unknown_format": 1},
        "ignored": {"system_file": 1},
        "left_out": {},
    }
    assert dataset.marker["ledger"] == dataset.line["ledger"] == ledger


def test_the_marker_says_what_the_files_are(dataset, photos):
    marker = dataset.marker
    for split, described in marker["splits"].items():
        assert [shard["name"] for shard in described["shards"]] == [
            path.name for path in dataset.shards(split)
        ]
        assert described["records"] == len(dataset.examples(split))
        assert described["bytes"] == sum(path.stat().st_size for path in dataset.shards(split))
        texts = [example["image/class/text"].decode() for example in dataset.examples(split)]
        assert described["classes"] == {label: texts.count(label) for label in sorted(set(texts))}
        for shard in described["shards"]:
            content = (dataset.output / shard["name"]).read_bytes()
            sidecar = (dataset.output / shard["sidecar"]).read_bytes()
            assert (shard["bytes"], shard["sha256"]) == (
                len(content),
                hashlib.sha256(content).hexdigest(),
            )
            assert shard["sidecar_sha256"] == hashlib.sha256(sidecar).hexdigest()
            assert shard["records"] == sum(b'"rejected"' not in row for row in sidecar.splitlines())
    assert list(marker["splits"]) == ["train", "test"]
    assert marker["labels"] == {"cat": 0, "dog": 1}
    assert marker["input_bytes"] == sum(path.stat().st_size for path in photos.rglob("[0-9]*.jpg"))
    assert marker["output_bytes"] == sum(path.stat().st_size for path in dataset.shards())
    assert (marker["convention"], marker["changes"], marker["notes"]) == ("default", {}, [])
    assert sorted(marker["features"]) == sorted(dataset.examples()[0])
    assert marker["run"]["inputs"] == {"": str(photos)}
    assert marker["run"]["runner"] == "DirectRunner"


def test_labels_txt(dataset):
    assert (dataset.output / "labels.txt").read_text() == "0:cat\n1:dog\n"


def test_rejected_jsonl(dataset, photos):
    assert dataset.rejected == [
        {
            "uri": str(photos / "cat/text.jpg"),
            "stage": "decode",
            "reason": "unknown_format",
            "detail": "unknown format: the file begins with 6e 6f 20 70 69 63 74 75 ('no picture')",
            "bytes": 10,
            "sha256": hashlib.sha256(b"no picture").hexdigest(),
            "class": "cat",
            "key": "cat/text.jpg",
        }
    ]


def test_the_stored_configuration_makes_the_same_dataset(dataset, convert, photos, tmp_path):
    stored = dataset.output / "config.yaml"
    assert yaml.safe_load(stored.read_text())["splits"]["fractions"] == {"train": 0.6, "test": 0.4}
    again = convert(photos, f"--config={stored}", output=tmp_path / "again")
    assert again.marker["plan"] == dataset.marker["plan"]
    assert again.deterministic_files == dataset.deterministic_files
    assert (again.output / "config.yaml").read_bytes() == stored.read_bytes()


def test_the_marker_has_all_settings_and_the_recipe_those_that_were_changed(dataset):
    settings = yaml.safe_load((dataset.output / "config.yaml").read_text())
    plan = dataset.marker["plan"]
    assert plan["settings"] == settings
    changed = plan["recipe"].keys() & settings.keys()
    assert {key: plan["recipe"][key] for key in changed} == CHANGED_SETTINGS


@pytest.mark.parametrize(
    ("class_from", "labels"),
    [
        ("first_folder", {"deep/a/1.jpg": "deep", "deep/b/c/2.jpg": "deep", "flat/3.jpg": "flat"}),
        ("last_folder", {"deep/a/1.jpg": "a", "deep/b/c/2.jpg": "c", "flat/3.jpg": "flat"}),
        ("path", {"deep/a/1.jpg": "deep/a", "deep/b/c/2.jpg": "deep/b/c", "flat/3.jpg": "flat"}),
    ],
)
def test_class_from(convert, picture, tmp_path, class_from, labels):
    for key in labels:
        (tmp_path / "photos" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / key).write_bytes(picture(key))
    settings = {"source.class_from": class_from, "splits.fractions": {"train": 1.0}}
    done = convert(tmp_path / "photos", settings=settings)
    assert {row["key"]: row["class"] for row in done.rows()} == labels
    assert done.marker["labels"] == {
        name: index for index, name in enumerate(sorted(set(labels.values())))
    }


def test_a_flat_folder_of_images_without_labels(convert, picture, tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(4):
        (tmp_path / "photos" / f"{number}.jpg").write_bytes(picture(number))
    both = {"splits.fractions": {"train": 0.5, "test": 0.5}}
    errors = convert(tmp_path / "photos", settings={**both, "source.kind": "class_folders"}).errors
    assert errors[0] == "nothing is left: all 4 images were rejected (4 no_class)"
    assert (
        "images are expected in folders named after their class (--set source.class_from=none "
        "takes images without labels)" in errors
    )
    (tmp_path / "photos/deep").mkdir()
    (tmp_path / "photos/3.jpg").rename(tmp_path / "photos/deep/3.jpg")
    done = convert(tmp_path / "photos", settings={**both, "source.class_from": "none"})
    assert (done.code, done.rejected, done.marker["labels"]) == (0, [], {})
    assert done.keys() == ["0.jpg", "1.jpg", "2.jpg", "deep/3.jpg"]
    assert {
        frozenset(each) & {"image/class/label", "image/class/text"} for each in done.examples()
    } == {frozenset()}
    assert (done.output / "labels.txt").read_bytes() == b""


def test_an_image_in_no_class_folder_is_rejected(convert, photos, picture):
    (photos / "loose.jpg").write_bytes(picture("loose"))
    done = convert(photos)
    assert [(row["key"], row["stage"], row["reason"]) for row in done.rejected] == [
        ("loose.jpg", "list", "no_class")
    ]
    assert done.marker["ledger"]["written"] == 10


def test_given_splits(convert, class_folders, picture, tmp_path):
    root = tmp_path / "photos"
    class_folders(root / "train", {"cat": 3, "dog": 2})
    class_folders(root / "val", {"dog": 1, "cat": 1})
    (root / "elsewhere").mkdir()
    (root / "elsewhere/1.jpg").write_bytes(picture(1))
    done = convert(root, settings={"splits.from_folders": {"train": "train", "val": "validation"}})
    assert done.keys("train") == [
        "train/cat/00.jpg",
        "train/cat/01.jpg",
        "train/cat/02.jpg",
        "train/dog/00.jpg",
        "train/dog/01.jpg",
    ]
    assert done.keys("validation") == ["val/cat/00.jpg", "val/dog/00.jpg"]
    assert list(done.marker["splits"]) == ["train", "validation"]
    assert done.marker["labels"] == {"cat": 0, "dog": 1}
    assert [(row["key"], row["reason"]) for row in done.rejected] == [
        ("elsewhere/1.jpg", "no_split")
    ]


@pytest.mark.parametrize(
    "words", [("train", "test"), ("Train", "Val"), ("train", "validation", "test")]
)
def test_a_first_level_of_split_words_asks_which_reading_is_meant(
    convert, class_folders, tmp_path, words
):
    root = tmp_path / "photos"
    for word in words:
        class_folders(root / word, {"cat": 2, "dog": 2})
    done = convert(root, settings={"source.kind": "class_folders"})
    folders = sorted(words)
    assert done.code == 1
    assert done.errors == [
        f"{root}: the first folders are {', '.join(folders)}, which could be splits or classes: "
        f"add --set 'splits.from_folders={{{', '.join(f'{word}: {word}' for word in folders)}}}' "
        "if they are splits, or list the classes in labels.classes if they are classes"
    ]
    assert done.shards() == []
    # Each of the two answers that the sentence names is one.
    as_classes = convert(root, settings={"labels.classes": folders}, output=tmp_path / "classes")
    assert (as_classes.code, list(as_classes.marker["labels"])) == (0, folders)
    as_splits = convert(
        root,
        settings={"splits.from_folders": {word: word for word in folders}},
        output=tmp_path / "s",
    )
    assert (as_splits.code, list(as_splits.marker["labels"])) == (0, ["cat", "dog"])


def test_a_folder_with_a_splits_name_among_others_is_a_class(convert, class_folders, tmp_path):
    done = convert(class_folders(tmp_path / "photos", {"test": 3, "cat": 3}))
    assert (done.code, done.marker["labels"]) == (0, {"cat": 0, "test": 1})


def test_several_inputs_give_their_keys_a_name(convert, class_folders, tmp_path):
    old = class_folders(tmp_path / "old", {"cat": 2})
    new = class_folders(tmp_path / "new", {"cat": 1, "dog": 1})
    (new / "dog/text.jpg").write_bytes(b"no picture")
    done = convert(f"a={old}", f"--input=b={new}")
    assert done.keys() == ["a/cat/00.jpg", "a/cat/01.jpg", "b/cat/00.jpg", "b/dog/00.jpg"]
    assert done.marker["labels"] == {"cat": 0, "dog": 1}
    assert [row["uri"] for row in done.rejected] == [str(new / "dog/text.jpg")]


def test_keys_are_nfc_whatever_the_file_system_says(convert, picture, tmp_path):
    decomposed = unicodedata.normalize("NFD", "café")
    (tmp_path / "photos" / decomposed).mkdir(parents=True)
    for number in range(3):
        (tmp_path / "photos" / decomposed / f"é{number}.jpg").write_bytes(picture(number))
    done = convert(tmp_path / "photos", settings={"splits.fractions": {"train": 1.0}})
    assert done.keys() == [f"café/é{number}.jpg" for number in range(3)]
    assert {example["image/class/text"] for example in done.examples()} == {"café".encode()}
    assert (done.output / "labels.txt").read_text(encoding="utf-8") == "0:café\n"


def test_include_and_ignore_choose_what_is_read(convert, photos, picture):
    (photos / "cat/raw").mkdir()
    (photos / "cat/raw/1.jpg").write_bytes(picture(1))
    (photos / "dog/list.txt").write_text("no image")
    done = convert(photos, settings={"include": ["*.jpg"], "ignore": ["raw/"]})
    assert done.marker["ledger"] == {
        "listed": 12,
        "written": 10,
        "rejected": {},
        "ignored": {"ignored": 1, "not_included": 1},
        "left_out": {},
    }


def test_labels_from_file_names(convert, picture, tmp_path):
    (tmp_path / "images/sub").mkdir(parents=True)
    names = {"img_00017_3.jpg": 3, "img_00018_-1.jpg": -1, "sub/x_12.min.jpg": 12, "a_7.jpg": 7}
    for name in names:
        (tmp_path / "images" / name).write_bytes(picture(name))
    (tmp_path / "images/unlabeled.jpg").write_bytes(picture("unlabeled"))
    done = convert(tmp_path / "images", "--config=configs/filename_labels.yaml")
    assert {row["key"]: row["label"] for row in done.rows() if "rejected" not in row} == names
    assert {example["image/class/label"] for example in done.examples()} == {3, -1, 12, 7}
    assert (done.output / "labels.txt").read_text() == "-1:-1\n3:3\n7:7\n12:12\n"
    assert [(row["key"], row["reason"]) for row in done.rejected] == [
        ("unlabeled.jpg", "name_mismatch")
    ]


def test_an_explicit_label_list_with_offset_and_catch_all(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 2, "dog": 2, "emu": 2})
    labels = {
        "labels.classes": ["other", "dog", "bird"],
        "labels.catch_all": "other",
        "labels.offset": 1,
    }
    done = convert(root, settings=labels)
    assert done.marker["labels"] == {"other": 1, "dog": 2, "bird": 3}
    assert (done.output / "labels.txt").read_text() == "1:other\n2:dog\n3:bird\n"
    assert sorted((row["key"], row["label"], row["class"]) for row in done.rows()) == [
        ("cat/00.jpg", 1, "other"),
        ("cat/01.jpg", 1, "other"),
        ("dog/00.jpg", 2, "dog"),
        ("dog/01.jpg", 2, "dog"),
        ("emu/00.jpg", 1, "other"),
        ("emu/01.jpg", 1, "other"),
    ]


def test_labels_that_the_list_lacks_are_rejected_without_a_catch_all(
    convert, class_folders, tmp_path
):
    root = class_folders(tmp_path / "photos", {"cat": 4, "emu": 1})
    done = convert(root, settings={"labels.classes": ["cat"]})
    assert [(row["key"], row["stage"], row["reason"]) for row in done.rejected] == [
        ("emu/00.jpg", "encode", "unknown_label")
    ]
    assert done.marker["labels"] == {"cat": 0}
    assert done.marker["ledger"]["written"] == 4


def test_gzip_files_hold_the_same_records(convert, photos, records_of, tmp_path):
    import gzip

    plain = convert(photos)
    packed = convert(photos, settings={"compression": "gzip"}, output=tmp_path / "packed")
    assert [path.name for path in packed.shards()] == [f"{path.name}.gz" for path in plain.shards()]
    for one, other in zip(plain.shards(), packed.shards(), strict=True):
        assert gzip.decompress(other.read_bytes()) == one.read_bytes()


def test_build_gives_one_outcome(photos, tmp_path):
    settings = load_settings(None, []).settings
    run = RunSettings(run_id="r", output=str(tmp_path / "d"), outcome_file=str(tmp_path / "o.json"))
    outcomes = tmp_path / "outcomes"
    with beam.Pipeline(runner=FnApiRunner()) as root:
        outcome = build(root, Job(settings, (Input(str(photos)),), make_recipe(settings), run))
        lines = outcome | beam.Map(lambda each: f"{each.status} {each.exit_code} {each.message}")
        lines | beam.io.WriteToText(str(outcomes), shard_name_template="")
    assert outcomes.read_text() == f"published 0 10 images are in {tmp_path / 'd'}\n"


def test_several_inputs_are_listed_side_by_side(tmp_path):
    settings = load_settings(None, []).settings
    run = RunSettings(run_id="r", output=str(tmp_path / "d"), outcome_file=str(tmp_path / "o.json"))
    spread = []
    for inputs in ((Input("/a"),), (Input("/a", "a"), Input("/b", "b"))):
        root = beam.Pipeline(runner=FnApiRunner())
        build(root, Job(settings, inputs, make_recipe(settings), run))
        steps = root.to_runner_api().components.transforms.values()
        spread.append(any(step.spec.urn == "beam:transform:reshuffle:v1" for step in steps))
    assert spread == [False, True]


def test_inspect_and_the_card_show_the_fingerprint(dataset, capsys):
    fingerprint = dataset.marker["fingerprint"]["dataset"]
    assert f"Fingerprint `{fingerprint}`" in (dataset.output / "README.md").read_text()
    capsys.readouterr()
    assert inspect([str(dataset.output)]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["fingerprint"] == fingerprint
    assert f"fingerprint {fingerprint}" in shown.err
