import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.features import INT64_MAX, INT64_MIN
from recordmill.schemas.label_map import (
    MOST_TFDS_NAMES,
    LabelMap,
    LabelSettings,
    build_label_map,
    find_class,
    is_integer_label,
    tfds_names,
)
from recordmill.schemas.rejection import LeftOut

NAMES = LabelSettings()


def test_names_found_are_sorted_by_code_point():
    found = ["ä", "b", "10", "a", "Z", "2", "1", "", "\U0001d49c", "\uffff"]
    expected = {
        "1": 0,
        "10": 1,
        "2": 2,
        "Z": 3,
        "a": 4,
        "b": 5,
        "ä": 6,
        "\uffff": 7,
        "\U0001d49c": 8,
    }
    assert build_label_map(found, NAMES, 0) == LabelMap(expected)


@given(st.lists(st.text(max_size=4)), st.randoms(use_true_random=False))
def test_neither_order_nor_frequency_changes_an_id(found, random):
    more = random.sample(found, len(found)) + found[:3] * 5
    assert build_label_map(more, NAMES, 0) == build_label_map(found, NAMES, 0)


def test_an_offset_is_the_first_id():
    assert build_label_map(["b", "a"], NAMES, 1).ids == {"a": 1, "b": 2}


def test_an_explicit_list_gives_its_order_whatever_was_found():
    settings = LabelSettings(classes=("dog", "cat", "unseen"))
    assert build_label_map(["cat", "stray"], settings, 5).ids == {"dog": 5, "cat": 6, "unseen": 7}


def test_unlisted_labels_have_no_class_without_a_catch_all():
    label_map = build_label_map([], LabelSettings(classes=("dog", "cat")), 0)
    assert label_map.name_for("dog") == "dog"
    assert label_map.name_for("stray") is None


def test_unlisted_labels_go_to_the_catch_all():
    label_map = build_label_map([], LabelSettings(classes=("dog", "other"), catch_all="other"), 0)
    assert label_map.name_for("dog") == "dog"
    assert label_map.name_for("stray") == "other"


def test_integer_labels_are_their_own_ids():
    label_map = build_label_map(
        ["10", "-3", "007", "x", "1.5", ""], LabelSettings(ids="integers"), 1
    )
    assert label_map == LabelMap({"-3": -3, "007": 7, "10": 10})


def test_integer_labels_may_have_a_decimal_point_and_zeros():
    labels = ["2.0", "0.0", "-1.00", "10.0", "1.", "1.0e1", "inf", "nan", ".0"]
    label_map = build_label_map(labels, LabelSettings(ids="integers"), 1)
    assert label_map == LabelMap({"-1.00": -1, "0.0": 0, "10.0": 10, "2.0": 2})


def test_of_two_spellings_of_an_integer_the_shorter_has_the_id():
    labels = ["2.0", "2", "3.00", "3.0"]
    label_map = build_label_map(labels, LabelSettings(ids="integers"), 1)
    assert label_map == LabelMap({"2": 2, "3.0": 3})


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("0", True),
        ("-0", True),
        ("007", True),
        (str(INT64_MAX), True),
        (str(INT64_MIN), True),
        (str(INT64_MAX + 1), False),
        (str(INT64_MIN - 1), False),
        ("9" * 5000, False),
        ("", False),
        ("-", False),
        ("--1", False),
        ("+1", False),
        (" 1", False),
        ("1_0", False),
        ("1.0", False),
        ("٣", False),
        ("²", False),
    ],
)
def test_integer_labels_are_plain_decimal_numbers(label, expected):
    assert is_integer_label(label) is expected


def test_text_has_one_line_per_class_in_the_order_of_the_ids():
    assert LabelMap({"z": 1, "a": 10, "m": 2}).as_text() == "1:z\n2:m\n10:a\n"


