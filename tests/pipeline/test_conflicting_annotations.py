"""Copies of one image that are annotated in several ways are found, counted and named."""

import json

import pytest
from animal_objects import objects_of, write_animals

from recordmill.reading.verify_dataset import verify_dataset

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {
    "source.kind": "coco",
    "convention": "tf_object_detection",
    "masks": "png",
    "splits.from_source": {"train": "train"},
    "shards.count": 3,
}


def edit_points(objects):
    objects[0]["keypoints"][0] = 9


def edit_outlines(objects):
    objects[1]["segmentation"][0][-1] = 15


def edit_boxes(objects):
    objects[0]["bbox"][2] = 5


def remove_an_object(objects):
    del objects[1]


EDITS = {
    edit_points: ["keypoints"],
    edit_outlines: ["masks"],
    edit_boxes: ["boxes"],
    remove_an_object: ["boxes", "keypoints", "masks"],
}
WORDS = {"boxes": "boxes", "keypoints": "key points", "masks": "masks"}
ORDER = ["boxes", "masks", "keypoints"]


@pytest.fixture
def copied(tmp_path):
    """`copied(edit)`: images 2, 3 and 4 have the same bytes; those of 4 are annotated otherwise."""

    def write(edit=None):
        objects = [objects_of(number) for number in range(8)]
        if edit:
            edit(objects[4])
        root = write_animals(tmp_path / "animals", objects)
        for number in (3, 4):
            (root / f"train/{number}.jpg").write_bytes((root / "train/2.jpg").read_bytes())
        return root

    return write


@pytest.mark.parametrize(
    ("edit", "compression"),
    [(edit, ("none", "gzip")[at % 2]) for at, edit in enumerate(EDITS)],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_copies_with_other_annotations_are_conflicts(copied, convert, edit, compression):
    done = convert(copied(edit), settings=SETTINGS | {"compression": compression})
    assert done.code == 0, done.stderr
    same = done.marker["duplicates"]["same_bytes"]
    assert (same["groups"], same["images"], same["conflicting"]) == (1, 2, 0)
    assert same["conflicting_annotations"] == 1
    lines = (done.output / "duplicates.jsonl").read_text(encoding="utf-8").splitlines()
    (line,) = (each for each in map(json.loads, lines) if each["kind"] == "same_bytes")
    assert line["conflicting_annotations"] == EDITS[edit]
    assert "1 image has copies with other annotations." in done.marker["remarks"]
    report = (done.output / "report.html").read_text(encoding="utf-8")
    assert "with other annotations: 1" in report
    assert "different annotations</span>" in report
    assert verify_dataset(done.output, level="pixels").findings == ()


def test_copies_with_the_same_annotations_do_not_conflict(copied, convert):
    done = convert(copied(), settings=SETTINGS)
    assert done.code == 0, done.stderr
    assert "conflicting_annotations" not in done.marker["duplicates"]["same_bytes"]
    assert "conflicting_annotations" not in (done.output / "duplicates.jsonl").read_text()
    assert not [each for each in done.marker["remarks"] if "other annotations" in each]


@pytest.mark.parametrize("edit", EDITS, ids=lambda each: each.__name__)
def test_a_note_names_a_dropped_copy_with_other_annotations(copied, convert, edit):
    done = convert(copied(edit), settings=SETTINGS | {"duplicates": "drop"})
    assert done.code == 0, done.stderr
    kinds = " and ".join(WORDS[each] for each in sorted(EDITS[edit], key=ORDER.index))
    note = f"train/2.jpg: its copy train/4.jpg, which was dropped, has other {kinds}"
    assert note in done.line["notes"]


def test_no_note_names_a_dropped_copy_with_the_same_annotations(copied, convert):
    done = convert(copied(), settings=SETTINGS | {"duplicates": "drop"})
    assert done.marker["ledger"]["left_out"] == {"duplicate": 2}
    assert not [note for note in done.line["notes"] if "its copy" in note]
