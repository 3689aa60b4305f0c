import pytest

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.listing.read_sibling import NoFileError, read_sibling


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
    for name, limit, why in (("a.txt", 9, "it is longer than 9 bytes"), ("folder", 9, "is a directory")):
        with pytest.raises(Rejected) as raised:
            read_sibling(str(tmp_path / name), limit)
        assert not isinstance(raised.value, NoFileError)
        assert raised.value.detail.startswith(f"{name}: ")
        assert why in raised.value.detail
