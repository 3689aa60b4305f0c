"""`labels.rename`: classes get new names before they get ids, or are dropped."""

import json
import re

import pytest

from recordmill.pipeline.diff import main as diff
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.features import Example
from tests.pipeline.conftest import encode_picture, split_records

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ALL = {"splits.fractions": {"all": 1.0}, "report": False}
RENAME = {"tabby": "cat", "rex": "dog", "blank": None}


@pytest.fixture
def pets(tmp_path):
    """Folders of three images each, with base names of their own."""
    for folder in ("blank", "cat", "rex", "tabby"):
        (tmp_path / "pets" / folder).mkdir(parents=True)
        for number in range(3):
            path = tmp_path / "pets" / folder / f"{folder}{number}.jpg"
            path.write_bytes(encode_picture((folder, number)))
    return tmp_path / "pets"


def read_values(done):
    """The values of all records by feature, as lists."""
    found = []
    for shard in done.shards():
        for _, record in split_records(shard.read_bytes()):
            features = Example.FromString(record).features.feature.items()
            found.append(
                {key: list(getattr(each, each.WhichOneof("kind")).value) for key, each in features}
            )
    return found


def test_images_get_the_new_names_of_their_classes_and_ids_of_these(convert, pets):
    done = convert(pets, settings={**ALL, "labels.rename": RENAME})
    assert done.code == 0, done.stderr
    found = {}
    for values in read_values(done):
        (key,) = values["image/filename"]
        found[key.decode()] = (*values["image/class/text"], *values["image/class/label"])
    assert found == {
        f"{folder}{number}.jpg": (name, label_id)
        for folder, name, label_id in (("cat", b"cat", 0), ("rex", b"dog", 1), ("tabby", b"cat", 0))
        for number in range(3)
    }
    assert done.marker["labels"] == {"cat": 0, "dog": 1}
    assert done.marker["splits"]["all"]["classes"] == {"cat": 6, "dog": 3}
    assert done.marker["ledger"]["left_out"] == {"renamed_away": 3}
    assert done.marker["notes"] == []
    assert done.marker["plan"]["recipe"]["labels"] == {"rename": RENAME}
    rows = sorted((row["key"], row["class"], row.get("left_out")) for row in done.rows())
    assert rows == [
        *((f"blank/blank{number}.jpg", "blank", "renamed_away") for number in range(3)),
        *((f"cat/cat{number}.jpg", "cat", None) for number in range(3)),
        *((f"rex/rex{number}.jpg", "dog", None) for number in range(3)),
        *((f"tabby/tabby{number}.jpg", "cat", None) for number in range(3)),
    ]
    assert verify_dataset(done.output).findings == ()


def test_report_and_card_have_the_table_of_names(convert, pets):
    settings = {"splits.fractions": {"all": 1.0}, "labels.rename": {**RENAME, "rex": "d|<o>g"}}
    done = convert(pets, settings=settings)
    assert done.code == 0, done.stderr
    card = (done.output / "README.md").read_text(encoding="utf-8")
    assert (
        "`labels.rename` gave these names:\n\n| in the source | here |\n| --- | --- |\n"
        "| blank | *dropped* |\n| rex | d\\|&lt;o&gt;g |\n| tabby | cat |\n\n"
    ) in card
    report = (done.output / "report.html").read_text(encoding="utf-8")
    table = report.partition("renamed by <code>labels.rename</code>")[2].partition("</table>")[0]
    cells = re.findall("<td>(.*?)</td>", table)
    assert cells == [
        *("<bdi>blank</bdi>", "dropped"),
        *("<bdi>rex</bdi>", "<bdi>d|&lt;o&gt;g</bdi>"),
        *("<bdi>tabby</bdi>", "<bdi>cat</bdi>"),
    ]
    assert verify_dataset(done.output, level="pixels").findings == ()


def test_a_dataset_without_new_names_has_no_table(convert, pets):
    done = convert(pets, settings={"splits.fractions": {"all": 1.0}})
    for name in ("README.md", "report.html"):
        assert "labels.rename" not in (done.output / name).read_text(encoding="utf-8")


def test_limits_and_strata_count_the_new_classes(convert, pets):
    settings = {
        "splits": {"fractions": {"train": 0.5, "test": 0.5}, "stratify": True},
        "limit_per_class": 4,
        "labels.rename": {"tabby": "cat", "rex": "cat", "blank": "none"},
    }
    done = convert(pets, settings={**settings, "report": False})
    splits = {name: split["classes"] for name, split in done.marker["splits"].items()}
    assert splits == {"train": {"cat": 2, "none": 2}, "test": {"cat": 2, "none": 1}}


def test_a_name_that_no_class_has_is_noted(convert, pets):
    done = convert(pets, settings={**ALL, "labels.rename": {"tabbi": "cat", "rex": "dog"}})
    note = "labels.rename renames 'tabbi', and no class has this name: correct it"
    assert (done.code, done.marker["notes"]) == (0, [note])


