from types import SimpleNamespace

import pytest
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st
from make_settings import make_settings

from recordmill.schemas.features import Feature
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.transforms.publishing.companions.describe_dataset import describe_schema


def test_a_feature_of_one_value_has_an_empty_shape(stage, say):
    text = say(describe_schema, stage(make_settings(convention="tutorial")))[
        "schema.pbtxt"
    ].decode()
    blocks = text.split("feature {\n")[1:]
    assert len(blocks) == 5
    assert (
        blocks[3]
        == """\
  name: "label"
  type: INT
  presence {
    min_fraction: 1.0
    min_count: 1
  }
  shape {
  }
  int_domain {
    min: 0
    max: 2
    is_categorical: true
  }
  annotation {
    comment: "class id, counted from the label map\\'s offset"
  }
}
""".replace("\\'", "'")
    )


def parse(text: bytes):
    schema_pb2 = pytest.importorskip("tensorflow_metadata.proto.v0.schema_pb2")
    return text_format.Parse(text.decode("ascii"), schema_pb2.Schema()), schema_pb2


def test_tensorflow_metadata_reads_it(stage, say):
    schema, schema_pb2 = parse(say(describe_schema, stage())["schema.pbtxt"])
    kinds = {feature.name: schema_pb2.FeatureType.Name(feature.type) for feature in schema.feature}
    assert kinds == {
        "image/encoded": "BYTES",
        "image/format": "BYTES",
        "image/height": "INT",
        "image/width": "INT",
        "image/class/label": "INT",
        "image/class/text": "BYTES",
        "image/filename": "BYTES",
        "image/key/sha256": "BYTES",
    }
    assert all(feature.HasField("shape") and not feature.shape.dim for feature in schema.feature)
    assert all(feature.presence.min_fraction == 1 for feature in schema.feature)


def test_what_may_be_missing_or_many_has_no_shape(stage, say, monkeypatch):
    listed = Feature("xmin", "float", "xmin", "left", many=True)
    monkeypatch.setattr(
        ExampleLayout, "features", (*ExampleLayout(make_settings()).features, listed)
    )
    schema, _ = parse(say(describe_schema, stage(unlabeled=True))["schema.pbtxt"])
    loose = {
        each.name: (each.value_count.min, each.value_count.max)
        for each in schema.feature
        if not each.HasField("shape")
    }
    assert loose == {"image/class/label": (1, 1), "image/class/text": (1, 1), "xmin": (0, 0)}


@given(st.text(min_size=1))
def test_any_key_comes_back(key):
    dataset = SimpleNamespace(
        layout=SimpleNamespace(features=[Feature(key, "bytes", "x", key)]),
        sure_features=(),
        marker=SimpleNamespace(labels={}),
    )
    ((_, (text,)),) = describe_schema(dataset)
    schema, _ = parse(text)
    assert (schema.feature[0].name, schema.feature[0].annotation.comment) == (key, [key])
