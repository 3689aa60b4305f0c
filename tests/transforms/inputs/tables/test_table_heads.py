import pytest

from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.tables.table_heads import TableHead, head_of


def head(text, path="a.csv"):
    return head_of(path, FolderSketch.of([path], {path: text.encode()}))


@pytest.mark.parametrize(
    ("text", "rows", "delimiter"),
    [
        ("", (), ""),
        ("a,b\n1,2\n3,4\n", (("a", "b"), ("1", "2"), ("3", "4")), ""),
        ("a,b\n1,2\n3,", (("a", "b"), ("1", "2")), ""),
        ("a,b\n1,", (("a", "b"), ("1", "")), ""),
        ("\n\na;b\n1;2\n", (("a", "b"), ("1", "2")), ";"),
        ("sep=;\na;b\n1;2\n", (("a", "b"), ("1", "2")), ""),
        ('"sep=|"\r\na|b\r\n1|2\r\n', (("a", "b"), ("1", "2")), ""),
        ("\ufeffa\tb\n1\t2\n", (("a", "b"), ("1", "2")), "\t"),
    ],
)
def test_the_first_whole_rows_are_seen(text, rows, delimiter):
    assert head(text) == TableHead(rows, delimiter)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (",a\n0,x\n1,y\n", "column_1", True),
        (",a\n7,x\n3,y\n", "column_1", True),
        (",a\n7,x\n7,y\n", "column_1", False),
        (",a\n7.5,x\n8,y\n", "column_1", False),
        ("a,\nx,0\ny,1\n", "column_2", False),
        ("Unnamed: 0,a\n5,x\n5,y\n", "Unnamed: 0", True),
        ("Unnamed: 0,a\nz,x\n5,y\n", "Unnamed: 0", False),
        ("__index_level_0__,a\n5,x\n", "__index_level_0__", True),
        ("Index,a\n0,x\n1,y\n", "Index", True),
        ("index,a\n1,x\n2,y\n", "index", False),
        ("id,a\n0,x\n1,y\n", "id", False),
    ],
)
def test_a_column_of_row_numbers_is_an_index(text, name, expected):
    assert head(text).is_index(name) is expected


def test_numbers_fractions_and_flags():
    seen = head("a,b,c,d,e\n0,0.0,1.5,x,\n1,2,,1,\n")
    names = "abcde"
    assert [seen.holds_numbers(name) for name in names] == [True, True, True, False, False]
    assert [seen.holds_fractions(name) for name in names] == [False, False, True, False, False]
    assert [seen.holds_flags(name) for name in names] == [True, False, False, False, False]
