import io
import zipfile

import numpy as np
import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.npz_members import find_members

A, B = np.arange(500, dtype=np.uint8).reshape(5, 10, 10), np.arange(5)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def members(path):
    return find_members(ImageRef("x", str(path), path.stat().st_size, "1"))


@pytest.mark.parametrize(("save", "packed"), [(np.savez, False), (np.savez_compressed, True)])
def test_every_array_is_found_and_can_be_read(tmp_path, save, packed):
    save(tmp_path / "x.npz", a=A, ünï=B)
    found = members(tmp_path / "x.npz")
    assert set(found) == {"a", "ünï"}
    for name, array in (("a", A), ("ünï", B)):
        data, place = npy(array), found[name]
        assert place.size == len(data)
        assert bool(place.packing) is packed
        assert place.read(0, 50) == data[:50]
        assert place.read(40, 10**6, len(data)) == data[40:]


def test_other_members_are_left_alone(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "x")
        archive.writestr("a.npy", npy(A))
    assert list(members(tmp_path / "x.npz")) == ["a"]


def test_an_archive_after_other_bytes_is_read_where_it_is(tmp_path):
    np.savez(tmp_path / "x.npz", a=A)
    (tmp_path / "x.npz").write_bytes(b"front" + (tmp_path / "x.npz").read_bytes())
    assert members(tmp_path / "x.npz")["a"].read(0, 10**4) == npy(A)


@pytest.mark.parametrize(
    ("damage", "detail"),
    [
        (lambda data: b"", "not a zip archive, as .npz files are: File is not a zip file"),
        (lambda data: data[:-30], "not a zip archive, as .npz files are: File is not a zip file"),
        (lambda data: b"XX" + data[2:], "a.npy is not where the archive says that it is"),
        (lambda data: data[20:], "a.npy begins before the archive does"),
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
    with pytest.raises(Rejected, match=r"^bad_packing: a\.npy is encrypted$"):
        members(tmp_path / "x.npz")


def test_a_compressed_member_that_is_damaged_says_so_when_it_is_read(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.random.default_rng(0).integers(0, 9, 5000))
    data = bytearray((tmp_path / "x.npz").read_bytes())
    data[2000:2040] = bytes(40)
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(Rejected, match=r"^bad_packing: "):
        members(tmp_path / "x.npz")["a"].read(0, 10, 50_000)
