"""Values arrive as they were written, here and in other readers of YAML 1.2."""

import math

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from yaml_texts import TRAPS, read_with_ruamel, texts

from recordmill.schemas.yaml_core import load_yaml, write_yaml, write_yaml_line

numbers = st.one_of(
    st.integers(-(2**63), 2**63), st.floats(), st.sampled_from([1e16, 1e-7, 5e-324])
)
scalars = st.one_of(texts, numbers, st.booleans(), st.none())
values = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(texts, below, max_size=3),
    max_leaves=6,
)


def same(left, right):
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        both_nan = math.isnan(left) and isinstance(right, float) and math.isnan(right)
        return both_nan or (isinstance(right, float) and left == right)
    kind = type(left)
    return left == right and isinstance(right, kind) and isinstance(right, bool) == (kind is bool)


@given(values)
@example(TRAPS)
def test_any_value_that_is_written_and_read_back_is_itself(value):
    for text in (write_yaml({"key": value}), write_yaml_line({"key": value})):
        assert same({"key": value}, load_yaml(text)), text
        assert same({"key": value}, read_with_ruamel(text)), text


@given(values)
@example(TRAPS)
def test_readers_of_yaml_1_1_read_the_same_text(value):
    def texts_of(each):
        if isinstance(each, dict):
            return [text for pair in each.items() for part in pair for text in texts_of(part)]
        if isinstance(each, list):
            return [text for part in each for text in texts_of(part)]
        return [each] if isinstance(each, str) else []

    assert texts_of(yaml.safe_load(write_yaml([value]))) == texts_of([value])
