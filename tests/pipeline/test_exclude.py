"""`exclude`: what a list names is left out, counted exactly, and leaves no trace."""

import hashlib
import json
import shutil

import pytest
from marker_counts import counts_of
from PIL import Image

from recordmill.pipeline.verify import main as verify
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/fix_rejected.md has a remedy for each reason"
ALL = {"splits.fractions": {"all": 1.0}}


@pytest.fixture
def exclude(convert, tmp_path):
    """`exclude(root, lines, settings)`: a conversion with a list of these lines; with `place`,
    elsewhere."""

    def run(root, lines, settings=None, place="removed.txt", **more):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return convert(
            root, settings={**(settings or ALL), "exclude": str(tmp_path / place)}, **more
        )

    return run


def sha256_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_ships(folder, annotations):
    """A YOLO collection of ships: an image for each of these texts of annotations."""
    root = folder / "ships"
    for name in ("images", "labels"):
        (root / name).mkdir(parents=True)
    for number, text in enumerate(annotations):
        (root / f"images/{number}.jpg").write_bytes(encode_picture(number))
        (root / f"labels/{number}.txt").write_text(text)
    (root / "data.yaml").write_text("names: [ship]\n")
    return root


def assert_sound(dataset):
    assert verify([str(dataset), "--level=frames"]) == verify([str(dataset)]) == 0


def test_keys_and_digests_are_left_out_and_counted(exclude, convert, photos, tmp_path):
    shutil.copy(photos / "dog/01.jpg", photos / "dog/copy.jpg")
    (photos / "dog/bad.jpg").write_bytes(b"no picture")
    digest = sha256_of(photos / "dog/01.jpg")
    done = exclude(
        photos,
        [
            "# removed on request",
            "",
            "key:cat/00.jpg",
            f"sha256:{digest}",
            "key:dog/bad.jpg",
            "key:x",
        ],
    )
    assert (done.code, done.line["notes"]) == (
        0,
        [f"lines of {tmp_path / 'removed.txt'} that match nothing: 1"],
    )
    assert done.marker["ledger"] == {
        "listed": 12, "written": 8, "rejected": {}, "ignored": {}, "left_out": {"excluded": 4}
    }  # fmt: skip
    gone = {"cat/00.jpg", "dog/01.jpg", "dog/copy.jpg", "dog/bad.jpg"}
    assert gone.isdisjoint(row["key"] for row in done.rows())
    left_out = [row for row in done.rows() if row.get("left_out")]
    empty = {
        "key": "",
        "spelling": None,
        "bytes": None,
        "sha256": None,
        "class": None,
        "detail": "",
        "rejected": None,
    }
    assert left_out == 4 * [{**empty, "stage": "encode", "left_out": "excluded"}]
    assert_sound(done.output)
    for path in (path for path in done.output.rglob("*") if path.is_file()):
        content = path.read_bytes()
        assert not [name for name in (*gone, digest) if name.encode() in content], path


def test_the_others_are_stored_as_without_a_list(exclude, convert, photos, tmp_path):
    plain = convert(photos, settings=ALL, output=tmp_path / "plain")
    done = exclude(photos, ["key:cat/03.jpg"])
    kept = [row for row in plain.rows() if row["key"] != "cat/03.jpg"]
    fields = ("key", "sha256", "class", "label", "record")
    assert [[row[key] for key in fields] for row in done.rows() if row["key"]] == [
        [row[key] for key in fields] for row in kept
    ]


def test_the_recipe_has_a_digest_of_the_list_and_not_its_place(exclude, convert, photos, tmp_path):
    lines = ["key:cat/00.jpg", "key:dog/00.jpg"]
    first = exclude(photos, lines)
    again = exclude(photos, ["# other order", *lines[::-1]], place="elsewhere/list.txt")
    assert again.line["status"] == "kept"
    text = "".join(f"{line}\n" for line in lines)
    assert first.marker["plan"]["recipe"]["exclude"] == hashlib.sha256(text.encode()).hexdigest()
    assert "removed.txt" not in json.dumps(first.marker)
    other = exclude(photos, lines[:1])
    assert other.code == 1
    assert other.errors[0].startswith(f"{first.output} holds another dataset (exclude: ")
    nothing = exclude(photos, ["# nothing"], output=tmp_path / "nothing")
    assert (
        nothing.marker["plan"]
        == convert(photos, settings=ALL, output=tmp_path / "plain").marker["plan"]
    )


def test_boxes_of_images_that_are_left_out_are_counted(exclude, tmp_path):
    root = write_ships(tmp_path, ["0 0.5 0.5 0.5 0.5\n" * (number + 1) for number in range(4)])
    settings = {**ALL, "source.kind": "yolo", "convention": "tf_object_detection"}
    done = exclude(
        root, ["key:images/0.jpg", f"sha256:{sha256_of(root / 'images/2.jpg')}"], settings
    )
    assert counts_of(done.marker, "boxes") == {
        "listed": 10,
        "with_left_out_images": 4,
        "written": 6,
    }
    assert done.marker["ledger"]["left_out"] == {"excluded": 2}
    assert_sound(done.output)


