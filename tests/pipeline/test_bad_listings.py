"""What a listing may find: one sentence, the right exit code, an earlier dataset as it was."""

import os
import unicodedata

import pytest

from recordmill.transforms.list_images import list_images

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ALL = {"splits.fractions": {"train": 1.0}}


def test_no_images(convert, earlier, tmp_path):
    (tmp_path / "void").mkdir()
    assert convert(tmp_path / "void", "--overwrite").answer == (
        1,
        "no images were found in the input",
    )
    (tmp_path / "void/.DS_Store").touch()
    assert convert(tmp_path / "void", "--overwrite").answer == (
        1,
        "no images were found in the input: everything found (1) is ignored (1 system_file)",
    )


def test_fewer_images_than_splits(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 2})
    assert convert(
        root, settings={"splits.fractions": {"train": 0.8, "validation": 0.1, "test": 0.1}}
    ).answer == (
        1,
        "there are too few images (2) for the splits train, validation, test: train would be "
        "empty: to have one split, add --set 'splits.fractions={train: 1.0}'",
    )


def test_two_images_with_one_key(convert, photos, picture):
    for form in ("NFC", "NFD"):
        (photos / "cat" / unicodedata.normalize(form, "é.jpg")).write_bytes(picture(form))
    done = convert(photos, settings=ALL)
    (sentence,) = done.errors
    assert done.code == 1
    assert sentence.startswith("two images have the key 'cat/é.jpg': ")
    for form in ("NFC", "NFD"):
        assert ascii(str(photos / "cat" / unicodedata.normalize(form, "é.jpg"))) in sentence
    assert "; rename one, or give inputs names; finished shards are in " in sentence
    assert not (done.output / "recordmill.json").exists()


@pytest.mark.parametrize("settings", [{}, {"splits.stratify": True}, {"shards.count": 3}])
def test_two_images_with_one_key_wherever_they_go(convert, photos, picture, settings):
    for form in ("NFC", "NFD"):
        (photos / "cat" / unicodedata.normalize(form, "é.jpg")).write_bytes(picture(form))
    assert (
        convert(photos, settings=settings)
        .errors[0]
        .startswith("two images have the key 'cat/é.jpg'")
    )


def test_a_file_that_vanishes_or_changes_after_listing(convert, photos, monkeypatch):
    sizes = {
        name: (photos / name).stat().st_size for name in ("cat/00.jpg", "cat/01.jpg", "cat/02.jpg")
    }

    def list_then_change(*arguments):
        yield from list(list_images(*arguments))
        (photos / "cat/00.jpg").unlink()
        (photos / "cat/01.jpg").write_bytes((photos / "cat/01.jpg").read_bytes() + b"more")
        (photos / "cat/02.jpg").write_bytes((photos / "cat/02.jpg").read_bytes()[:-1])

    monkeypatch.setattr("recordmill.transforms.list_images.list_images", list_then_change)
    done = convert(photos, settings=ALL)
    assert (done.code, done.marker["ledger"]["rejected"]) == (0, {"changed": 2, "vanished": 1})
    assert sorted(
        (row["key"], row["stage"], row["reason"], row["bytes"], row["detail"])
        for row in done.rejected
    ) == [
        (
            "cat/00.jpg",
            "read",
            "vanished",
            sizes["cat/00.jpg"],
            "the file was listed, and was gone when it was read",
        ),
        *(
            (
                "cat/" + name,
                "read",
                "changed",
                sizes["cat/" + name],
                f"{sizes['cat/' + name]} bytes when it was listed, {more} when it was read",
            )
            for name, more in (("01.jpg", "more"), ("02.jpg", "less"))
        ),
    ]
    assert done.marker["ledger"]["written"] == 7


ODD_NAMES = [
    "a b.jpg",
    "a,b.jpg",
    "[x].jpg",
    "*.jpg",
    "?.jpg",
    "new\nline.jpg",
    "ünï.jpg",
    "-dash.jpg",
    "#.jpg",
    "%41.jpg",
    "'q'.jpg",
    '"q".jpg',
    "back\\slash.jpg",
    "{a}.jpg",
    "~.jpg",
    "x=y.jpg",
    "no_extension",
    "tab\t.jpg",
]


