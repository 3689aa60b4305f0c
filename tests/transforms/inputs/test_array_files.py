import gzip
import io
import os
import re
import struct
import unicodedata
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.array_files import (
    LONGEST_HEADER,
    ArrayHeader,
    ArrayPlace,
    find_labels,
    find_members,
    parse_header,
    place_of,
)
from recordmill.transforms.inputs.named_files import DataFile


@given(shape=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5))
def test_an_idx_header_gives_shape_and_type(shape):
    data = (
        bytes([0, 0, 8, len(shape)])
        + struct.pack(f">{len(shape)}I", *shape)
        + b"values of the array"
    )
    assert parse_header(data) == ArrayHeader(tuple(shape), np.dtype(np.uint8), 4 + 4 * len(shape))


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"", "it does not begin like a .npy file, or an IDX file of unsigned bytes: it is empty"),
        (
            b"\0\0\x08",
            "it does not begin like a .npy file, or an IDX file of unsigned bytes: 00 00 08",
        ),
        (
            b"\x89PNG\r\n",
            "it does not begin like a .npy file, or an IDX file of unsigned bytes: 89 50 4e 47",
        ),
        (
            b"\0\0\x0d\3" + bytes(12),
            "it does not begin like a .npy file, or an IDX file of unsigned bytes: 00 00 0d 03",
        ),
        (
            b"\0\0\x08\3" + bytes(11),
            "it does not begin like a .npy file, or an IDX file of unsigned bytes: 00 00 08 03",
        ),
    ],
)
def test_another_idx_header_is_rejected(data, detail):
    with pytest.raises(Rejected, match=f"^bad_array: {re.escape(detail)}$"):
        parse_header(data)


@given(st.binary(max_size=30))
def test_no_bytes_of_an_idx_header_raise_anything_else(data):
    with suppress(Rejected):
        parse_header(data)


def saved(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


class Trap:
    def __reduce__(self):
        return os.abort, ()


@given(
    shape=st.lists(st.integers(0, 5), max_size=4),
    dtype=st.sampled_from(["u1", "<i8", ">i4", "<U7"]),
    version=st.sampled_from([(1, 0), (2, 0)]),
)
def test_headers_of_numpys_files_are_read_back(shape, dtype, version):
    array = np.zeros(shape, dtype)
    data = saved(array, version=version)
    header = parse_header(data[:LONGEST_HEADER])
    assert (header.shape, header.dtype) == (tuple(shape), np.dtype(dtype))
    assert data[header.bytes :] == array.tobytes()


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (saved(np.zeros(3))[:60], "its .npy header is damaged"),
        (b"\x93NUMPY\3\0" + bytes(100), "its .npy header is damaged, or not of version 1.0 or 2.0"),
        (b"\x93NUMPY\1\0\x10\0" + b"(" * 16, "its .npy header is damaged"),
        (
            saved(np.asfortranarray(np.zeros((2, 3)))),
            "it is stored column by column: save numpy.ascontiguousarray",
        ),
    ],
)
def test_another_npy_header_is_rejected(data, detail):
    with pytest.raises(Rejected, match=f"^bad_array: {re.escape(detail)}"):
        parse_header(data)


def test_nothing_is_unpickled():
    with pytest.raises(
        Rejected, match=r"^bad_array: it holds pickled Python objects, which are never loaded$"
    ):
        parse_header(saved(np.array([Trap()], dtype=object)))


@given(st.data())
def test_no_bytes_of_a_npy_header_raise_anything_else(data):
    content = bytearray(saved(np.zeros((2, 3, 4), np.uint8)))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 127))] = data.draw(st.integers(0, 255))
    with suppress(Rejected):
        parse_header(bytes(content))


@example(b"{" * 9000)
@example(b"(" * 9000)
@given(st.text("(){}[]:,'0123456789eTruefals-", max_size=60).map(str.encode))
def test_no_header_text_raises_anything_else(text):
    data = b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text
    with pytest.raises(Rejected):
        parse_header(data)


DATA = bytes(range(100))


def header(total):
    return ArrayHeader((total,), np.dtype(np.uint8), 0)


@pytest.fixture(params=["plain", "gz"])
def place(request, tmp_path):
    path = tmp_path / ("x.gz" if request.param == "gz" else "x")
    path.write_bytes(gzip.compress(DATA) if request.param == "gz" else DATA)
    return place_of(ImageRef("x", str(path), path.stat().st_size, "1"))


def test_ranges_are_those_of_what_is_in_it(place):
    assert place.read(0, 7) == DATA[:7]
    assert place.read(90, 20) == DATA[90:]
    place.check_size(header(100), "100 values")


@pytest.mark.parametrize("expected", [99, 101])
def test_another_size_is_found(place, expected):
    with pytest.raises(Rejected) as caught:
        place.check_size(header(expected), "all values")
    found = "more or fewer" if place.packing else "100"
    assert caught.value.reason == "wrong_length"
    assert (
        caught.value.detail
        == f"0 of header and all values are {expected} bytes, and the file has {found}"
    )


