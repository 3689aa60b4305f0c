import os
from functools import partial

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.transforms.inputs.patterns import why_ignored
from recordmill.transforms.list_images import Part, walk_folder

NO_JPEG = b"no jpeg"


def walk(folder, ignore=lambda path, is_folder: ""):
    return list(walk_folder(Part(Input(str(folder))), ignore))


def entry_of(folder, path):
    status = (folder / path).stat()
    return ImageRef(path, "", status.st_size, str(status.st_mtime_ns))


def notice(path, *found):
    return ImageRef(path, "").notice(*found)


def write(folder, *names):
    for name in names:
        path = os.path.join(
            os.fsencode(folder), name if isinstance(name, bytes) else os.fsencode(name)
        )
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(NO_JPEG)


ODD = [
    "a[x]/1.jpg",
    "a*/1.jpg",
    "a\nb/1.jpg",
    "a, b/ 1 .jpg",
    "e\u0301/1.jpg",
    "\u00e9/2.jpg",
    "-rf/~",
    "100%.jpg",
    "a\\b.jpg",
]


def test_names_that_globs_and_shells_trip_over_are_found(tmp_path):
    write(tmp_path, *ODD)
    assert walk(tmp_path) == [entry_of(tmp_path, name) for name in sorted(ODD)]


def test_a_name_that_is_not_utf8_is_found(tmp_path):
    write(tmp_path, b"a\xff.jpg")
    assert [entry.key for entry in walk(tmp_path)] == ["a\udcff.jpg"]


def test_links_to_files_and_folders_are_followed(tmp_path):
    write(tmp_path, "elsewhere/1.jpg")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file.jpg").symlink_to(tmp_path / "elsewhere/1.jpg")
    (root / "one").symlink_to(tmp_path / "elsewhere")
    (root / "two").symlink_to(tmp_path / "elsewhere")
    assert walk(root) == [entry_of(root, path) for path in ("file.jpg", "one/1.jpg", "two/1.jpg")]


def test_a_link_back_to_its_own_folders_is_fatal(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/back").symlink_to(tmp_path / "a")
    (tmp_path / "root").symlink_to(tmp_path)
    loop = "the link points back to a folder that contains it: remove it, or add it to ignore"
    assert walk(tmp_path) == [
        notice(path, "fatal", "link_loop", loop) for path in ("a/b/back", "root")
    ]


def test_a_link_to_itself_is_fatal(tmp_path):
    (tmp_path / "self").symlink_to("self")
    detail = "the link points to itself: remove it, or add it to ignore"
    assert walk(tmp_path) == [notice("self", "fatal", "link_loop", detail)]


@pytest.mark.parametrize("target", [".", "loop"])
def test_an_ignored_link_is_not_followed(tmp_path, target):
    (tmp_path / "loop").symlink_to(target)
    ignore = partial(why_ignored, ListingSettings(ignore=("loop",)))
    assert walk(tmp_path, ignore) == [notice("loop", "ignored", "ignored")]


def test_a_dangling_link_is_rejected(tmp_path):
    (tmp_path / "gone.jpg").symlink_to("nowhere")
    assert walk(tmp_path) == [notice("gone.jpg", "rejected", "vanished", "the link is broken")]


def test_a_pipe_is_rejected_and_not_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    detail = "a device, socket or pipe is not an image"
    assert walk(tmp_path) == [notice("pipe.jpg", "rejected", "not_a_file", detail)]


def test_an_empty_folder_is_a_warning(tmp_path):
    (tmp_path / "cat").mkdir()
    assert walk(tmp_path) == [notice("cat", "warning", "empty_folder", "the folder is empty")]


def test_an_empty_input_is_a_warning(tmp_path):
    assert walk(tmp_path) == [notice("", "warning", "empty_folder", "the input is empty")]


def failing_scandir(monkeypatch, folder, error):
    real = os.scandir

    def scandir(path):
        if os.path.basename(path) == folder:
            raise error
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


def test_a_folder_that_cannot_be_read_is_fatal(tmp_path, monkeypatch):
    write(tmp_path, "a/1.jpg", "b/1.jpg")
    failing_scandir(monkeypatch, "a", PermissionError(13, "Permission denied"))
    detail = "the folder cannot be read (permission denied): make it readable, or add it to ignore"
    assert walk(tmp_path) == [
        notice("a", "fatal", "unreadable_folder", detail),
        entry_of(tmp_path, "b/1.jpg"),
    ]


def test_a_folder_that_vanishes_meanwhile_is_fatal(tmp_path, monkeypatch):
    write(tmp_path, "a/1.jpg")
    failing_scandir(monkeypatch, "a", FileNotFoundError(2, "No such file or directory"))
    detail = (
        "the folder cannot be read (no such file or directory): make it readable, or add it to "
        "ignore"
    )
    assert walk(tmp_path) == [notice("a", "fatal", "unreadable_folder", detail)]


def test_an_input_that_is_absent_is_fatal(tmp_path):
    detail = "the input cannot be read (no such file or directory)"
    assert walk(tmp_path / "absent") == [notice("", "fatal", "missing_input", detail)]


def test_an_ignored_folder_is_one_entry_and_not_entered(tmp_path):
    write(tmp_path, "skip/1.jpg", "skip/2.jpg", "keep/skip.jpg")
    asked = []

    def ignore(path, is_folder):
        asked.append((path, is_folder))
        return "ignored" if path == "skip" else ""

    assert walk(tmp_path, ignore) == [
        entry_of(tmp_path, "keep/skip.jpg"),
        notice("skip", "ignored", "ignored"),
    ]
    assert asked == [("keep", True), ("keep/skip.jpg", False), ("skip", True)]


def test_an_ignored_folder_may_be_a_loop(tmp_path):
    (tmp_path / ".git").symlink_to(tmp_path)
    assert walk(tmp_path, lambda path, _: "hidden") == [notice(".git", "ignored", "hidden")]


def test_the_order_is_that_of_the_names(tmp_path):
    write(tmp_path, "b/2", "b/10", "a", "c")
    assert [entry.key for entry in walk(tmp_path)] == ["a", "b/10", "b/2", "c"]