def test_line_breaks_in_names_stay_on_one_line_and_stay_distinct():
    text = LabelMap({"a\nb": 0, "a\\nb": 1, "c\rd": 2}).as_text()
    assert text == "0:a\\nb\n1:a\\\\nb\n2:c\\rd\n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"classes": ("a", "b", "a")}, "labels.classes lists 'a' twice"),
        (
            {"classes": ("a",), "catch_all": "b"},
            "labels.catch_all is 'b', which labels.classes does not list",
        ),
        ({"catch_all": "b"}, "labels.catch_all is 'b', which labels.classes does not list"),
        (
            {"ids": "integers", "classes": ("1",)},
            "labels.ids: integers takes each label as its id: set labels.ids to names",
        ),
        (
            {"ids": "integers", "offset": 0},
            "labels.ids: integers takes each label as its id: set labels.ids to names",
        ),
        (
            {"rename": {"a": "b", "b": "c"}},
            "labels.rename.a is 'b', which labels.rename renames, too: give each class its last",
        ),
        ({"rename": {"a": "a"}}, "labels.rename.a is 'a', which labels.rename renames, too"),
        ({"rename": {"a": ""}}, "labels.rename.a is empty: write null to drop the class"),
        (
            {"rename": {"a": "b"}, "classes": ("a",)},
            "labels.classes lists 'a', which labels.rename renames: list new names only",
        ),
        (
            {"ids": "raised", "offset": 0},
            "labels.ids: raised takes each label as its id: set labels.ids to names",
        ),
    ],
)
def test_contradictory_settings_raise_and_name_their_key(settings, message):
    with pytest.raises(ValueError, match=message):
        LabelSettings(**settings)


NUMBERS = {"truck": 9, "cat": 3, "ship": 8}


def test_ids_are_those_of_the_new_names():
    renamed = LabelSettings(rename={"tabby": "cat", "rex": "Dog", "blank": None})
    labels = build_label_map(["rex", "tabby", "blank", "cow", ""], renamed, 0)
    assert labels.ids == {"Dog": 0, "cat": 1, "cow": 2}
    assert [labels.name_for(name) for name in ("rex", "tabby", "cat", "blank", "emu")] == [
        *("Dog", "cat", "cat"),
        *(None, None),
    ]
    away = [labels.is_renamed_away(name) for name in ("rex", "cat", "blank", "emu")]
    assert away == [False, False, True, False]
    assert [labels.shown(name) for name in ("rex", "blank", "emu")] == ["Dog", "blank", "emu"]


def test_a_catch_all_takes_no_label_that_is_dropped():
    settings = LabelSettings(classes=("other",), catch_all="other", rename={"blank": None})
    labels = build_label_map(["blank", "cat"], settings, 0)
    assert [labels.name_for(name) for name in ("blank", "cat")] == [None, "other"]


def test_a_dropped_label_leaves_its_image_out():
    labels = build_label_map(["blank"], LabelSettings(rename={"blank": None}), 0)
    with pytest.raises(LeftOut, match="renamed_away: the label 'blank'"):
        find_class("blank", labels)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ("names", {"vehicle": 1, "ship": 2}),
        ("integers", {"vehicle": 0, "ship": 8}),
        ("raised", {"vehicle": 1, "ship": 9}),
    ],
)
def test_the_lowest_number_of_classes_with_one_new_name_counts(ids, expected):
    numbers = {"car": 0, "ship": 8, "truck": 9, "void": 4}
    rename = {"car": "vehicle", "truck": "vehicle", "void": None}
    labels = build_label_map([], LabelSettings(ids=ids, rename=rename), 1, numbers, {9})
    assert labels.ids == expected
    assert [labels.name_for(number) for number in (0, 8, 9)] == ["vehicle", "ship", "vehicle"]
    assert (labels.name_for(4), labels.is_renamed_away(4), labels.shown(4)) == (None, True, "void")


def test_classes_that_the_source_numbers_come_in_the_order_of_its_numbers():
    labels = build_label_map(["stray"], NAMES, 1, NUMBERS)
    assert labels.ids == {"cat": 1, "ship": 2, "truck": 3}
    assert [labels.name_for(number) for number in (3, 8, 9, 4)] == ["cat", "ship", "truck", None]


def test_the_sources_own_numbers_are_the_ids_on_request():
    labels = build_label_map([], LabelSettings(ids="integers"), 0, NUMBERS)
    assert labels.ids == NUMBERS
    assert labels.name_for(8) == "ship"


