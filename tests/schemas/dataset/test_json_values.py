import pickle
import tracemalloc
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
import pytest

from recordmill.schemas.dataset.json_values import (
    MisfitError,
    as_json,
    as_kept_json,
    differences,
    from_json,
    hash_json,
    to_json,
)


@dataclass(frozen=True)
class Inner:
    number: int
    word: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    renamed: str = field(metadata={"key": "class"})
    inner: Inner
    several: tuple[Inner, ...]
    by_name: Mapping[str, Mapping[str, int]]
    counted: Counter[str]
    nullable: Inner | None
    optional: Inner | None = None
    anything: Any = None
    yes: bool = False
    share: float = 0.5


STORED = {
    "class": "cat",
    "inner": {"number": 1, "word": "b"},
    "several": [{"number": 2, "word": "a"}, {"number": 3, "word": "a"}],
    "by_name": {"x": {"y": 4}},
    "counted": {"z": 5},
    "nullable": None,
    "anything": {"deep": [None]},
    "yes": True,
    "share": 0.25,
}
OBJECT = Outer(
    "cat",
    Inner(1, "b"),
    (Inner(2), Inner(3)),
    {"x": {"y": 4}},
    Counter(z=5),
    None,
    None,
    {"deep": [None]},
    True,
    0.25,
)


def test_a_dataclass_is_read_and_written_as_it_is_stored():
    assert from_json(Outer, {**STORED, "unknown": 1}) == OBJECT
    assert type(from_json(Outer, STORED).counted) is Counter
    assert to_json(OBJECT) == STORED
    assert list(to_json(OBJECT)) == list(STORED)


def test_a_whole_number_is_a_number():
    """Other programs write 1.0 as 1."""
    read = from_json(Outer, {**STORED, "share": 1})
    assert (read.share, type(read.share)) == (1.0, float)


def test_what_may_be_absent_is_left_out_and_what_may_be_null_is_written():
    assert from_json(
        Outer, {**STORED, "optional": {"number": 5}, "nullable": {"number": 6}}
    ).optional == Inner(5)
    assert "optional" not in to_json(OBJECT)
    assert to_json(OBJECT)["nullable"] is None


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"class": 1}, "class is not of type str"),
        ({"inner": []}, "inner is not of type dict"),
        ({"inner": {}}, "inner.number is missing"),
        ({"inner": {"number": True}}, "inner.number is not of type int"),
        ({"inner": {"number": 1, "word": "c"}}, "inner.word is not one of a, b"),
        ({"several": {}}, "several is not of type list"),
        ({"several": [{"number": 1}, 3]}, "several[1] is not of type dict"),
        ({"several": [{"number": 1}, {"number": 1.5}]}, "several[1].number is not of type int"),
        ({"by_name": {"x": {"y": "4"}}}, "by_name.x.y is not of type int"),
        ({"counted": {"z": None}}, "counted.z is not of type int"),
        ({"nullable": 3}, "nullable is not of type dict"),
        ({"optional": None}, "optional is not of type dict"),
        ({"yes": 1}, "yes is not of type bool"),
        ({"share": True}, "share is not of type float"),
        ({"share": "1"}, "share is not of type float"),
    ],
)
def test_what_does_not_fit_is_named_with_its_path(changed, problem):
    with pytest.raises(MisfitError) as caught:
        from_json(Outer, {**STORED, **changed})
    assert str(caught.value) == problem
    with pytest.raises(MisfitError) as caught:
        from_json(Outer, {**STORED, **changed}, "a.b")
    assert str(caught.value) == f"a.b.{problem}"
    # It can come from another process.
    assert str(pickle.loads(pickle.dumps(caught.value))) == f"a.b.{problem}"


@pytest.mark.parametrize("value", [None, 1, "a", []])
def test_what_is_not_an_object_is_named(value):
    with pytest.raises(MisfitError, match=r"^it is not of type dict$"):
        from_json(Outer, value)


def test_a_digest_does_not_depend_on_the_order_of_keys():
    assert (
        hash_json({"a": 1, "b": [2]})
        == hash_json({"b": [2], "a": 1})
        != hash_json({"a": 1, "b": [3]})
    )
    assert as_json({"a": 1}) == b'{\n  "a": 1\n}\n'


def test_differences_name_the_keys_path():
    old = {"a": 1, "b": {"c": [1], "d": 2}, "gone": 3, "listing": {"digest": "x", "references": 1}}
    new = {"a": 1, "b": {"c": [2], "d": 2}, "new": 4, "listing": {"digest": "y", "references": 1}}
    assert differences(old, new) == [
        "b.c: [1] -> [2]",
        "gone: 3 -> not set",
        "other images",
        "new: not set -> 4",
    ]
    assert differences(old, old) == []


def test_changed_references_are_described():
    old, new = (
        {"listing": {"digest": digest, "references": count}}
        for digest, count in (("a", 1219), ("b", 80))
    )
    assert differences(old, new) == ["other images", "80 of them instead of 1,219"]


def test_json_that_is_kept_takes_the_memory_of_its_length():
    tracemalloc.start()
    try:
        kept = [
            as_kept_json({"b": number, "a": None}, orjson.OPT_SORT_KEYS) for number in range(99)
        ]
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept[7] == b'{"a":null,"b":7}'
    assert taken < 99 * 200
