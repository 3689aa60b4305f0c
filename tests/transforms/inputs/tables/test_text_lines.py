import gzip
import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.inputs.tables import read_table
from recordmill.transforms.inputs.tables.cells import UnreadableTableError
from recordmill.transforms.inputs.tables.read_table import (
    NotEncodedError,
    TableFormat,
    TextLines,
    open_lines,
)

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030")


class Dripping(io.BytesIO):
    """Gives a few bytes at a time, whatever is asked for."""

    def readinto(self, buffer):
        return super().readinto(buffer[:5])


def text_lines_of(content, encoding, stream=io.BytesIO):
    return TextLines(io.BufferedReader(stream(content)), encoding)


@given(
    st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))),
    st.sampled_from(ENCODINGS),
)
def test_lines_are_exact_and_counted(texts, encoding):
    content = "\n".join(["first", *texts]).encode(encoding)
    lines = text_lines_of(content, encoding, Dripping)
    found = list(lines)
    assert "".join(found) == "\n".join(["first", *texts])
    assert len(found) == lines.number == len(texts) + (not texts or bool(texts[-1]))


def test_line_ends_stay_as_they_are():
    assert list(text_lines_of(b"a\r\n\nb", "latin-1")) == ["a\r\n", "\n", "b"]
    assert list(text_lines_of(b"", "utf-8")) == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_byte_order_mark_is_not_part_of_the_first_line(encoding):
    lines = text_lines_of("\ufeff\r\na,b\r\nc".encode(encoding.removesuffix("-sig")), encoding)
    assert lines.head == "a,b\r"
    assert list(lines) == ["\r\n", "a,b\r\n", "c"]


def test_a_line_feed_is_found_only_where_a_letter_begins():
    text = "\u0a00\u000a\u0a0a\u0a00"  # bytes 0a everywhere
    assert list(text_lines_of(text.encode("utf-16-be"), "utf-16-be")) == [
        "\u0a00\n",
        "\u0a0a\u0a00",
    ]
    assert list(text_lines_of(text.encode("utf-16-le"), "utf-16-le")) == [
        "\u0a00\n",
        "\u0a0a\u0a00",
    ]


def test_the_line_after_one_in_another_encoding_is_read():
    lines = text_lines_of(b"a\n\xff\nb\n", "utf-8")
    assert next(lines) == "a\n"
    with pytest.raises(NotEncodedError, match=r"^it is not in utf-8: set source\.encoding"):
        next(lines)
    assert (next(lines), lines.number) == ("b\n", 3)


@pytest.mark.parametrize("marked", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1", "gbk"]
)
def test_a_byte_order_mark_of_another_encoding_is_reported(marked, encoding):
    data, name = "a".encode(marked), marked.removesuffix("-sig")
    if encoding.startswith(name):
        text_lines_of(data, encoding)
        return
    message = f"^it begins as {name.upper()} does: set source.encoding: {name}$"
    with pytest.raises(UnreadableTableError, match=message):
        text_lines_of(data, encoding)


@pytest.mark.parametrize("ends", [False, True])
def test_a_line_without_end_is_not_kept_in_memory(ends, monkeypatch):
    monkeypatch.setattr(read_table, "MAX_LETTERS", 1_000_000)
    stream = io.BytesIO(b"short\n" + b"x" * 3_000_000 + b"\n" * ends)
    lines = TextLines(io.BufferedReader(stream), "utf-8")
    assert next(lines) == "short\n"
    with pytest.raises(
        UnreadableTableError,
        match=r"^line 2 has over 1,000,000 characters: are line ends missing\?$",
    ):
        next(lines)
    assert stream.tell() < 1_100_000


def test_an_encoding_that_is_none():
    TableFormat(encoding="cp1252").check_format()
    # The last two cannot go on after an error.
    for name in (
        "utf-99",
        "hex",
        "rot13",
        "punycode",
        "idna",
    ):
        with pytest.raises(ValueError, match=f"^source.encoding '{name}' is not a known encoding"):
            TableFormat(encoding=name).check_format()


def test_no_more_of_a_file_is_read_than_its_lines_need():
    stream = io.BytesIO(b"0123456789\n" * 1_000_000)
    lines = TextLines(io.BufferedReader(stream), "utf-8")
    for count, _ in enumerate(lines, start=1):
        if count % 100_000 == 0:
            assert stream.tell() - 11 * count <= 2**18
    assert lines.number == 1_000_000


@pytest.mark.parametrize("content", ["", "\x1f", "some text\nof two lines"])
def test_plain_and_gzipped_give_the_same(content, tmp_path):
    data = content.encode()
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data[:4]) + gzip.compress(data[4:]))
    for name in ("plain", "packed"):
        with open_lines(str(tmp_path / name), "utf-8") as lines:
            assert "".join(lines) == content


def test_what_comes_before_a_damage_is_given(tmp_path):
    content = os.urandom(2**20).hex()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"first\n" + content.encode())[:-8])
    with open_lines(str(tmp_path / "cut.gz"), "utf-8") as lines:
        assert next(lines) == "first\n"
        with pytest.raises(UnreadableTableError, match=r"^the gzip file is damaged: "):
            next(lines)


def test_there_is_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError), open_lines(str(tmp_path / "gone"), "utf-8"):
        pass