def test_odd_names_are_images_like_others(convert, picture, tmp_path):
    folder = tmp_path / "[odd] *photos,\n{a}" / "c l,a[s]s\n*"
    folder.mkdir(parents=True)
    for name in ODD_NAMES:
        (folder / name).write_bytes(picture(name))
    done = convert(folder.parent, settings=ALL, output=tmp_path / "[out] *put,\n{b}")
    assert (done.code, done.errors) == (0, [])
    assert {
        example["image/filename"].decode(): example["image/encoded"] for example in done.examples()
    } == {unicodedata.normalize("NFC", name): picture(name) for name in ODD_NAMES}
    assert done.marker["labels"] == {"c l,a[s]s\n*": 0}
    assert (done.output / "labels.txt").read_text() == "0:c l,a[s]s\\n*\n"
    assert convert(folder.parent, settings=ALL, output=done.output).line["status"] == "kept"


def test_a_name_that_is_not_utf_8_is_rejected(convert, photos, picture):
    with open(os.fsencode(photos / "cat") + b"/caf\xe9.jpg", "wb") as file:
        file.write(picture(1))
    done = convert(photos, settings=ALL)
    assert (done.code, done.marker["ledger"]["written"]) == (0, 10)
    assert [(row["key"], row["stage"], row["reason"]) for row in done.rejected] == [
        (r"cat/caf\xe9.jpg", "list", "bad_name")
    ]


def test_links_are_followed_once_and_a_loop_is_an_error(convert, photos, tmp_path, class_folders):
    elsewhere = class_folders(tmp_path / "elsewhere", {"emu": 2})
    (photos / "emu").symlink_to(elsewhere / "emu")
    (photos / "cat/linked.jpg").symlink_to(elsewhere / "emu/00.jpg")
    (photos / "cat/nowhere.jpg").symlink_to(tmp_path / "nowhere")
    done = convert(photos, settings=ALL)
    assert done.marker["ledger"]["written"] == 13
    assert done.marker["splits"]["train"]["classes"] == {"cat": 7, "dog": 4, "emu": 2}
    assert [(row["key"], row["reason"]) for row in done.rejected] == [
        ("cat/nowhere.jpg", "vanished")
    ]
    (photos / "cat/up").symlink_to(photos)
    looped = convert(photos, settings=ALL, output=tmp_path / "other")
    advice = "remove it, or add it to ignore"
    assert looped.answer == (
        1,
        f"{photos / 'cat/up'}: the link points back to a folder that contains it: {advice}",
    )
    (photos / "cat/up").unlink()
    (photos / "cat/self.jpg").symlink_to("self.jpg")
    assert convert(photos, settings=ALL, output=tmp_path / "other").answer == (
        1,
        f"{photos / 'cat/self.jpg'}: the link points to itself: {advice}",
    )


def test_a_pipe_is_rejected_and_does_not_block(convert, photos):
    os.mkfifo(photos / "cat/pipe.jpg")
    done = convert(photos, settings=ALL)
    assert [(row["key"], row["reason"]) for row in done.rejected] == [
        ("cat/pipe.jpg", "not_a_file")
    ]


def test_an_empty_class_folder_is_a_warning_and_no_class(convert, photos):
    (photos / "bird").mkdir()
    done = convert(photos, settings=ALL)
    assert (done.code, done.marker["notes"]) == (0, ["bird: the folder is empty"])
    assert "note: bird: the folder is empty" in done.stderr
    assert done.marker["labels"] == {"cat": 0, "dog": 1}


def test_an_earlier_dataset_is_left_alone_by_what_a_worker_finds(convert, earlier, photos):
    (photos / "cat/up").symlink_to(photos)
    assert convert(photos, "--overwrite", settings=ALL).code == 1
