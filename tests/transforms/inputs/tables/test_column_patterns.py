import pytest

from recordmill.transforms.inputs.tables.column_patterns import match_columns

HEADER = ("column_1", "file", "x10", "x2", "y", "z[0]", "z0")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("x*", ("x10", "x2")),
        (["y", "x*"], ("y", "x10", "x2")),
        (["x2", "x*"], ("x2", "x10")),
        ("z[0]", ("z[0]",)),
        ("z[0-9]", ("z0",)),
        ("?", ("y",)),
        ("*", ("x10", "x2", "y", "z[0]", "z0")),
        (["column_1", "file"], ("column_1", "file")),
    ],
)
def test_names_and_patterns_mean_columns_in_an_order(wanted, found):
    assert match_columns("k", wanted, HEADER, {"column_1"}, {"file"}) == found


@pytest.mark.parametrize("wanted", ["X*", "c*", "f*", ["x*", "q"], ""])
def test_what_means_no_column_is_refused(wanted):
    with pytest.raises(ValueError, match=r"^k: no column is, or matches, '.*'; the table has 'col"):
        match_columns("k", wanted, HEADER, {"column_1"}, {"file"})
