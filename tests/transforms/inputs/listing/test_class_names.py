import os
import unicodedata

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.listing.class_names import (
    MAX_TEXT_BYTES,
    ClassNamesError,
    number_classes,
    read_class_names,
    state_classes,
)
from recordmill.transforms.inputs.listing.named_files import DataFile


@pytest.fixture
def batch(tmp_path):
    folder = tmp_path / "input" / "batches"
    folder.mkdir(parents=True)
    return folder / "data.bin"


def read(batch, name="names.txt"):
    return read_class_names(DataFile("batches/data.bin", ImageRef("", str(batch))), name)


def test_a_line_is_a_class(batch):
    (batch.parent / "names.txt").write_bytes("cat\r\n dög \n\nbird\n\n".encode())
    assert read(batch) == {"cat": 0, "dög": 1, "bird": 2}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no names.txt next to it to name the classes"),
        (b"\n \n", "names.txt names no classes: it is empty"),
        (b"cat\ndog\ncat\n", "names.txt names no classes: two classes are named 'cat'"),
        (b"\xff\xfe", "names.txt names no classes: it is not UTF-8, from byte 0 on"),
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
    assert read_class_names(DataFile("é/data.bin", ImageRef("", str(folder / "data.bin"))), "names.txt") == {"cat": 0}


def test_a_file_that_is_too_long_is_not_cut(batch):
    (batch.parent / "names.txt").write_bytes(b"a" * (MAX_TEXT_BYTES + 1))
    with pytest.raises(ClassNamesError, match=r"^names.txt names no classes: it has more than 16,777,216 bytes$"):
        read(batch)


def test_a_pipe_or_a_folder_is_reported_without_its_path(batch):
    os.mkfifo(batch.parent / "names.txt")
    with pytest.raises(ClassNamesError, match=r"^names.txt names no classes: it is a pipe, not a file$"):
        read(batch)
    os.remove(batch.parent / "names.txt")
    os.mkdir(batch.parent / "names.txt")
    with pytest.raises(ClassNamesError, match=r"^names.txt names no classes: is a directory$"):
        read(batch)


def test_nothing_outside_the_input_is_read(batch, tmp_path):
    (tmp_path / "names.txt").write_text("secret")
    (batch.parent / "link.txt").symlink_to(tmp_path / "names.txt")
    for name in ("../../names.txt", "link.txt", str(tmp_path / "names.txt"), "http://example.org/names.txt"):
        with pytest.raises(ClassNamesError, match=r"names no classes: .* lead|names no classes: .* is not below"):
            read(batch, name)


def test_names_and_a_number_of_classes():
    assert number_classes(["b", "a"]) == {"b": 0, "a": 1}
    assert list(number_classes(11).items())[9:] == [("9", 9), ("10", 10)]
    assert state_classes(()) == {}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "a"], "source.class_names: two classes are named 'a'"),
        (-1, "source.class_names is -1: give names"),
        (10**12, "source.class_names: 1,000,000,000,000 are more than the 1,000,000 that are supported here"),
    ],
)
def test_names_that_cannot_be_raise_and_name_the_key(names, message):
    with pytest.raises(ValueError, match=message):
        state_classes(names)