@pytest.mark.parametrize(
    ("numbers", "used", "first", "ids"),
    [
        ({"cat": 0, "dog": 1, "emu": 5}, {"cat", "emu"}, 1, {"cat": 1, "dog": 2, "emu": 6}),
        ({"cat": 0, "dog": 1}, {0, 1}, 1, {"cat": 1, "dog": 2}),
        # A class that no box has stays below.
        (
            {"pieces": 0, "dog": 1},
            {"dog"},
            1,
            {"pieces": 0, "dog": 1},
        ),
        ({"cat": 0, "dog": 1}, {"cat"}, 0, {"cat": 0, "dog": 1}),
        # There is no higher id.
        (
            {"cat": 0, "dog": 2**63 - 1},
            {"cat"},
            1,
            {"cat": 0, "dog": 2**63 - 1},
        ),
        ({}, {"-1", "3"}, 1, {"-1": 1, "3": 5}),
        ({}, (), 1, {"-1": -1, "3": 3}),
    ],
)
def test_ids_are_raised_to_the_conventions_first_if_a_class_in_use_is_below(
    numbers, used, first, ids
):
    labels = build_label_map(["-1", "3"], LabelSettings(ids="raised"), first, numbers, used)
    assert labels.ids == ids


def test_an_explicit_list_outweighs_the_sources_numbers():
    labels = build_label_map(
        [], LabelSettings(classes=("ship", "other"), catch_all="other"), 0, NUMBERS
    )
    assert labels.ids == {"ship": 0, "other": 1}
    assert [labels.name_for(number) for number in (8, 3, 4)] == ["ship", "other", None]


def test_names_alone_are_lines_too():
    assert LabelMap({"b": 1, "a\n": 2}).as_text("name") == "b\na\\n\n"


def test_the_object_detection_apis_form_escapes_what_is_not_plain():
    text = LabelMap({'sa"y\\': 2, "tülip": 1}).as_pbtxt()
    assert text == (
        'item {\n  id: 1\n  name: "t\\303\\274lip"\n}\nitem {\n  id: 2\n  name: "sa\\"y\\\\"\n}\n'
    )


def test_a_label_is_left_out_on_purpose_where_the_user_chose_among_names():
    chosen = build_label_map(
        ["cat", "dog"], LabelSettings(classes=("cat",)), 0, {"cat": 0, "dog": 1}
    )
    assert (chosen.leaves_out("dog"), chosen.leaves_out(1), chosen.leaves_out(7)) == (
        True,
        True,
        True,
    )
    nameless = build_label_map([], LabelSettings(classes=("cat",)), 0)
    assert (nameless.leaves_out("dog"), nameless.leaves_out(7)) == (True, False)
    found = build_label_map(["cat"], LabelSettings(), 0, {"cat": 0})
    assert (found.leaves_out("dog"), found.leaves_out(7)) == (False, False)


def test_a_number_is_shown_by_its_name_where_it_has_one():
    labels = LabelMap({"cat": 5}, numbers={"cat": 0, "dog": 1})
    assert [labels.shown(label) for label in (0, 1, 7, "emu")] == ["cat", "dog", "7", "emu"]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({}, []),
        ({"cat": 1, "dog": 2}, ["background", "cat", "dog"]),
        ({"3": 3, "1": 1}, ["background", "1", "unused_2", "3"]),
        ({"2": 2}, ["unused_0", "unused_1", "2"]),
        ({"a\nb": 0, " ": 1, "a\\nb": 2}, ["a\\nb", "_1", "a\\\\nb"]),
        ({" cat": 0, "cat": 1}, ["cat", "cat_1"]),
        ({"background": 1}, ["background_0", "background"]),
        ({"007": 7, "7": 7, "0": 0}, ["0", *(f"unused_{number}" for number in range(1, 7)), "007"]),
        ({"cat": MOST_TFDS_NAMES}, []),
        ({"cat": -1}, []),
    ],
)
def test_every_id_has_a_name_of_its_own(labels, names):
    assert tfds_names(labels) == names


@given(st.dictionaries(st.text(), st.integers(0, 40), min_size=1))
def test_names_come_back_as_tfds_reads_them(labels):
    names = tfds_names(labels)
    text = "".join(f"{name}\n" for name in names)
    assert [
        line.strip()
        for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if line.strip()
    ] == names
    assert len(set(names)) == len(names) == max(labels.values()) + 1
