import gzip
import unicodedata

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.place import Place, find_beside, place_of
from recordmill.transforms.inputs.listing.named_files import DataFile

DATA = bytes(range(100))


@pytest.fixture(params=["plain", "gz"])
def place(request, tmp_path):
    path = tmp_path / ("x.gz" if request.param == "gz" else "x")
    path.write_bytes(gzip.compress(DATA) if request.param == "gz" else DATA)
    return place_of(ImageRef("x", str(path), path.stat().st_size, "1"))


def test_ranges_are_those_of_what_is_in_it(place):
    assert place.read(0, 7) == DATA[:7]
    assert place.read(90, 20, 100) == DATA[90:]
    place.check_size(100, "100 values")


@pytest.mark.parametrize("expected", [99, 101])
def test_another_size_is_found(place, expected):
    with pytest.raises(Rejected) as caught:
        place.check_size(expected, "all values")
    if place.packing and expected == 99:
        assert caught.value.reason == "bad_packing"
        assert caught.value.detail == "it unpacks to more than the 99 bytes declared"
    else:
        found = "fewer" if place.packing else "100"
        assert caught.value.reason == "wrong_length"
        assert caught.value.detail == f"all values are {expected} bytes, and the file has {found}"


def test_an_array_inside_a_file(tmp_path):
    (tmp_path / "x").write_bytes(DATA)
    place = Place(str(tmp_path / "x"), offset=10, size=20)
    assert (place.read(0, 3), place.read(5, 3, 20)) == (DATA[10:13], DATA[15:18])
    place.check_size(20, "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "vanished"), (b"no gzip at all", "bad_packing"), (gzip.compress(DATA, mtime=0)[:40], "")],
)
def test_trouble_with_one_file_says_so(tmp_path, content, reason):
    path = tmp_path / "x.gz"
    if content is not None:
        path.write_bytes(content)
    place = place_of(ImageRef("x", str(path), 9, "1"))
    if reason:
        with pytest.raises(Rejected) as caught:
            place.read(0, 4)
        assert caught.value.reason == reason
    else:  # the beginning is good
        assert place.read(0, 4) == DATA[:4]
        with pytest.raises(Rejected, match="bad_packing: the gzip file is damaged"):
            place.read(0, 100, 100)


def test_a_sibling_file_is_found_plain_or_gzipped(tmp_path):
    folder = tmp_path / "in" / "a"
    folder.mkdir(parents=True)
    file = ImageRef("a/x", str(folder / "x"), 1)
    with pytest.raises(FileNotFoundError, match=r"^labels\.gz$"):
        find_beside(DataFile("a/x", file), "labels.gz")
    (folder / "labels.gz").write_bytes(gzip.compress(b"12"))
    assert find_beside(DataFile("a/x", file), "labels").read(0, 9) == b"12"
    (folder / "labels").write_bytes(b"3")
    assert find_beside(DataFile("a/x", file), "labels.gz").read(0, 9) == b"3"


def test_a_sibling_file_is_found_in_a_folder_as_the_store_spells_it(tmp_path):
    folder = tmp_path / unicodedata.normalize("NFD", "é")
    folder.mkdir()
    (folder / "labels").write_bytes(b"3")
    assert find_beside(DataFile("é/x", ImageRef("é/x", str(folder / "x"), 1)), "labels").read(0, 9) == b"3"


def test_nothing_outside_the_input_is_read(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_bytes(b"1")
    (tmp_path / "in" / "labels").symlink_to(tmp_path / "secret")
    file = ImageRef("x", str(tmp_path / "in" / "x"), 1)
    for name in ("labels", "../secret", str(tmp_path / "secret"), "file:///etc/passwd"):
        with pytest.raises(Rejected, match=r"^outside_root: "):
            find_beside(DataFile("x", file), name)


def test_a_sibling_folder_is_not_a_file(tmp_path):
    (tmp_path / "labels").mkdir()
    with pytest.raises(Rejected, match="not_a_file: labels: it is a folder"):
        find_beside(DataFile("images", ImageRef("images", str(tmp_path / "images"))), "labels")
