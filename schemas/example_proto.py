"""`tf.train.Example`'s messages, without TensorFlow.

`import tensorflow` costs seconds and half a gigabyte in every process; its Example messages are twenty lines of
schema. They are declared here from tensorflow/core/example/{feature,example}.proto, in a separate descriptor pool,
so that they never clash with TensorFlow's when a user imports both. The wire format is the same: a test checks that
the bytes equal TensorFlow's.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_KINDS = {"Bytes": _Field.TYPE_BYTES, "Float": _Field.TYPE_FLOAT, "Int64": _Field.TYPE_INT64}


def _declare_messages() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="recordmill/example.proto", package="tensorflow", syntax="proto3")
    feature, features, example = (file.message_type.add(name=name) for name in ("Feature", "Features", "Example"))
    feature.oneof_decl.add(name="kind")
    for number, (name, kind) in enumerate(_KINDS.items(), start=1):
        values = file.message_type.add(name=f"{name}List").field.add(name="value", number=1, type=kind)
        values.label = _Field.LABEL_REPEATED
        if kind != _Field.TYPE_BYTES:
            values.options.packed = True
        _add_message(feature, f"{name.lower()}_list", number, f"{name}List").oneof_index = 0
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_STRING)
    _add_message(entry, "value", 2, "Feature")
    _add_message(features, "feature", 1, "Features.FeatureEntry").label = _Field.LABEL_REPEATED
    _add_message(example, "features", 1, "Features")
    return file


def _add_message(message: Any, name: str, number: int, kind: str) -> descriptor_pb2.FieldDescriptorProto:
    field: descriptor_pb2.FieldDescriptorProto = message.field.add(
        name=name, number=number, label=_Field.LABEL_OPTIONAL, type=_Field.TYPE_MESSAGE, type_name=f".tensorflow.{kind}"
    )
    return field


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_declare_messages())

Example: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("tensorflow.Example"))
"""The message class of `tf.train.Example`: `Example.FromString(record)`, `example.features.feature["label"]`."""
