import os
import unicodedata

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.named_files import (
    DataFile,
    NoFileError,
    key_of,
    read_sibling,
    resolve_inside,
    size_and_version,
)

PATH = "a/notes.xml"


@pytest.fixture
def file(tmp_path):
    root = tmp_path / "in"
    (root / "a").mkdir(parents=True)
    (root / "a/1.jpg").write_bytes(b"four")
    (root / "out.jpg").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").touch()
    return ImageRef(f"photos/{PATH}", str(root / PATH), 9, "1", split="train", spelling=PATH)


def find_image(file, below, path=PATH):
    (image,) = DataFile(path, file).list_annotated(below, [])
    return image


def test_an_image_has_its_own_place_and_the_files_split(file):
    image = file.uri.replace("notes.xml", "1.jpg")
    expected = ImageRef("photos/a/1.jpg", image, 4, str(os.stat(image).st_mtime_ns), split="train")
    assert find_image(file, "a/1.jpg") == expected
    assert find_image(file, "./a//1.jpg").key == "photos/a/1.jpg"


def test_its_key_is_in_nfc_however_it_is_spelled(file):
    spelled = unicodedata.normalize("NFD", "é.jpg")
    image = file.uri.replace("a/notes.xml", spelled)
    with open(image, "wb"):
        pass
    ref = find_image(file, spelled)
    assert (ref.key, ref.uri, ref.status) == ("photos/é.jpg", image, "")


@pytest.mark.parametrize(
    ("below", "key", "reason", "detail"),
    [
        ("a/2.jpg", "photos/a/2.jpg", "vanished", "no such file or directory"),
        ("a/1.jpg/x", "photos/a/1.jpg/x", "vanished", "not a directory"),
        (
            "out.jpg",
            "photos/out.jpg",
            "outside_root",
            "'out.jpg' is a link that points outside the input",
        ),
        (
            "http://x/1.jpg",
            "photos/http:/x/1.jpg",
            "outside_root",
            "'http://x/1.jpg' points outside the input, or has .. in it",
        ),
    ],
)
def test_one_that_is_not_there_or_elsewhere_is_rejected(file, below, key, reason, detail):
    ref = find_image(file, below)
    assert (ref.key, ref.status, ref.reason, ref.detail) == (
        key,
        "rejected",
        reason,
        f"named by notes.xml: {detail}",
    )


def test_names_on_a_store_need_no_check(file):
    ref = find_image(ImageRef("notes.xml", "gs://b/in/notes.xml"), "1.jpg", "notes.xml")
    assert ref == ImageRef("1.jpg", "gs://b/in/1.jpg", -1)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "in" / "a").mkdir(parents=True)
    (tmp_path / "in" / "a" / "1.jpg").write_bytes(b"four")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "in" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "back").symlink_to(tmp_path / "in" / "a")
    return str(tmp_path / "in")


@pytest.mark.parametrize(
    "path", ["a/1.jpg", "./a//1.jpg", "back/1.jpg", "new.jpg", "a.jpg..", "..a"]
)
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
def test_a_path_that_leads_out_of_the_input_is_refused(root, path):
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
    with pytest.raises(Rejected) as missing:
        size_and_version(f"{root}/none")
    assert (missing.value.reason, missing.value.detail) == ("vanished", "no such file or directory")


def test_only_a_file_is_a_file(root):
    os.mkfifo(f"{root}/a/pipe.jpg")
    for path in (f"{root}/a/pipe.jpg", f"{root}/a", "/dev/zero"):
        with pytest.raises(
            Rejected, match="it is a folder, a device or a pipe, not a file"
        ) as raised:
            size_and_version(path)
        assert raised.value.reason == "not_a_file"


@pytest.mark.parametrize(
    ("key", "path", "other", "expected"),
    [
        ("pets/x/a.json", "x/a.json", "y/1.jpg", "pets/y/1.jpg"),
        ("a.json", "a.json", "./y//1.jpg", "y/1.jpg"),
    ],
)
def test_a_key_keeps_the_name_of_its_input(key, path, other, expected):
    assert key_of(key, path, other) == expected
    assert DataFile(path, ImageRef(key, f"gs://b/in/{path}")).root == "gs://b/in"


def test_a_path_is_spelled_as_the_store_spells_it():
    folder = unicodedata.normalize("NFD", "é")
    assert DataFile("é/1.jpg", ImageRef("", f"/in/{folder}/1.jpg")).spelled == f"{folder}/1.jpg"
    assert (
        DataFile("é.jpg", ImageRef("", f"gs://b/in/train/{folder}.jpg")).spelled == f"{folder}.jpg"
    )
    assert DataFile("b/1.jpg", ImageRef("", "a/b/1.jpg")).spelled == "b/1.jpg"


def test_a_whole_file_is_read(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"0123456789")
    assert read_sibling(str(tmp_path / "a.txt")) == b"0123456789"
    assert read_sibling(str(tmp_path / "a.txt"), 10) == b"0123456789"


def test_a_missing_file_is_distinguished(tmp_path):
    with pytest.raises(NoFileError) as raised:
        read_sibling(str(tmp_path / "a.txt"))
    assert (raised.value.stage, raised.value.reason) == ("list", "bad_annotations")
    assert raised.value.detail == "a.txt: there is no such file"


def test_what_cannot_be_read_or_is_too_long_is_a_rejection(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"0123456789")
    (tmp_path / "folder").mkdir()
    for name, limit, why in (
        ("a.txt", 9, "it is longer than 9 bytes"),
        ("folder", 9, "is a directory"),
    ):
        with pytest.raises(Rejected) as raised:
            read_sibling(str(tmp_path / name), limit)
        assert not isinstance(raised.value, NoFileError)
        assert raised.value.detail.startswith(f"{name}: ")
        assert why in raised.value.detail
