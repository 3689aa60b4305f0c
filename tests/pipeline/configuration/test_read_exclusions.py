import pytest

from recordmill.pipeline.configuration.preflight import read_exclusions
from recordmill.schemas.errors import UsageError
from recordmill.schemas.rejection import Exclusions


def test_a_list_is_read(tmp_path, monkeypatch):
    (tmp_path / "removed.txt").write_bytes(
        b"\xef\xbb\xbf\n# on request\nkey:a\x0cb.jpg\r\nkey:c.jpg"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_exclusions("~/removed.txt") == Exclusions(frozenset({"a\x0cb.jpg", "c.jpg"}))
    assert read_exclusions("") == Exclusions()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"key:a\n\nphotos/b.jpg\n",
            "{} cannot be used: line 3 is 'photos/b.jpg': write key:KEY, or sha256: and 64 hex "
            "digits",
        ),
        (
            b"\xff\n",
            "{} cannot be used: 'utf-8' codec can't decode byte 0xff in position 0: invalid start "
            "byte",
        ),
        (None, "{} cannot be used: No such file or directory"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(tmp_path, content, sentence):
    path = tmp_path / "removed.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_exclusions(str(path), "--absent")
    assert str(caught.value) == "--absent: " + sentence.format(path)
