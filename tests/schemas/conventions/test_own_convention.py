import pytest

from recordmill.schemas.conventions import Convention, ConventionFeature
from recordmill.schemas.features import Feature, encode_example, parse_example


def test_a_mapping_is_a_convention():
    own = Convention(
        features={
            "img": ConventionFeature(field="encoded", type="bytes", meaning="the image"),
            "lbl": ConventionFeature(field="label", type="int64", default=-1),
            "name": ConventionFeature(field="label_text", type="bytes", default="ü"),
            "ver": ConventionFeature(value=1, type="float"),
            "tags": ConventionFeature(field="label_texts", type="bytes", shape=(None,)),
        },
        label_offset=1,
        label_lines="name",
        format_names={"JPEG": "jpg"},
    )
    assert own.title == "the user's own"
    assert own.example_features == (
        Feature("img", "bytes", "encoded", "the image"),
        Feature("lbl", "int64", "label", "the field `label`", default=-1),
        Feature("name", "bytes", "label_text", "the field `label_text`", default="ü".encode()),
        Feature("ver", "float", "", "always 1", constant=1.0),
        Feature("tags", "bytes", "label_texts", "the field `label_texts`", many=True),
    )
    assert own.fields["label_texts"] == own.example_features[-1]


def test_a_value_stands_in_every_example():
    features = Convention(
        features={"v": ConventionFeature(value="x", type="bytes")}
    ).example_features
    assert parse_example(features, encode_example(features, {})) == {"v": b"x"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"type": "bytes"}, "field or value: give one of the two"),
        ({"type": "bytes", "field": "a", "value": "b"}, "field or value: give one of the two"),
        (
            {"type": "int64", "field": "a", "shape": (None,), "default": 1},
            "shape \\[null\\] allows neither default",
        ),
        ({"type": "int64", "field": "a", "default": "b"}, "default: bytes b'b' is not an integer"),
        ({"type": "float", "value": "b"}, "value: bytes b'b' is no"),
    ],
)
def test_an_invalid_feature_of_a_convention_is_refused(wrong, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        ConventionFeature(**wrong)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (
            "jpeg/{split}/{index:02d}.tfrec",
            "gives the name 'jpeg/s/00.tfrec': names of visible files",
        ),
        (
            "{split}-{shard}.tfrec",
            r"is not a valid pattern \('shard'\): it may use {name}, {split}, ",
        ),
        ("", "gives the name ''"),
    ],
)
def test_a_pattern_that_can_name_no_files_is_refused(pattern, why):
    feature = ConventionFeature(field="encoded", type="bytes")
    with pytest.raises(ValueError, match=rf"^convention\.shard_name '.*' {why}"):
        Convention(features={"img": feature}, shard_name=pattern)
