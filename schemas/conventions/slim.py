"""slim: what `image_to_tfexample` of TensorFlow's models/research/slim writes; class ids count from 0."""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="TF-Slim's image_to_tfexample",
    features=(
        Feature("image/encoded", "bytes", "encoded", "the encoded image"),
        Feature("image/format", "bytes", "format", "its format: jpg or png", default=b"jpg"),
        Feature("image/class/label", "int64", "label", "class id, from 0", default=-1),
        Feature("image/height", "int64", "height", "rows of pixels", default=0),
        Feature("image/width", "int64", "width", "columns of pixels", default=0),
    ),
    shard_name="{name}_{split}_{index:05d}-of-{count:05d}.tfrecord",
    format_names={"JPEG": "jpg"},
)
