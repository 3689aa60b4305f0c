import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.viewing.selection import (
    Selection,
    SelectionError,
    Term,
    parse_selection,
    quote,
    select,
)


class ThreeImages:
    """A cat, a dog, and both of them."""

    keys = ("a/Cat.jpg", "b/dog.jpg", "c/both.jpg")
    classes = ({"cat"}, {"dog"}, {"cat", "dog"})
    widths = np.array([32, 64, -1])

    def __len__(self):
        return 3

    def list_names(self, name):
        return ["cat", "dog", "polar bear"] if name == "class" else ["train", "test"]

    def match_name(self, name, value):
        return np.array([value in each for each in self.classes])

    def match_text(self, text):
        return np.array([text.lower() in key.lower() for key in self.keys])

    def numbers_of(self, name):
        return self.widths


def selected(query):
    return select(parse_selection(query), ThreeImages()).nonzero()[0].tolist()


@pytest.mark.parametrize(
    ("query", "images"),
    [
        ("", [0, 1, 2]),
        ("class=cat", [0, 2]),
        ("class=cat,dog", [0, 1, 2]),
        ("class=cat class=dog", [2]),
        ("class!=cat", [1]),
        ("class!=cat,dog", []),
        ("text~cat", [0]),
        ("text~cat,dog", [0, 1]),
        ("text!~cat", [1, 2]),
        ('text~"/b"', [2]),
        ("width>=32", [0, 1]),
        ("width!=32", [1]),
        ("width=32,64", [0, 1]),
        ("  width<64   class=cat ", [0]),
    ],
)
def test_terms_are_joined_by_and_values_by_or(query, images):
    assert selected(query) == images


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("clas=cat", "there is no 'clas': did you mean class?"),
        ("class=cta", "there is no class 'cta': did you mean cat?"),
        ("class=bear", "there is no class 'bear': did you mean \"polar bear\"?"),
        ("class=zebra", "there is no class 'zebra': choose one of cat, dog, \"polar bear\""),
        ("class>cat", "class is compared by = or !=, not by >"),
        ("text=cat", "text is compared by ~ or !~, not by ="),
        ("width<wide", "width is compared with 'wide': write a whole number"),
        (
            "cat",
            "'cat' is not a condition: write one such as class=cat or text~0001, with values that "
            "have spaces in double quotes",
        ),
    ],
)
def test_what_cannot_be_understood_gets_a_suggestion(query, message):
    with pytest.raises(SelectionError) as error:
        selected(query)
    assert str(error.value) == message


def test_unfinished_quotes_are_refused():
    with pytest.raises(SelectionError, match="is not a condition"):
        parse_selection('class="cat')


@given(st.lists(st.text(min_size=1).map(str), min_size=1, max_size=3))
def test_any_values_can_be_written_and_read(values):
    term = Term("class", "=", tuple(values))
    assert parse_selection(str(Selection((term, term)))) == Selection((term, term))


def test_plain_values_are_not_quoted():
    assert [quote(each) for each in ("cat", "polar bear", 'a"b', "")] == [
        "cat",
        '"polar bear"',
        '"a\\"b"',
        '""',
    ]
