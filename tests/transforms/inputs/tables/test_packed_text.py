import gzip
import os

import pytest

from recordmill.transforms.inputs.tables.packed_text import open_text
from recordmill.transforms.inputs.tables.row import UnreadableTableError


def read(path, count=7):
    with open_text(str(path)) as text:
        return text.is_gzip, b"".join(iter(lambda: text.read(count), b""))


@pytest.mark.parametrize("content", [b"", b"\x1f", b"some text\nof two lines"])
def test_plain_and_gzipped_give_the_same(content, tmp_path):
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed").write_bytes(gzip.compress(content[:4]) + gzip.compress(content[4:]))
    assert read(tmp_path / "plain") == (False, content)
    assert read(tmp_path / "packed") == (True, content)


def test_what_comes_before_a_damage_is_given(tmp_path):
    content = os.urandom(2**21)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(content)[:-8])
    with open_text(str(tmp_path / "cut.gz")) as text:
        assert content.startswith(text.read(10))
        with pytest.raises(UnreadableTableError, match=r"^the gzip file is damaged: "):
            b"".join(iter(lambda: text.read(10), b""))


def test_there_is_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError), open_text(str(tmp_path / "gone")):
        pass
