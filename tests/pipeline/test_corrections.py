"""`corrections`: images get the classes of a list, if they are still what the list was made for."""

import hashlib
import json

import pytest

from recordmill.pipeline.diff import main as diff
from recordmill.pipeline.verify import main as verify
from tests.pipeline.conftest import encode_picture, split_records, values_of

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ALL = {"splits.fractions": {"all": 1.0}, "report": False}


@pytest.fixture
def correct(convert, tmp_path):
    """`correct(root, {key: class})`: a conversion with these corrections; `None` for a digest makes
    it that of the file."""

    def run(root, classes, *flags, digests=None, settings=ALL):
        lines = ["key\tsha256\tclass\n"]
        for key, name in classes.items():
            digest = (digests or {}).get(key) or sha256_of(root / key)
            lines.append(f"{key}\t{digest}\t{name}\n")
        (tmp_path / "corrections.tsv").write_text("".join(lines), encoding="utf-8")
        given = {**settings, "corrections": str(tmp_path / "corrections.tsv")}
        return convert(root, *flags, settings=given)

    return run


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def labels_of(done):
    """Class names and ids in the records, by base name."""
    found = {}
    for shard in done.shards():
        for _, record in split_records(shard.read_bytes()):
            values = values_of(record)
            name = values["image/filename"].decode()
            found[name] = (values["image/class/text"].decode(), values["image/class/label"])
    return found


@pytest.fixture
def pets(tmp_path):
    """Three cats and three dogs with base names of their own."""
    for label in ("cat", "dog"):
        (tmp_path / "pets" / label).mkdir(parents=True)
        for number in range(3):
            path = tmp_path / "pets" / label / f"{label}{number}.jpg"
            path.write_bytes(encode_picture((label, number)))
    return tmp_path / "pets"


def test_images_get_the_class_of_their_line(correct, pets, tmp_path):
    digests = {"dog/dog1.jpg": "0" * 64, "dog/gone.jpg": "1" * 64}
    classes = {"cat/cat0.jpg": "dog", "dog/dog1.jpg": "cat", "dog/gone.jpg": "cat"}
    done = correct(pets, classes, digests=digests)
    assert done.code == 0
    assert labels_of(done) == {
        "cat0.jpg": ("dog", 1),
        "cat1.jpg": ("cat", 0),
        "cat2.jpg": ("cat", 0),
        "dog0.jpg": ("dog", 1),
        "dog1.jpg": ("dog", 1),
        "dog2.jpg": ("dog", 1),
    }
    assert done.marker["ledger"]["corrections"] == {"corrected": 1, "stale": 1, "no_match": 1}
    assert done.line["ledger"] == done.marker["ledger"]
    assert done.marker["splits"]["all"]["classes"] == {"cat": 2, "dog": 4}
    path = tmp_path / "corrections.tsv"
    assert done.line["notes"] == [
        f"lines of {path} for files that have changed, which keep their classes: 1",
        f"lines of {path} that fit no image of the dataset: 1",
    ]
    rows = {row["key"]: row for row in done.rows()}
    listed = {key: row.get("listed_class") for key, row in rows.items()}
    assert listed == {**dict.fromkeys(rows), "cat/cat0.jpg": "cat"}
    assert rows["cat/cat0.jpg"]["class"] == "dog"
    assert verify([str(done.output)]) == 0


def test_the_plan_has_the_digest_of_the_list_and_not_its_path(correct, pets, tmp_path):
    first = correct(pets, {"cat/cat0.jpg": "dog", "cat/cat1.jpg": "dog"})
    plan_id, digest = first.marker["plan"]["id"], first.marker["plan"]["recipe"]["corrections"]
    assert first.marker["plan"]["settings"]["corrections"] == digest
    assert len(digest) == 64
    again = correct(pets, {"cat/cat1.jpg": "dog", "cat/cat0.jpg": "dog"})
    assert (again.code, again.line["status"]) == (0, "kept")
    other = correct(pets, {"cat/cat0.jpg": "dog"}, "--overwrite")
    assert other.marker["plan"]["id"] != plan_id


def test_an_update_changes_the_corrected_records_alone(convert, correct, pets, tree):
    before = convert(pets, settings=ALL)
    old = {row["key"]: row for row in before.rows()}
    done = correct(pets, {"cat/cat0.jpg": "dog"}, "--update")
    assert (done.code, done.marker["run"]["images_reused"]) == (0, 6)
    new = {row["key"]: row for row in done.rows()}
    changed = {key for key in old if old[key]["record"] != new[key]["record"]}
    assert changed == {"cat/cat0.jpg"}
    fresh = convert(
        pets,
        output=before.output.parent / "fresh",
        settings={**ALL, "corrections": str(before.output.parent / "corrections.tsv")},
    )
    shards = [{path.name: path.read_bytes() for path in each.shards()} for each in (done, fresh)]
    assert shards[0] == shards[1]
    back = convert(pets, "--update", settings=ALL)
    assert "corrections" not in back.marker["ledger"]
    assert [row["record"] for row in back.rows()] == [row["record"] for row in before.rows()]


def test_an_update_with_nothing_else_new_counts_corrections_again(correct, pets):
    first = correct(pets, {"cat/cat0.jpg": "dog"})
    (pets / "dog/dog3.jpg").write_bytes(encode_picture(("dog", 3)))
    done = correct(pets, {"cat/cat0.jpg": "dog"}, "--update")
    assert done.marker["run"]["images_reused"] == 6
    assert done.marker["ledger"]["corrections"] == {"corrected": 1, "stale": 0, "no_match": 0}
    assert first.marker["ledger"]["corrections"] == done.marker["ledger"]["corrections"]


def test_a_class_that_nothing_has_is_refused(correct, pets):
    done = correct(pets, {"cat/cat0.jpg": "bird"})
    (sentence,) = done.errors
    assert done.code == 2
    assert sentence == (
        "corrections gives 'cat/cat0.jpg' the class 'bird', which no image that was listed and no "
        "setting has: correct the name, or add the class to labels.classes"
    )


def test_a_malformed_list_is_refused(convert, pets, tmp_path):
    (tmp_path / "bad.tsv").write_text("key\tclass\n")
    done = convert(pets, settings={**ALL, "corrections": str(tmp_path / "bad.tsv")})
    (sentence,) = done.errors
    assert done.code == 2
    assert sentence.startswith(f"corrections: {tmp_path / 'bad.tsv'} cannot be used: line 1 is")


def test_boxes_are_corrected_in_their_annotations(convert, tmp_path):
    root = tmp_path / "ships"
    for name in ("images", "labels"):
        (root / name).mkdir(parents=True)
    (root / "images/0.jpg").write_bytes(encode_picture(0))
    (root / "labels/0.txt").write_text("0 .5 .5 .4 .4\n")
    (root / "data.yaml").write_text("names: [ship]\n")
    (tmp_path / "list.tsv").write_text("key\tsha256\tclass\n")
    done = convert(root, settings={**ALL, "corrections": str(tmp_path / "list.tsv")})
    (sentence,) = done.errors
    assert done.code == 2
    assert "corrections needs one class for each image, and these have annotations" in sentence


def test_a_comparison_with_the_folder_knows_the_corrections(correct, pets, capsys):
    done = correct(pets, {"cat/cat0.jpg": "dog"})
    assert diff([str(done.output), str(pets), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] == 0
