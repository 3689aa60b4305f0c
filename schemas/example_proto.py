"""`tf.train.Example`'s messages, without TensorFlow.

`import tensorflow` costs seconds and half a gigabyte in every process; its Example messages are twenty lines of
schema. They are declared here from tensorflow/core/example/{feature,example}.proto, in a descriptor pool of their own,
so that they never clash with TensorFlow's when a user imports both. The wire format is the same: a test holds that the
bytes equal TensorFlow's.
"""

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_OPTIONAL = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
_REPEATED = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
_BYTES = descriptor_pb2.FieldDescriptorProto.TYPE_BYTES
_FLOAT = descriptor_pb2.FieldDescriptorProto.TYPE_FLOAT
_INT64 = descriptor_pb2.FieldDescriptorProto.TYPE_INT64
_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
_MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE


def _declare_messages() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="recordmill/example.proto", package="tensorflow", syntax="proto3")
    for name, field_type in (("BytesList", _BYTES), ("FloatList", _FLOAT), ("Int64List", _INT64)):
        values = file.message_type.add(name=name).field.add(name="value", number=1, label=_REPEATED, type=field_type)
        if field_type != _BYTES:
            values.options.packed = True

    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("bytes", "float", "int64"), start=1):
        feature.field.add(
            name=f"{name}_list",
            number=number,
            label=_OPTIONAL,
            type=_MESSAGE,
            type_name=f".tensorflow.{name.capitalize()}List",
            oneof_index=0,
        )

    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=_OPTIONAL, type=_STRING)
    entry.field.add(name="value", number=2, label=_OPTIONAL, type=_MESSAGE, type_name=".tensorflow.Feature")
    features.field.add(
        name="feature", number=1, label=_REPEATED, type=_MESSAGE, type_name=".tensorflow.Features.FeatureEntry"
    )

    example = file.message_type.add(name="Example")
    example.field.add(name="features", number=1, label=_OPTIONAL, type=_MESSAGE, type_name=".tensorflow.Features")
    return file


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_declare_messages())

Example: Any = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("tensorflow.Example"))
"""The message class of `tf.train.Example`: `Example.FromString(record)`, `example.features.feature["label"]`."""
