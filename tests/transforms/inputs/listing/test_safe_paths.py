import os
import unicodedata

import pytest

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.listing.safe_paths import (
    NotAFileError,
    key_of,
    reason_of,
    resolve_inside,
    root_of,
    size_and_version,
    spelled_path,
)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "1.jpg").write_bytes(b"four")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "in" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "back").symlink_to(tmp_path / "in" / "a")
    return str(tmp_path / "in")


@pytest.mark.parametrize("path", ["a/1.jpg", "./a//1.jpg", "back/1.jpg", "new.jpg", "a.jpg..", "..a"])
def test_files_below_are_found(root, path):
    assert resolve_inside(root, path) == f"{root}/{os.path.normpath(path)}"
    assert resolve_inside(root + "/", f"{root}/{path}") == f"{root}/{os.path.normpath(path)}"


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "../secret",
        "a/../../secret",
        "a/../a/1.jpg",
        "/etc/passwd",
        "out",
        "a\0b",
        "http://example.com/a",
        "file:///etc/passwd",
        "file:/etc/passwd",
        "gs://bucket/a",
    ],
)
def test_what_leads_elsewhere_is_refused(root, path):
    with pytest.raises(Rejected):
        resolve_inside(root, path)


def test_a_store_is_a_root_too():
    assert resolve_inside("gs://b/in", "a/1.jpg") == "gs://b/in/a/1.jpg"
    assert resolve_inside("gs://b/in", "gs://b/in/a/1.jpg") == "gs://b/in/a/1.jpg"
    for path in ("gs://b/other/1.jpg", "gs://b/input/1.jpg", "../1.jpg", "/etc/passwd"):
        with pytest.raises(Rejected):
            resolve_inside("gs://b/in", path)


def test_sizes_are_known_where_asking_costs_no_request(root):
    status = os.stat(f"{root}/a/1.jpg")
    assert size_and_version(f"{root}/a/1.jpg") == (4, str(status.st_mtime_ns))
    assert size_and_version("gs://b/in/a/1.jpg") == (-1, "")
    with pytest.raises(FileNotFoundError) as missing:
        size_and_version(f"{root}/none")
    assert reason_of(missing.value) == "vanished"


def test_only_a_file_is_a_file(root):
    os.mkfifo(f"{root}/a/pipe.jpg")
    for path in (f"{root}/a/pipe.jpg", f"{root}/a", "/dev/zero"):
        with pytest.raises(NotAFileError, match="it is a folder, a device or a pipe, and no file") as raised:
            size_and_version(path)
        assert reason_of(raised.value) == "not_a_file"


@pytest.mark.parametrize(
    ("key", "path", "other", "expected"),
    [("pets/x/a.json", "x/a.json", "y/1.jpg", "pets/y/1.jpg"), ("a.json", "a.json", "./y//1.jpg", "y/1.jpg")],
)
def test_a_key_keeps_the_name_of_its_input(key, path, other, expected):
    assert key_of(key, path, other) == expected
    assert root_of(f"gs://b/in/{path}", path) == "gs://b/in"


def test_a_path_is_spelt_as_the_store_spells_it():
    folder = unicodedata.normalize("NFD", "é")
    assert spelled_path(f"/in/{folder}/1.jpg", "é/1.jpg") == f"{folder}/1.jpg"
    assert spelled_path(f"gs://b/in/train/{folder}.jpg", "é.jpg") == f"{folder}.jpg"
    assert spelled_path("a/b/1.jpg", "b/1.jpg") == "b/1.jpg"
