import gzip
import os
from pathlib import Path

import pytest

from schemas.image_ref import ImageRef
from transforms.packed_files import DamagedPackingError, UnpackedFiles, read_packed_range
from transforms.read_images import read_image
from transforms.rejection import RejectedImage

TEXT = bytes(range(256)) * 40


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "data.gz"
    # Members one after the other are one file.
    path.write_bytes(gzip.compress(TEXT[:5000]) + gzip.compress(TEXT[5000:]))
    return str(path)


@pytest.mark.parametrize(("offset", "length"), [(0, 10), (4990, 20), (10_000, 1000), (7, -1), (0, 0)])
def test_a_range_is_one_of_the_unpacked_bytes(packed, offset, length):
    expected = TEXT[offset:] if length < 0 else TEXT[offset : offset + length]
    assert read_packed_range(packed, "gzip", offset, length) == expected


def test_a_file_is_unpacked_once_and_again_when_it_was_written_anew(packed):
    files = UnpackedFiles()
    first = files.path_of(packed, "gzip", "1")
    assert files.path_of(packed, "gzip", "1") == first
    Path(packed).write_bytes(gzip.compress(b"other"))
    second = files.path_of(packed, "gzip", "2")
    assert (Path(first).read_bytes(), Path(second).read_bytes()) == (TEXT, b"other")
    files.clear()
    assert not os.path.exists(os.path.dirname(first))


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-20], lambda data: b"no gzip", lambda data: data[:50] + b"x" * 50]
)
def test_a_damaged_file_leaves_nothing_behind(tmp_path, damage):
    path = tmp_path / "data.gz"
    path.write_bytes(damage(gzip.compress(os.urandom(5000))))
    files = UnpackedFiles()
    with pytest.raises(DamagedPackingError, match="the gzip stream is damaged"):
        files.path_of(str(path), "gzip")
    assert os.listdir(files._folder) == []
    files.clear()


def test_another_packing_is_a_mistake_of_the_source(packed):
    with pytest.raises(ValueError, match="no packing 'rot13'"):
        read_packed_range(packed, "rot13", 0, 1)


def test_an_image_in_a_packed_file_is_read_by_its_reference(packed, tmp_path):
    ref = ImageRef("a", packed, 100, "1", offset=300, length=5, packing="gzip")
    assert read_image(ref, 10) == TEXT[300:305]
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(TEXT)[:-9])
    with pytest.raises(RejectedImage, match="bad_packing: the gzip stream is damaged"):
        read_image(ImageRef("a", str(cut), 100, "1", offset=0, length=5, packing="gzip"), 10)
