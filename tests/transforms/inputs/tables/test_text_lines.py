import codecs
import gzip
import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.inputs.tables import read_table
from recordmill.transforms.inputs.tables.cells import UnreadableTableError
from recordmill.transforms.inputs.tables.read_table import TextLines, check_encoding, open_lines

ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "gb18030")


class Dripping(io.BytesIO):
    """Gives a few bytes at a time, whatever is asked for."""

    def readinto(self, buffer):
        return super().readinto(buffer[:5])


def text_lines_of(content, encoding, stream=io.BytesIO):
    return TextLines(io.BufferedReader(stream(content)), encoding)


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))), st.sampled_from(ENCODINGS))
def test_lines_and_their_places_are_exact(texts, encoding):
    content = "\n".join(["first", *texts]).encode(encoding)
    lines = text_lines_of(content, encoding, Dripping)
    start, found = lines.end, []
    for line in lines:
        assert content[start : lines.end].decode(lines.codec) == line
        start = lines.end
        found.append(line)
    assert "".join(found) == "\n".join(["first", *texts])
    assert len(found) == lines.number == len(texts) + (not texts or bool(texts[-1]))
    assert lines.end == len(content)


def test_line_ends_stay_as_they_are():
    assert list(text_lines_of(b"a\r\n\nb", "latin-1")) == ["a\r\n", "\n", "b"]
    assert list(text_lines_of(b"", "utf-8")) == []


@given(st.lists(st.sampled_from(["a", "", "", "\r", "\r\r", " ", "\u0a00"]), max_size=30), st.sampled_from(ENCODINGS))
def test_a_row_begins_after_empty_lines_which_count(texts, encoding):
    content = "\n".join(["first", *texts]).encode(encoding)
    lines = text_lines_of(content, encoding, Dripping)
    found = []
    while True:
        start, number = lines.begin_row()
        line = next(lines, "")
        if not line:
            break
        assert number == lines.number
        assert content[start : lines.end].decode(lines.codec) == line
        found.append((number, line))
    every = list(text_lines_of(content, encoding, Dripping))
    assert [each for each in found if each[1] not in ("\n", "\r\n")] == [
        (number, line) for number, line in enumerate(every, start=1) if line not in ("\n", "\r\n")
    ]
    assert lines.end == len(content)


def test_empty_lines_take_no_time_each():
    """Two hundred million of them took minutes, one by one."""
    lines = text_lines_of(b"\n" * 30_000_000 + b"a\n", "utf-8")
    assert lines.begin_row() == (30_000_000, 30_000_001)
    assert next(lines) == "a\n"


def test_a_line_feed_is_found_only_where_a_letter_begins():
    text = "\u0a00\u000a\u0a0a\u0a00"  # bytes 0a everywhere
    assert list(text_lines_of(text.encode("utf-16-be"), "utf-16-be")) == ["\u0a00\n", "\u0a0a\u0a00"]
    assert list(text_lines_of(text.encode("utf-16-le"), "utf-16-le")) == ["\u0a00\n", "\u0a0a\u0a00"]


def test_the_line_after_one_in_another_encoding_is_read():
    lines = text_lines_of(b"a\n\xff\nb\n", "utf-8")
    assert next(lines) == "a\n"
    with pytest.raises(UnicodeDecodeError):
        next(lines)
    assert (next(lines), lines.number, lines.end) == ("b\n", 3, 6)


def test_undeclared_utf_16_is_reported():
    with pytest.raises(UnreadableTableError, match=r"set source\.encoding: utf-16"):
        text_lines_of(codecs.BOM_UTF16_LE + "a".encode("utf-16-le"), "utf-8")


@pytest.mark.parametrize("ends", [False, True])
def test_a_line_without_end_is_not_kept_in_memory(ends, monkeypatch):
    monkeypatch.setattr(read_table, "MAX_ROW_BYTES", 2**20)
    lines = text_lines_of(b"short\n" + b"x" * 2**21 + b"\n" * ends, "utf-8")
    assert next(lines) == "short\n"
    assert lines.begin_row() == (6, 2)
    with pytest.raises(UnreadableTableError, match=r"^row 2 has over 1 MiB: is a quote not closed\?$"):
        next(lines)


def test_a_row_may_have_just_as_many_bytes_as_are_kept(monkeypatch):
    monkeypatch.setattr(read_table, "MAX_ROW_BYTES", 4)
    lines = text_lines_of(b"abc\nabcd\n", "utf-8")
    assert lines.begin_row() == (0, 1)
    assert next(lines) == "abc\n"
    assert lines.begin_row() == (4, 2)
    with pytest.raises(UnreadableTableError, match=r"^row 2 has over 0 MiB: is a quote not closed\?$"):
        next(lines)


def test_an_encoding_that_is_none():
    check_encoding("cp1252", "source.encoding")
    for name in ("utf-99", "hex", "rot13"):
        with pytest.raises(ValueError, match=f"^source.encoding '{name}' is not a known encoding"):
            check_encoding(name, "source.encoding")


def test_no_more_of_a_file_is_read_than_its_lines_need():
    stream = io.BytesIO(b"0123456789\n" * 1_000_000)
    lines = TextLines(io.BufferedReader(stream), "utf-8")
    for count, _ in enumerate(lines, start=1):
        if count % 100_000 == 0:
            assert stream.tell() - lines.end <= 2**18
    assert lines.number == 1_000_000


@pytest.mark.parametrize("content", ["", "\x1f", "some text\nof two lines"])
def test_plain_and_gzipped_give_the_same(content, tmp_path):
    data = content.encode()
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed").write_bytes(gzip.compress(data[:4]) + gzip.compress(data[4:]))
    for name in ("plain", "packed"):
        with open_lines(str(tmp_path / name), "utf-8") as lines:
            assert ("".join(lines), lines.is_gzip) == (content, name == "packed")


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