def test_an_update_with_other_names_equals_a_conversion(convert, pets, tmp_path):
    settings = {**ALL, "labels.rename": RENAME}
    convert(pets, settings=ALL)
    for given in (settings, {**settings, "labels.rename": {"blank": "cat"}}, ALL):
        updated = convert(pets, "--update", settings=given)
        fresh = convert(pets, "--overwrite", output=tmp_path / "fresh", settings=given)
        first, second = (
            {path.name: path.read_bytes() for path in each.shards()} for each in (updated, fresh)
        )
        assert first == second
        assert updated.marker["ledger"] == fresh.marker["ledger"]
        assert updated.marker["run"]["images_reused"] > 0


def test_the_source_of_a_renamed_dataset_does_not_differ_from_it(convert, pets, capsys):
    done = convert(pets, settings={**ALL, "labels.rename": RENAME})
    capsys.readouterr()
    assert diff([str(done.output), str(pets)]) == 0


def test_boxes_get_the_new_names_of_their_numbered_classes(convert, tmp_path):
    root = tmp_path / "cars"
    for folder in ("annotations", "train"):
        (root / folder).mkdir(parents=True)
    for name in "ab":
        (root / "train" / f"{name}.jpg").write_bytes(encode_picture(name, (40, 20)))
    names = {3: "bus", 5: "car", 8: "dont care", 9: "van"}
    boxes = [(0, 5), (0, 8), (0, 9), (1, 8)]
    content = {
        "images": [
            {"id": number, "file_name": f"{name}.jpg", "width": 40, "height": 20}
            for number, name in enumerate("ab")
        ],
        "categories": [{"id": number, "name": name} for number, name in names.items()],
        "annotations": [
            {"id": at, "image_id": image, "category_id": number, "bbox": [0, 0, 4 * at, 20]}
            for at, (image, number) in enumerate(boxes, 1)
        ],
    }
    place = root / "annotations" / "instances_train.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    settings = {"labels.rename": {"van": "car", "dont care": None}, "labels.ids": "names"}
    done = convert(root, settings={**settings, "boxes.invalid": "reject", "report": False})
    assert done.code == 0, done.stderr
    assert done.marker["labels"] == {"bus": 1, "car": 2}
    entry = done.marker["annotations"]["boxes"]
    assert (entry["listed"], entry["written"], entry["dropped"]) == (4, 2, {"renamed_away": 2})
    assert entry["dropped_classes"] == {"renamed_away": {"dont care": 2}}
    stored = sorted(
        (values["image/object/class/text"], values["image/object/class/label"])
        for values in read_values(done)
        if "image/object/class/text" in values
    )
    assert stored == [([], []), ([b"car", b"car"], [2, 2])]
    kept = convert(root, "--overwrite", settings={**settings, "labels.ids": "integers"})
    assert kept.marker["labels"] == {"bus": 3, "car": 5}
    assert verify_dataset(kept.output).findings == ()


def test_labels_that_are_renamed_alike_are_stored_once(convert, tmp_path):
    root = tmp_path / "photos"
    root.mkdir()
    for name in "abc":
        (root / f"{name}.jpg").write_bytes(encode_picture(name))
    rows = ["path,tags", "a.jpg,cat|tabby|red", "b.jpg,tabby", "c.jpg,red"]
    (root / "rows.csv").write_text("\n".join(rows), encoding="utf-8")
    features = {
        "encoded": {"field": "encoded", "type": "bytes"},
        "key": {"field": "key", "type": "bytes"},
        "labels": {"field": "labels", "type": "int64", "shape": [None]},
        "texts": {"field": "label_texts", "type": "bytes", "shape": [None]},
    }
    settings = {
        **ALL,
        "source": {"kind": "manifest", "columns": {"uri": "path", "labels": "tags"}},
        "convention": {"features": features},
        "labels.rename": {"tabby": "cat", "red": None},
    }
    done = convert(root, settings=settings)
    assert done.code == 0, done.stderr
    found = {each["key"][0]: (each["texts"], each["labels"]) for each in read_values(done)}
    assert found == {b"a.jpg": ([b"cat"], [0]), b"b.jpg": ([b"cat"], [0]), b"c.jpg": ([], [])}
    entry = done.marker["annotations"]["labels"]
    counts = (entry["listed"], entry["written"], entry["dropped"])
    assert counts == (5, 2, {"renamed_alike": 1, "renamed_away": 2})
    assert entry["dropped_classes"] == {"renamed_alike": {"cat": 1}, "renamed_away": {"red": 2}}
    assert verify_dataset(done.output).findings == ()


def test_a_preview_counts_what_is_dropped(convert, pets):
    done = convert(pets, "--plan", settings={**ALL, "labels.rename": RENAME})
    assert done.line["notes"] == ["3 images whose class labels.rename drops would be left out"]
