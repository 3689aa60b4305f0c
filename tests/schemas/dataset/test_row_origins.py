import hashlib

from recordmill.schemas.dataset.record_index import (
    SECTION_BYTES,
    UNKNOWN,
    RowOrigin,
    pack_table,
    parse_origins,
    parse_table,
)


def test_lines_say_what_rows_were_made_from():
    origins = [RowOrigin(2**64 - 1, 5), UNKNOWN, RowOrigin(1, 2, {"missing": ["a"]})]
    lines = [origin.as_line() for origin in origins]
    assert lines[1] == b"[0,0]\n"
    assert list(parse_origins(lines)) == origins
    assert list(parse_origins([RowOrigin(counts={}).as_line()])) == [UNKNOWN]


def test_a_table_says_where_sections_are_and_their_digests():
    sections = [b"[0,0]\n", b"", b"[1,2]\n[3,4]\n"]
    content = pack_table(sections, 3) + b"".join(sections)
    found = parse_table(content[: 3 * SECTION_BYTES])
    assert [content[each.offset : each.offset + each.length] for each in found] == sections
    assert [each.sha256 for each in found] == [hashlib.sha256(each).digest() for each in sections]