def test_digests_of_images_with_bad_boxes_are_left_out(convert, tmp_path):
    root = write_ships(tmp_path, [f"0 0.5 0.5 {0.5 if number else 0} 0.5\n" for number in range(4)])
    settings = {
        **ALL,
        "source.kind": "yolo",
        "convention": "tf_object_detection",
        "boxes.invalid": "reject",
    }
    limits = {"max_rejected.count": 1}
    digest = sha256_of(root / "images/0.jpg")
    before = convert(root, settings={**settings, **limits})
    assert [(row["rejected"], row["sha256"]) for row in before.rows() if "rejected" in row] == [
        ("bad_boxes", digest)
    ]
    (tmp_path / "removed.txt").write_text(f"sha256:{digest}\n")
    done = convert(
        root, "--update", settings={**settings, "exclude": str(tmp_path / "removed.txt")}
    )
    assert done.marker["ledger"] == {
        "listed": 5,
        "written": 3,
        "rejected": {},
        "ignored": {"class_names": 1},
        "left_out": {"excluded": 1},
    }
    assert verify([str(done.output), f"--absent={tmp_path / 'removed.txt'}"]) == 0


def test_labels_of_images_that_are_left_out_are_counted(exclude, tmp_path):
    root = tmp_path / "tagged"
    root.mkdir()
    for name in "abc":
        (root / f"{name}.jpg").write_bytes(encode_picture(name))
    (root / "list.csv").write_text("path,tags\na.jpg,x|y\nb.jpg,x|y|z\nc.jpg,z\n")
    source = {"kind": "manifest", "columns": {"uri": "path", "labels": "tags"}}
    convention = {
        "features": {
            "encoded": {"field": "encoded", "type": "bytes"},
            "labels": {"field": "labels", "type": "int64", "shape": [None]},
        }
    }
    done = exclude(
        root,
        [f"sha256:{sha256_of(root / 'b.jpg')}"],
        {**ALL, "source": source, "convention": convention},
    )
    assert counts_of(done.marker, "labels") == {
        "listed": 6,
        "with_left_out_images": 3,
        "written": 3,
    }
    assert_sound(done.output)


def test_a_copy_of_an_excluded_image_takes_its_place(exclude, photos):
    shutil.copy(photos / "cat/00.jpg", photos / "cat/copy.jpg")
    shutil.copy(photos / "cat/01.jpg", photos / "dog/copy.jpg")
    done = exclude(photos, ["key:cat/00.jpg", "key:cat/01.jpg"], {**ALL, "duplicates": "drop"})
    assert done.marker["ledger"]["left_out"] == {"excluded": 2}
    assert {"cat/copy.jpg", "dog/copy.jpg"} <= set(done.keys())
    assert done.marker["notes"] == []


def test_a_class_that_is_emptied_is_lost(exclude, photos):
    done = exclude(photos, [f"key:dog/{number:02}.jpg" for number in range(4)])
    (staging,) = done.staging
    assert done.answer == (
        3,
        "all images of 1 class were rejected or left out (dog), and max_rejected.lost_classes is 0",
        "accept the loss with --set max_rejected.lost_classes=1",
        PAGE,
        f"{staging}/report.html shows what was converted",
    )
    nothing = exclude(
        photos, [f"key:{each.parent.name}/{each.name}" for each in photos.rglob("*.jpg")]
    )
    (staging,) = nothing.staging
    assert nothing.answer == (
        3,
        "nothing is left: all 10 images were rejected or left out (10 excluded)",
        PAGE,
        f"{staging}/report.html shows what was converted",
    )


def test_a_run_that_was_cut_takes_up_what_was_left_out(exclude, photos):
    settings = {**ALL, "expect.images": {"*": {"at_least": 9}}}
    first = exclude(photos, ["key:cat/00.jpg", "key:cat/01.jpg", "key:x"], settings)
    assert first.code == 4
    second = exclude(photos, ["key:cat/00.jpg", "key:cat/01.jpg", "key:x"])
    assert second.marker["ledger"]["left_out"] == {"excluded": 2}
    assert second.line["notes"][0].startswith("1 of 1 shards had been finished by an earlier run")
    assert second.line["notes"][1].endswith("that match nothing: 1")


def test_a_malformed_list_is_refused(exclude, photos, tmp_path):
    done = exclude(photos, ["key:a", "cat/00.jpg"])
    where = f"exclude: {tmp_path / 'removed.txt'} cannot be used: line 2"
    assert done.answer == (
        2,
        f"{where} is 'cat/00.jpg': write key:KEY, or sha256: and 64 hex digits",
    )


@pytest.mark.parametrize("by", ["key", "sha256"])
def test_excluded_images_link_no_look_alikes(exclude, class_folders, tmp_path, by):
    root = class_folders(tmp_path / "photos", {"cat": 30})
    copies = [root / f"cat/again{number:02}.jpg" for number in range(12)]
    for number, path in enumerate(copies):
        Image.open(root / "cat/00.jpg").save(path, quality=95 - number)
    lines = [
        f"key:cat/{path.name}" if by == "key" else f"sha256:{sha256_of(path)}"
        for path in copies[2:]
    ]
    settings = {
        "splits.fractions": {"train": 0.5, "test": 0.5},
        "images.near_duplicates": "together",
    }
    assert (
        "would put 13 of 42 images into one split"
        in exclude(root, ["key:none"], settings).errors[0]
    )
    done = exclude(root, lines, settings)
    assert done.code == 0
    assert done.marker["ledger"]["left_out"] == {"excluded": 10}
    assert done.marker["duplicates"]["look_alike"]["across_splits"] == 0
