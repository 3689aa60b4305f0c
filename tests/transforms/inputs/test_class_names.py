import os
import unicodedata

import pytest

from recordmill.schemas.conventions import load_convention
from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.class_names import (
    ClassNamesError,
    LabelFiles,
    number_classes,
    parse_class_names,
    read_class_names,
)
from recordmill.transforms.inputs.named_files import MAX_BYTES, DataFile


@pytest.fixture
def batch(tmp_path):
    folder = tmp_path / "input" / "batches"
    folder.mkdir(parents=True)
    return folder / "data.bin"


def read(batch, name="names.txt"):
    file = DataFile("batches/data.bin", ImageRef("", str(batch)))
    return read_class_names(file, file.folder, name)


def test_a_line_is_a_class(batch):
    (batch.parent / "names.txt").write_bytes("\ufeffcat\r\n dög \nbird\n\n".encode())
    assert read(batch) == {0: "cat", 1: "dög", 2: "bird"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"^there is no names.txt to name the classes \(source.class_names_file\)$"),
        (b"\n \n", "names.txt names no classes: it has no names"),
        (b"cat\ndog\ncat\n", "names.txt names no classes: two classes are named 'cat'"),
        (b"\xff\xfe", "names.txt names no classes: it is not UTF-8, from byte 0 on"),
        (
            b"cat\n\ndog\n",
            "line 2 is blank, and a name follows: remove the line, or name the class",
        ),
    ],
)
def test_a_file_that_names_none_is_one_sentence(batch, content, message):
    if content is not None:
        (batch.parent / "names.txt").write_bytes(content)
    with pytest.raises(ClassNamesError, match=message):
        read(batch)


def test_the_folder_is_named_as_the_store_spells_it(tmp_path):
    folder = tmp_path / unicodedata.normalize("NFD", "é")
    folder.mkdir()
    (folder / "names.txt").write_text("cat\n", encoding="utf-8")
    file = DataFile("é/data.bin", ImageRef("", str(folder / "data.bin")))
    assert read_class_names(file, file.folder, "names.txt") == {0: "cat"}


def test_a_file_that_is_too_long_is_not_cut(batch):
    (batch.parent / "names.txt").write_bytes(b"a" * (MAX_BYTES + 1))
    with pytest.raises(
        ClassNamesError,
        match=r"^names.txt names no classes: names.txt: it is longer than 16,777,216 bytes$",
    ):
        read(batch)


def test_a_pipe_or_a_folder_is_reported_without_its_path(batch):
    os.mkfifo(batch.parent / "names.txt")
    with pytest.raises(ClassNamesError, match=r"^names.txt names no classes: names.txt: "):
        read(batch)
    os.remove(batch.parent / "names.txt")
    os.mkdir(batch.parent / "names.txt")
    with pytest.raises(ClassNamesError, match=r"^names.txt names no classes: names.txt: "):
        read(batch)


def test_nothing_outside_the_input_is_read(batch, tmp_path):
    (tmp_path / "names.txt").write_text("secret")
    (batch.parent / "link.txt").symlink_to(tmp_path / "names.txt")
    for name in ("../../names.txt", "link.txt"):
        with pytest.raises(
            ClassNamesError, match=r"names no classes: .* points|names no classes: .* is not below"
        ):
            read(batch, name)


def test_names_and_a_number_of_classes():
    assert number_classes(["b", "a"]) == {"b": 0, "a": 1}
    assert list(number_classes(11).items())[9:] == [("9", 9), ("10", 10)]
    assert number_classes(()) == {}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "a"], "source.class_names: two classes are named 'a'"),
        (
            -1,
            "source.class_names: there cannot be -1 classes: give names, or a number up to "
            "1,000,000",
        ),
        (
            10**12,
            "source.class_names: there cannot be 1,000,000,000,000 classes: give names",
        ),
    ],
)
def test_names_that_cannot_be_raise_and_name_the_key(names, message):
    with pytest.raises(ValueError, match=message):
        number_classes(names, "source.class_names")


