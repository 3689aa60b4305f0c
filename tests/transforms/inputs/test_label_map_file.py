import pytest

from recordmill.schemas.label_map import LabelMap
from recordmill.transforms.inputs.label_map_file import parse_label_map


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "item {\n  id: 1\n  name: 'cat'\n}\n\nitem {\n  id: 2\n  name: 'dog'\n}\n",
            ["cat", "dog"],
        ),
        ('item { name: "cat" id: 1 } item: < name: "dog"; id: 2; >', ["cat", "dog"]),
        ('# classes\nitem { id: 1, name: "/m/01yrx" display_name: "cat" }', ["cat"]),
        (
            'item { id: 1 name: "cat" keypoints { id: 7 label: "tail" } instance_count: 3 }',
            ["cat"],
        ),
        (r"""item { id: 1 name: "d\303\266g \"a\"\t" }""", ['dög "a"\t']),
        ("item { id: 1 name: 'hot' ' dog' }", ["hot dog"]),
        ("item { id: 1 name: 'кошка # 1 {' }", ["кошка # 1 {"]),
    ],
)
def test_the_names_of_a_label_map_are_read(text, names):
    assert parse_label_map(text) == dict(enumerate(names, 1))


def test_what_a_dataset_has_is_read_back():
    label_map = LabelMap({"cat": 1, 'a "b"\n': 3, "été\\": 90})
    assert parse_label_map(label_map.as_pbtxt()) == {
        each: name for name, each in label_map.ids.items()
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it has no item"),
        ("item { id: 1 }", "item 1 has no id or no name"),
        ("item { id: 1 name: 'a' } item { name: 'b' }", "item 2 has no id or no name"),
        ("item { id: x name: 'a' }", "item 1 has no id or no name"),
        ("item { id: 1 name: 'a' } item { id: 1 name: 'b' }", "two items have the id 1"),
        ("item { id: 1 name: 'a'", "an item is not closed"),
        ("}", "a bracket is closed that is not open"),
        ("feature { name: 'a' }", "feature is not an item"),
        ("item {\n id: 1\n name: 'a\n}", "line 3 is not protobuf's text form"),
        ("1:cat\n2:dog\n", "it has no item"),
    ],
)
def test_other_texts_are_refused(text, problem):
    with pytest.raises(ValueError, match=f"^{problem}$"):
        parse_label_map(text)
