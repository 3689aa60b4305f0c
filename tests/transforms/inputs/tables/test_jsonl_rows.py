import io

import orjson
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.inputs.tables.jsonl_rows import read_jsonl_rows
from recordmill.transforms.inputs.tables.text_lines import TextLines


def read(content, encoding="utf-8"):
    return list(read_jsonl_rows(TextLines(io.BytesIO(content), encoding)))


texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    st.lists(
        st.dictionaries(texts, st.none() | texts | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
    )
)
def test_every_object_comes_back_and_each_by_its_bytes(objects):
    content = b"".join(orjson.dumps(each) + b"\n" for each in objects)
    rows = read(content)
    assert [row.cells for row in rows] == objects
    assert [orjson.loads(content[row.offset : row.offset + row.length]) for row in rows] == objects


def test_lines_that_are_not_objects_are_rows_with_faults():
    rows = read(b'\xef\xbb\xbf{"a": 1}\n\n{"a": \n[1]\n"\xff"\n{"a": NaN}\r\n{"a": 2}')
    assert [(row.number, row.cells) for row in rows] == [
        (1, {"a": 1}),
        (3, None),
        (4, None),
        (5, None),
        (6, None),
        (7, {"a": 2}),
    ]
    faults = [row.fault for row in rows]
    assert faults[1].startswith("it is not valid JSON: ")
    assert faults[2:4] == ["it is not a JSON object: '[1]'", "it is not in utf-8"]
    assert faults[0] == faults[5] == ""


def test_brackets_without_end_are_one_bad_row():
    rows = read(b"[" * 100_000 + b'\n{"a": 1}\n')
    assert [row.cells for row in rows] == [None, {"a": 1}]
