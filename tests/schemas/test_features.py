import json
import math
import pickle
import struct
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.coercion import INT64_MAX, INT64_MIN, FeatureValueError
from recordmill.schemas.conventions import convention_names, load_convention
from recordmill.schemas.dataset.json_values import MisfitError, from_json, to_json
from recordmill.schemas.example_proto import Example
from recordmill.schemas.features import (
    ExampleEncoder,
    Feature,
    FeatureEntry,
    describe_features,
    encode_example,
    feature_schema,
    parse_example,
)


def read_schema(schema):
    return from_json(Mapping[str, FeatureEntry], schema)


VALUES = {
    "bytes": st.binary(max_size=20),
    "float": st.floats(width=32, allow_nan=False),
    "int64": st.integers(INT64_MIN, INT64_MAX),
}
LABEL = Feature("label", "int64", "label", "class id", default=-1)
IMAGE = Feature("image", "bytes", "encoded", "the image")
BOXES = Feature("boxes", "float", "boxes", "edges", many=True)


@st.composite
def features_and_records(draw):
    features, record = [], {}
    for key in draw(st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=8)):
        kind = draw(st.sampled_from(sorted(VALUES)))
        many = draw(st.booleans())
        features.append(Feature(key, kind, f"field {key}", "", many))
        record[f"field {key}"] = draw(st.lists(VALUES[kind], max_size=4) if many else VALUES[kind])
    return features, record


@given(features_and_records())
def test_what_is_encoded_parses_back(case):
    features, record = case
    parsed = parse_example(features, encode_example(features, record))
    assert parsed == {feature.key: record[feature.field] for feature in features}


@given(features_and_records(), st.randoms(use_true_random=False))
def test_the_order_of_features_changes_no_byte(case, random):
    features, record = case
    shuffled = random.sample(features, len(features))
    assert encode_example(shuffled, record) == encode_example(features, record)


@given(features_and_records(), st.lists(st.sets(st.integers(0, 7)), max_size=6))
def test_an_encoder_gives_each_record_the_bytes_that_a_new_one_gives_it(case, left_out):
    features, record = case
    encoder = pickle.loads(pickle.dumps(ExampleEncoder(features)))
    for absent in [set(), *left_out, set()]:
        some = {field: value for index, (field, value) in enumerate(record.items()) if index not in absent}
        assert encoder.encode(some) == encode_example(features, some)


def test_a_record_that_does_not_fit_leaves_no_values():
    encoder = ExampleEncoder([LABEL, IMAGE, BOXES])
    good = {"label": 1, "encoded": b"x", "boxes": [0.5]}
    before = encoder.encode(good)
    with pytest.raises(FeatureValueError, match=r"^feature boxes: "):
        encoder.encode({"label": 7, "encoded": b"yy", "boxes": [1.0, "text"]})
    assert encoder.encode(good) == before


def test_threads_share_an_encoder():
    encoder = ExampleEncoder([LABEL, IMAGE])
    records = [{"label": number, "encoded": bytes([number % 256]) * 100} for number in range(2000)]
    with ThreadPoolExecutor(4) as threads:
        encoded = list(threads.map(encoder.encode, records))
    assert encoded == [encode_example([LABEL, IMAGE], record) for record in records]


