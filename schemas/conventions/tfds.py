"""tfds: TensorFlow Datasets' image features; `objects/` contain boxes if the source has any."""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="TensorFlow Datasets",
    features=(
        Feature("image", "bytes", "encoded", "the encoded image"),
        Feature("image/filename", "bytes", "filename", "base name of the source file, UTF-8", default=b""),
        Feature("label", "int64", "label", "class id, from 0", default=-1),
        Feature("objects/bbox", "float", "bbox", "boxes: ymin, xmin, ymax, xmax of each, 0 to 1", many=True),
        Feature("objects/label", "int64", "box_labels", "class ids of the boxes, from 0", many=True),
    ),
    shard_name="{name}-{split}.tfrecord-{index:05d}-of-{count:05d}",
)
