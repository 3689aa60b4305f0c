"""TensorFlow Transform's reader makes of schema.pbtxt what parses the dataset."""

import pytest

REASON = "needs an environment of its own: make test-interop"
# The product's environment has the other two.
pytest.importorskip("tensorflow_datasets", reason=REASON)
schema_utils = pytest.importorskip("tensorflow_transform.tf_metadata.schema_utils", reason=REASON)
tf = pytest.importorskip("tensorflow", reason=REASON)


def test_its_specification_parses_every_record(dataset):
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    schema = text_format.Parse(
        (dataset.folder / "schema.pbtxt").read_text(encoding="ascii"), schema_pb2.Schema()
    )
    spec = schema_utils.schema_as_feature_spec(schema).feature_spec
    assert set(spec) == set(dataset.marker["features"])
    for key, feature in dataset.marker["features"].items():
        dtype = {"bytes": tf.string, "int64": tf.int64, "float": tf.float32}[feature["kind"]]
        assert spec[key] == (
            tf.io.VarLenFeature(dtype) if feature["shape"] else tf.io.FixedLenFeature([], dtype)
        )
    for split, described in dataset.marker["splits"].items():
        records = tf.data.TFRecordDataset(dataset.files(split)).batch(1000)
        parsed = [tf.io.parse_example(batch, spec) for batch in records]
        assert (
            sum(int(tf.shape(batch[key])[0]) for batch in parsed for key in [next(iter(spec))])
            == described["records"]
        )
        if "label" in dataset.keys:
            labels = [
                label for batch in parsed for label in batch[dataset.keys["label"]].numpy().tolist()
            ]
            assert labels == [row["label"] for row in dataset.rows(split)]
