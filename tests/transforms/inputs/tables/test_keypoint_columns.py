import math
import re

import pytest

from recordmill.schemas.errors import SettingError
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.tables.keypoint_columns import KeyPointColumns, guess_key_points

COLUMNS = KeyPointColumns(x="{name}_x", y="{name}_y", names=("nose", "tail"))
SEEN = KeyPointColumns(x="x{name}", y="y{name}", visibility="v{name}", names=("1", "2"))


@pytest.mark.parametrize(
    ("columns", "cells", "points"),
    [
        (
            COLUMNS,
            {"nose_x": "1.5", "nose_y": 2, "tail_x": 3.0, "tail_y": "4"},
            [1.5, 2, 2, 3, 4, 2],
        ),
        (COLUMNS, {"nose_x": "", "nose_y": "", "tail_x": None, "tail_y": math.nan}, [0] * 6),
        (SEEN, {"x1": 1, "y1": 2, "v1": 0, "x2": 3, "y2": 4, "v2": "1"}, [1, 2, 0, 3, 4, 1]),
        (SEEN, {"x1": "", "y1": "", "v1": "", "x2": 3, "y2": 4, "v2": 2}, [0, 0, 0, 3, 4, 2]),
    ],
)
def test_a_row_has_x_y_and_visibility_of_each_point(columns, cells, points):
    assert columns.read(cells) == points


@pytest.mark.parametrize(
    ("cells", "detail"),
    [
        ({"nose_x": "1", "nose_y": ""}, "column 'nose_y' is empty"),
        ({"nose_x": "a", "nose_y": "1"}, "column 'nose_x': 'a' (str) is not a finite number"),
        ({"nose_x": "1,5", "nose_y": "1"}, "column 'nose_x': '1,5' (str) is not a finite number"),
    ],
)
def test_a_point_that_is_not_two_numbers_rejects_the_row(cells, detail):
    with pytest.raises(Rejected) as raised:
        COLUMNS.read(cells)
    assert raised.value.detail.startswith(detail)


@pytest.mark.parametrize(
    ("x", "y", "header", "names"),
    [
        ("{name}_x", "{name}_y", ["id", "tail_x", "tail_y", "nose_y", "nose_x"], ("tail", "nose")),
        ("x{name}", "y{name}", ["x10", "y10", "x2", "y2"], ("10", "2")),
        ("p.{name}.X", "p.{name}.Y", ["p.a.X", "p.a.Y", "pxaxX"], ("a",)),
    ],
)
def test_points_have_the_names_in_columns_in_the_order_of_the_table(x, y, header, names):
    assert KeyPointColumns(x=x, y=y).match(header, ()).names == names


def test_columns_with_another_meaning_give_no_points():
    columns = KeyPointColumns(x="{name}_x", y="{name}_y")
    assert columns.match(["box_x", "nose_x", "nose_y"], {"box_x"}).names == ("nose",)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            ["id"],
            "source.keypoints.x is '{name}_x', and no column matches; the table has 'id': correct",
        ),
        (
            ["a_x", "a_y", "b_x"],
            "source.keypoints.y: the table has no column 'b_y', only 'a_x', 'a_y', 'b_x'",
        ),
    ],
)
def test_a_table_without_the_columns_is_refused(header, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        KeyPointColumns(x="{name}_x", y="{name}_y").match(header, ())


def test_x_and_y_may_alternate_under_any_names():
    columns = KeyPointColumns(columns="*").match(["file", "0", "1", "2", "3"], {"file"})
    assert columns == KeyPointColumns(columns=("0", "1", "2", "3"), names=("1", "2"))
    assert columns.read({"0": 1, "1": 2, "2": "", "3": ""}) == [1, 2, 2, 0, 0, 0]
    assert [column for _, column in columns.list_columns()] == ["0", "1", "2", "3"]
    named = KeyPointColumns(columns=("a*", "z"), names=("nose",)).match(["z", "ab"], ())
    assert named == KeyPointColumns(columns=("ab", "z"), names=("nose",))
    for pairs, names, message in (
        ("*", (), "source.keypoints.columns are 3 columns, 'a', 'b', 'c', and not pairs: correct"),
        (("a", "b"), ("x", "y"), "source.keypoints.names has 2 names for 1 key point: correct"),
    ):
        with pytest.raises(SettingError, match=re.escape(message)):
            KeyPointColumns(columns=pairs, names=names).match(["a", "b", "c"], ())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"x": "nose_x", "y": "{name}_y"}, "source.keypoints.x is 'nose_x': write {name} once"),
        ({"x": "{name}_x", "columns": "*"}, "source.keypoints.columns and x, y or visibility"),
        ({"x": "{name}_x"}, "source.keypoints.y is empty, and x and y go together"),
        ({"names": ("a",)}, "source.keypoints.x is empty, and x and y go together"),
        (
            {"x": "{name}_x", "y": "{name}_y", "names": ("a", "a")},
            "source.keypoints.names has 'a' twice: remove one of them",
        ),
    ],
)
def test_patterns_are_checked(settings, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        KeyPointColumns(**settings).check()


def test_without_patterns_there_are_no_key_points():
    KeyPointColumns().check()
    assert not KeyPointColumns()
    assert list(KeyPointColumns().list_columns()) == []


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        (["nose_x", "nose_y", "tail_x", "tail_y"], COLUMNS),
        (["x1", "y1", "x2", "y2", "x3", "y3"], ("x{name}", "y{name}", ("1", "2", "3"))),
        (["Nose X", "Tail X", "Nose Y", "Tail Y"], ("{name} X", "{name} Y", ("Nose", "Tail"))),
        (list("012345"), KeyPointColumns(columns="*", names=("1", "2", "3"))),
        (list("123456"), KeyPointColumns(columns="*", names=("1", "2", "3"))),
        (list("01234"), None),
        (list("0246"), None),
        (["x1", "y1", "x2", "y2"], None),  # a box
        (["center_x", "center_y", "width"], None),
        (["a_x", "b_x", "c_y"], None),
    ],
)
def test_columns_of_key_points_are_guessed_by_their_names(numbers, found):
    if isinstance(found, tuple):
        found = KeyPointColumns(x=found[0], y=found[1], names=found[2])
    assert guess_key_points(numbers) == found
