import json
import math
import pickle
import struct
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from enum import Enum, IntEnum, IntFlag
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.annotations.kinds import ANNOTATION_FIELDS, KINDS, RECORD_FIELDS
from recordmill.schemas.conventions import convention_names, load_convention
from recordmill.schemas.dataset.json_values import MisfitError, from_json, to_json
from recordmill.schemas.features import (
    COERCE,
    IMAGE_FIELDS,
    INT64_MAX,
    INT64_MIN,
    PIXEL_FIELDS,
    REFERENCE_FIELDS,
    Example,
    ExampleEncoder,
    Feature,
    FeatureEntry,
    FeatureValueError,
    coerce_bytes,
    coerce_float,
    coerce_int64,
    describe_features,
    encode_example,
    feature_schema,
    parse_example,
)
from scripts.readme import tables


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
def test_an_example_survives_encoding(case):
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
        some = {
            field: value
            for index, (field, value) in enumerate(record.items())
            if index not in absent
        }
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
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
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
        (
            IMAGE,
            "text",
            "feature image: str 'text' is not bytes: encode text as UTF-8 where it is read",
        ),
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
        (
            LABEL,
            1,
            Feature("label", "bytes", "", ""),
            "feature label is of type int64_list, not bytes_list",
        ),
        (
            BOXES,
            [1.0, 2.0],
            Feature("boxes", "float", "", ""),
            "feature boxes holds 2 values where one is expected",
        ),
        (
            BOXES,
            [],
            Feature("boxes", "float", "", ""),
            "feature boxes holds 0 values where one is expected",
        ),
    ],
)
def test_parsing_a_value_of_another_type_or_shape_raises(written, value, read, message):
    record = encode_example([written], {written.field: value})
    with pytest.raises(FeatureValueError) as caught:
        parse_example([read], record)
    assert str(caught.value) == message


def test_the_schema_is_sorted_by_key():
    assert to_json(feature_schema([LABEL, BOXES])) == {
        "boxes": {"kind": "float", "shape": [None], "field": "boxes", "meaning": "edges"},
        "label": {
            "kind": "int64",
            "shape": [],
            "field": "label",
            "meaning": "class id",
            "default": -1,
        },
    }
    assert list(feature_schema([LABEL, BOXES])) == ["boxes", "label"]


@pytest.mark.parametrize("name", convention_names())
def test_the_schema_gives_the_features_back_through_json(name):
    features = (
        *load_convention(name).example_features,
        BOXES,
        Feature("share", "float", "share", "", default=0.5),
    )
    schema = read_schema(json.loads(json.dumps(to_json(feature_schema(features)))))
    stated = [
        replace(feature, constant=None)
        for feature in sorted(features, key=lambda feature: feature.key)
    ]
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
    odd = Feature("a|b", "int64", "a", "0 for x|y")
    assert describe_features([odd]).endswith(r"| `a\|b` | int64 | 0 for x\|y |")


FLOAT32_MAX = float(np.finfo(np.float32).max)


class Color(Enum):
    RED = 1