def test_an_encoder_keeps_none_of_what_it_encoded():
    script = (
        "import resource, sys\n"
        "from recordmill.schemas.features import ExampleEncoder, Feature\n"
        "encoder = ExampleEncoder([Feature('image', 'bytes', 'encoded', '')])\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "for number in range(2000):\n"
        "    assert len(encoder.encode({'encoded': bytes([number % 256]) * 100_000})) > 100_000\n"
        "sys.stdout.write(str(peak() - before))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 20_000  # KB, of 200,000


def test_every_insertion_order_of_five_features_gives_one_string():
    features = [Feature(f"key/{index}", "int64", f"{index}", "") for index in range(5)]
    record = {f"{index}": index for index in range(5)}
    assert len({encode_example(order, record) for order in permutations(features)}) == 1


def test_floats_are_rounded_to_32_bits():
    feature = Feature("f", "float", "f", "")
    value = parse_example([feature], encode_example([feature], {"f": 0.1}))["f"]
    assert value == struct.unpack("<f", struct.pack("<f", 0.1))[0] != 0.1


def test_nan_survives():
    feature = Feature("f", "float", "f", "")
    assert math.isnan(parse_example([feature], encode_example([feature], {"f": math.nan}))["f"])


def test_a_field_that_is_absent_or_none_is_left_out():
    record = encode_example([LABEL, IMAGE, BOXES], {"encoded": b"x", "label": None, "unused": 1})
    assert set(Example.FromString(record).features.feature) == {"image"}


def test_an_empty_list_is_written_as_an_empty_list():
    entry = Example.FromString(encode_example([BOXES], {"boxes": []})).features.feature["boxes"]
    assert entry.WhichOneof("kind") == "float_list"


@pytest.mark.parametrize(
    ("feature", "value", "message"),
    [
        (LABEL, 1.0, "feature label: float 1.0 is not an integer"),
        (LABEL, (1, 2), "feature label: tuple (1, 2) is not an integer"),
        (LABEL, [], "feature label: list [] is not an integer"),
        (IMAGE, "text", "feature image: text 'text' is not bytes: encode it as UTF-8 where it is read"),
        (BOXES, [0.5, 1], "feature boxes: int 1 is not a float"),
        (BOXES, "ab", "feature boxes: holds many values, but 'ab' is not a list"),
        (BOXES, 0.5, "feature boxes: holds many values, but 0.5 is not a list"),
    ],
)
def test_a_value_that_does_not_fit_raises_with_the_features_name(feature, value, message):
    with pytest.raises(FeatureValueError) as caught:
        encode_example([feature], {feature.field: value})
    assert str(caught.value) == message


def test_defaults_stand_in_for_what_is_absent():
    assert parse_example([LABEL, BOXES], encode_example([], {})) == {"label": -1, "boxes": []}


def test_keys_that_no_feature_names_are_left_out():
    record = encode_example([LABEL, IMAGE], {"label": 1, "encoded": b"x"})
    assert parse_example([LABEL], record) == {"label": 1}


@pytest.mark.parametrize(
    ("written", "value", "read", "message"),
    [
        (LABEL, 1, IMAGE, "feature image is missing and has no default"),
        (LABEL, 1, Feature("label", "bytes", "", ""), "feature label is a int64_list, not a bytes_list"),
        (BOXES, [1.0, 2.0], Feature("boxes", "float", "", ""), "feature boxes holds 2 values where one is expected"),
        (BOXES, [], Feature("boxes", "float", "", ""), "feature boxes holds 0 values where one is expected"),
    ],
)
def test_what_does_not_fit_when_parsed_raises(written, value, read, message):
    record = encode_example([written], {written.field: value})
    with pytest.raises(FeatureValueError) as caught:
        parse_example([read], record)
    assert str(caught.value) == message


def test_the_schema_is_sorted_by_key():
    assert to_json(feature_schema([LABEL, BOXES])) == {
        "boxes": {"kind": "float", "shape": [None], "field": "boxes", "meaning": "edges"},
        "label": {"kind": "int64", "shape": [], "field": "label", "meaning": "class id", "default": -1},
    }
    assert list(feature_schema([LABEL, BOXES])) == ["boxes", "label"]


@pytest.mark.parametrize("name", convention_names())
def test_the_schema_gives_the_features_back_through_json(name):
    features = (*load_convention(name).features, BOXES, Feature("share", "float", "share", "", default=0.5))
    schema = read_schema(json.loads(json.dumps(to_json(feature_schema(features)))))
    stated = [replace(feature, constant=None) for feature in sorted(features, key=lambda feature: feature.key)]
    assert [entry.feature(key) for key, entry in schema.items()] == stated


def test_a_schema_without_fields_is_rejected():
    with pytest.raises(MisfitError, match="field"):
        read_schema({"label": {"kind": "int64", "shape": [], "meaning": "class id"}})


def test_the_description_is_a_markdown_table_in_the_features_order():
    assert describe_features([LABEL, BOXES]).splitlines() == [
        "| key | type | meaning |",
        "|---|---|---|",
        "| `label` | int64 | class id |",
        "| `boxes` | float[] | edges |",
    ]
