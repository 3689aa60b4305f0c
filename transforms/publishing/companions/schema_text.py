"""`schema.pbtxt`: the features as a `tensorflow_metadata.proto.v0.Schema` in text format, for TFX and TFT.

`tensorflow_transform.tf_metadata.schema_utils.schema_as_feature_spec` makes of it what `tf.io.parse_example` takes: an
empty shape gives `FixedLenFeature([])`, none `VarLenFeature`. Written as text, so that nothing needs to be imported.
"""

from collections.abc import Iterable, Iterator, Mapping

from recordmill.schemas.features import Feature
from recordmill.schemas.label_map import quoted
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset

_TYPES = {"bytes": "BYTES", "float": "FLOAT", "int64": "INT"}


def describe_schema(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """`schema.pbtxt`, of any dataset."""
    sure = {feature.key for feature in dataset.sure_features}
    blocks = [
        _feature_block(feature, feature.key in sure, dataset.marker.labels) for feature in dataset.layout.features
    ]
    yield "schema.pbtxt", ["".join(blocks).encode()]


def _feature_block(feature: Feature, is_sure: bool, labels: Mapping[str, int]) -> str:
    lines = [f"name: {quoted(feature.key)}", f"type: {_TYPES[feature.kind]}"]
    if feature.many:
        lines += ["value_count {", "  min: 0", "}"]
    elif is_sure:
        lines += ["presence {", "  min_fraction: 1.0", "  min_count: 1", "}", "shape {", "}"]
    else:
        lines += ["value_count {", "  min: 1", "  max: 1", "}"]
    if feature.field == "label" and labels:
        low, high = min(labels.values()), max(labels.values())
        lines += ["int_domain {", f"  min: {low}", f"  max: {high}", "  is_categorical: true", "}"]
    lines += ["annotation {", f"  comment: {quoted(feature.meaning)}", "}"]
    return "feature {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"