class Text(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 7


class Flag(IntFlag):
    A = 4


TAKEN = [
    ("bytes", b"ab", b"ab"),
    ("bytes", b"", b""),
    ("bytes", bytearray(b"ab"), b"ab"),
    ("bytes", memoryview(b"abcd")[::2], b"ac"),
    ("bytes", np.bytes_(b"ab"), b"ab"),
    ("float", 1.5, 1.5),
    ("float", np.float16(1.5), 1.5),
    ("float", np.float32(1.5), 1.5),
    ("float", np.float64(1.5), 1.5),
    ("float", FLOAT32_MAX, FLOAT32_MAX),
    ("float", float("inf"), float("inf")),
    ("float", float("-inf"), float("-inf")),
    ("int64", True, 1),
    ("int64", False, 0),
    ("int64", np.bool_(True), 1),
    ("int64", -3, -3),
    ("int64", Color.RED, 1),
    ("int64", Level.HIGH, 7),
    ("int64", Flag.A, 4),
    ("int64", np.int8(-3), -3),
    ("int64", np.int64(INT64_MIN), INT64_MIN),
    ("int64", np.uint8(255), 255),
    ("int64", np.uint64(INT64_MAX), INT64_MAX),
    ("int64", INT64_MAX, INT64_MAX),
    ("int64", INT64_MIN, INT64_MIN),
]

REFUSED = [
    ("bytes", "text", "str 'text' is not bytes: encode text as UTF-8 where it is read"),
    ("bytes", np.str_("text"), "is not bytes: encode text"),
    ("bytes", 1, "int 1 is not bytes"),
    ("bytes", 1.0, "float 1.0 is not bytes"),
    ("bytes", None, "NoneType None is not bytes"),
    ("bytes", [1, 2], "list [1, 2] is not bytes"),
    ("float", True, "bool True is not a float"),
    ("float", np.bool_(True), "is not a float"),
    ("float", 1, "int 1 is not a float"),
    ("float", np.int32(1), "is not a float"),
    ("float", "1.0", "str '1.0' is not a float"),
    ("float", b"1.0", "bytes b'1.0' is not a float"),
    ("float", 1 + 0j, "complex (1+0j) is not a float"),
    ("float", 1e39, "float 1e+39 is outside the range of a 32-bit float"),
    ("float", -1e39, "float -1e+39 is outside the range of a 32-bit float"),
    ("float", np.nextafter(FLOAT32_MAX, np.inf), "outside the range of a 32-bit float"),
    ("int64", 1.0, "float 1.0 is not an integer"),
    ("int64", np.float32(1), "is not an integer"),
    ("int64", "1", "str '1' is not an integer"),
    ("int64", b"1", "bytes b'1' is not an integer"),
    ("int64", None, "NoneType None is not an integer"),
    ("int64", Text.RED, "str 'red' is not an integer"),
    ("int64", np.array([1, 2]), "is not an integer"),
    ("int64", 2**63, "9223372036854775808 is outside the range of a 64-bit signed integer"),
    (
        "int64",
        np.uint64(2**63),
        "9223372036854775808 is outside the range of a 64-bit signed integer",
    ),
    ("int64", -(2**63) - 1, "-9223372036854775809 is outside the range of a 64-bit signed integer"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), TAKEN, ids=map(str, range(len(TAKEN))))
def test_seed_3_a_value_of_the_kind_is_taken_as_pythons_own_type(kind, value, expected):
    coerced = COERCE[kind](value)
    assert coerced == expected
    assert type(coerced) is type(expected)


@pytest.mark.parametrize(("kind", "value", "message"), REFUSED, ids=map(str, range(len(REFUSED))))
def test_seed_3_a_value_of_another_kind_raises_and_is_named(kind, value, message):
    with pytest.raises(FeatureValueError) as caught:
        COERCE[kind](value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nan_stays_nan():
    assert np.isnan(coerce_float(float("nan")))


def test_a_long_value_is_cut_in_the_message():
    with pytest.raises(FeatureValueError) as caught:
        coerce_bytes("x" * 10_000)
    assert len(str(caught.value)) < 200


@given(st.integers(-(2**70), 2**70))
def test_integers_pass_unchanged_or_raise(value):
    if INT64_MIN <= value <= INT64_MAX:
        assert coerce_int64(value) == value
    else:
        with pytest.raises(FeatureValueError, match="outside the range"):
            coerce_int64(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_doubles_stay_finite_as_32_bits_or_raise(value):
    try:
        coerced = coerce_float(value)
    except FeatureValueError:
        assert abs(value) > FLOAT32_MAX
    else:
        assert np.isfinite(np.float32(coerced))


def test_a_tensor_of_one_string_is_bytes():
    """As `_bytes_feature` of TensorFlow's tutorial takes it; TensorFlow need not be there."""

    class Tensor:
        def __init__(self, value):
            self.value = value

        def numpy(self):
            return self.value

    assert coerce_bytes(Tensor(b"cat")) == b"cat"
    for value in (np.array([b"cat"], object), "cat", 1.0):
        with pytest.raises(FeatureValueError, match="is not bytes"):
            coerce_bytes(Tensor(value))


def test_every_field_is_of_one_group():
    annotated = [kind.fields.keys() for kind in KINDS.values()]
    own = [PIXEL_FIELDS, REFERENCE_FIELDS, frozenset({"sha256", "file_sha256"})]
    assert sum(map(len, [*annotated, *own])) == len(RECORD_FIELDS)
    assert frozenset().union(*annotated, *own) == set(RECORD_FIELDS)
    assert frozenset().union(*annotated) == ANNOTATION_FIELDS
    assert frozenset().union(*own) == IMAGE_FIELDS


@pytest.mark.parametrize("name", convention_names())
def test_every_conventions_features_are_of_the_kinds_of_their_fields(name):
    for feature in load_convention(name).example_features:
        if feature.field in RECORD_FIELDS:
            field = RECORD_FIELDS[feature.field]
            assert (feature.kind, feature.many) == (field.kind, field.many), feature.key


def test_the_table_has_every_field_with_its_type():
    rows = tables()["fields"].splitlines()
    assert len(rows) == len(RECORD_FIELDS) + 2
    assert "| `box_labels` | int64[] | class ids of the boxes |" in rows
    assert (
        rows[2]
        == "| `encoded` | bytes | the encoded image, or the pixels with `images.store: raw` |"
    )


SCALARS = Example()
SCALARS.features.feature["b"].bytes_list.value.append(b"x")
SCALARS.features.feature["f"].float_list.value.append(1.0)
SCALARS.features.feature["i"].int64_list.value.extend([1, -1])


def test_the_wire_format_is_tensorflows():
    expected = (
        b"\x0a\x31"
        b"\x0a\x0a\x0a\x01b\x12\x05\x0a\x03\x0a\x01x"
        b"\x0a\x0d\x0a\x01f\x12\x08\x12\x06\x0a\x04\x00\x00\x80\x3f"
        b"\x0a\x14\x0a\x01i\x12\x0f\x1a\x0d\x0a\x0b\x01" + b"\xff" * 9 + b"\x01"
    )
    assert SCALARS.SerializeToString(deterministic=True) == expected


def test_bytes_parse_back():
    assert Example.FromString(SCALARS.SerializeToString()) == SCALARS


def test_a_feature_is_of_one_kind():
    feature = Example().features.feature["a"]
    assert feature.WhichOneof("kind") is None
    feature.bytes_list.value.append(b"x")
    feature.int64_list.value.append(1)
    assert feature.WhichOneof("kind") == "int64_list"
    assert not feature.bytes_list.value


def test_the_messages_are_called_as_tensorflows():
    assert Example.DESCRIPTOR.full_name == "tensorflow.Example"
    assert (
        Example.DESCRIPTOR.fields_by_name["features"].message_type.full_name
        == "tensorflow.Features"
    )