def test_an_array_inside_a_file(tmp_path):
    (tmp_path / "x").write_bytes(DATA)
    place = ArrayPlace(str(tmp_path / "x"), offset=10, size=20)
    assert (place.read(0, 3), place.read(5, 3)) == (DATA[10:13], DATA[15:18])
    place.check_size(header(20), "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "vanished"),
        (b"no gzip at all", "bad_packing"),
        (gzip.compress(DATA, mtime=0)[:40], ""),
    ],
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
            place.read(0, 100)


def test_a_sibling_file_is_found_plain_or_gzipped(tmp_path):
    folder = tmp_path / "in" / "a"
    folder.mkdir(parents=True)
    file = ImageRef("a/x", str(folder / "x"), 1)
    assert find_labels(DataFile("a/x", file), "labels.gz") is None
    (folder / "labels.gz").write_bytes(gzip.compress(b"12"))
    assert find_labels(DataFile("a/x", file), "labels").read(0, 9) == b"12"
    (folder / "labels").write_bytes(b"3")
    assert find_labels(DataFile("a/x", file), "labels.gz").read(0, 9) == b"3"


def test_a_sibling_file_is_found_in_a_folder_as_the_store_spells_it(tmp_path):
    folder = tmp_path / unicodedata.normalize("NFD", "é")
    folder.mkdir()
    (folder / "labels").write_bytes(b"3")
    assert (
        find_labels(DataFile("é/x", ImageRef("é/x", str(folder / "x"), 1)), "labels").read(0, 9)
        == b"3"
    )


def test_nothing_outside_the_input_is_read(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_bytes(b"1")
    (tmp_path / "in" / "labels").symlink_to(tmp_path / "secret")
    file = ImageRef("x", str(tmp_path / "in" / "x"), 1)
    for name in ("labels", "../secret", str(tmp_path / "secret"), "file:///etc/passwd"):
        with pytest.raises(
            Rejected, match=r"^bad_labels: .* is not below the input|^bad_labels: .* points"
        ):
            find_labels(DataFile("x", file), name)


def test_a_sibling_folder_is_not_a_file(tmp_path):
    (tmp_path / "labels").mkdir()
    with pytest.raises(Rejected, match="bad_labels: labels: it is a folder"):
        find_labels(DataFile("images", ImageRef("images", str(tmp_path / "images"))), "labels")


A, B = np.arange(500, dtype=np.uint8).reshape(5, 10, 10), np.arange(5)


def members(path):
    return find_members(ImageRef("x", str(path), path.stat().st_size, "1"))


@pytest.mark.parametrize(("save", "packed"), [(np.savez, False), (np.savez_compressed, True)])
def test_every_array_is_found_and_can_be_read(tmp_path, save, packed):
    save(tmp_path / "x.npz", a=A, ünï=B)
    found = members(tmp_path / "x.npz")
    assert set(found) == {"a", "ünï"}
    for name, array in (("a", A), ("ünï", B)):
        data, place = saved(array), found[name]
        assert place.size == len(data)
        assert bool(place.packing) is packed
        assert place.read(0, 50) == data[:50]
        assert place.read(40, 10**6) == data[40:]


def test_other_members_are_left_alone(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "x")
        archive.writestr("a.npy", saved(A))
    assert list(members(tmp_path / "x.npz")) == ["a"]


def test_an_archive_after_other_bytes_is_read_where_it_is(tmp_path):
    np.savez(tmp_path / "x.npz", a=A)
    (tmp_path / "x.npz").write_bytes(b"front" + (tmp_path / "x.npz").read_bytes())
    assert members(tmp_path / "x.npz")["a"].read(0, 10**4) == saved(A)


@pytest.mark.parametrize(
    ("damage", "detail"),
    [
        (lambda data: b"", "it is not a zip archive, or its end is missing"),
        (lambda data: data[:-30], "it is not a zip archive, or its end is missing"),
        (lambda data: b"XX" + data[2:], "a.npy: its header is damaged"),
        (lambda data: data[20:], "a.npy: its header is damaged"),
    ],
)
def test_a_damaged_archive(tmp_path, damage, detail):
    np.savez(tmp_path / "x.npz", a=A)
    path = tmp_path / "x.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Rejected, match=f"^bad_packing: {detail}"):
        members(path)


def test_an_encrypted_member(tmp_path):
    np.savez(tmp_path / "x.npz", a=A)
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[data.rfind(b"PK\1\2") + 8] |= 1
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(
        Rejected, match=r"^bad_packing: a\.npy: it is encrypted, or packed by another"
    ):
        members(tmp_path / "x.npz")


def test_a_compressed_member_that_is_damaged_says_so_when_it_is_read(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.random.default_rng(0).integers(0, 9, 5000))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[2000:2040] = bytes(40)
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(Rejected, match=r"^bad_packing: "):
        members(tmp_path / "x.npz")["a"].read(0, 10)