SLIM = load_convention("slim")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("daisy\nrose, red\n\n", {1: "daisy", 2: "rose, red"}),
        ("0:daisy\r\n5:a:b\r\n", {0: "daisy", 5: "a:b"}),
        ("0:daisy\nrose\n", {1: "0:daisy", 2: "rose"}),
        ("3:4\n16:9\n", {3: "4", 16: "9"}),
    ],
)
def test_each_form(text, names):
    assert parse_class_names(text, 1) == names


INVALID = "it has no names, or a class without a name, or a number twice"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (" \n", INVALID),
        ("a\n\nb\n", "line 2 is blank"),
        ("0:a\n1:\n", INVALID),
        ("0:a\n0:b\n", INVALID),
        ("a\nb\na\n", "two classes are named 'a'"),
    ],
)
def test_files_without_class_names_are_refused(text, why):
    with pytest.raises(ValueError, match=f"^{why}"):
        parse_class_names(text, 0)


def files_of(folder, path="a/b/x.tfrecord", **more):
    return LabelFiles(DataFile(path, ImageRef(path, str(folder / "in" / path))), **more)


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_files_are_found_next_to_it_and_above_but_not_outside_the_input(tmp_path):
    (tmp_path / "in/a/b").mkdir(parents=True)
    put(tmp_path / "labels.txt", "outside\n")
    assert files_of(tmp_path).names_for(SLIM, 0) == ("", {})
    put(tmp_path / "in/image.class.label.labels.txt", "tfds\n")
    assert files_of(tmp_path).names_for(SLIM, 3) == ("image.class.label.labels.txt", {3: "tfds"})
    put(tmp_path / "in/a/label_map.pbtxt", 'item { id: 7 name: "map" }')
    assert files_of(tmp_path).names_for(SLIM, 3) == ("label_map.pbtxt", {7: "map"})
    put(tmp_path / "in/a/label_map.pbtxt", "item { id: 7 }")
    with pytest.raises(
        ClassNamesError, match=r"^label_map.pbtxt names no classes: item 1 has no id or no name"
    ):
        files_of(tmp_path).names_for(SLIM, 0)
    put(tmp_path / "in/a/b/labels.txt", "beside\n")
    assert files_of(tmp_path).names_for(SLIM, 0) == ("labels.txt", {0: "beside"})


def test_folders_are_named_as_the_store_spells_them(tmp_path):
    folder = tmp_path / "in" / unicodedata.normalize("NFD", "é")
    put(folder / "labels.txt", "above\n")
    file = DataFile("é/b/x.tfrecord", ImageRef("", str(folder / "b/x.tfrecord")))
    assert LabelFiles(file).names_for(SLIM, 0) == (
        "labels.txt",
        {0: "above"},
    )


def test_the_settings_say_which_file_or_none(tmp_path):
    put(tmp_path / "in/a/b/labels.txt", "beside\n")
    put(tmp_path / "in/a/b/names/other.txt", "1:other\n")
    put(tmp_path / "far.txt", "7:far\n")
    assert files_of(tmp_path, name="").names_for(SLIM, 0) == ("source.class_names", {})
    assert files_of(tmp_path, listed=("x", "y")).names_for(SLIM, 1) == (
        "source.class_names",
        {1: "x", 2: "y"},
    )
    assert files_of(tmp_path, name="names/other.txt").names_for(SLIM, 0) == (
        "names/other.txt",
        {1: "other"},
    )
    far = str(tmp_path / "far.txt")
    assert files_of(tmp_path, name=far).names_for(SLIM, 0) == (far, {7: "far"})


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gone.txt", r"^there is no gone\.txt to name the classes \(source\.class_names_file\)$"),
        ("../../../far.txt", r"^\.\./\.\./\.\./far\.txt names no classes: .* points outside "),
        ("link.txt", r"^link\.txt names no classes: .* is a link that points outside "),
        ("auto", r"^labels\.txt names no classes: it has no names"),
    ],
)
def test_a_file_that_cannot_be_used(name, sentence, tmp_path):
    put(tmp_path / "far.txt", "far\n")
    put(tmp_path / "in/a/b/labels.txt", "\n")
    (tmp_path / "in/a/b/link.txt").symlink_to(tmp_path / "far.txt")
    with pytest.raises(ClassNamesError, match=sentence):
        files_of(tmp_path, name=name).names_for(SLIM, 0)
