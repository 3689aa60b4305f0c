"""image-tfrecord-builder: class name and JPEG under `train/` keys, in test files too; shards counted from 1."""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="image-tfrecord-builder",
    features=(
        Feature("train/label", "bytes", "label_text", "class name, UTF-8"),
        Feature("train/image", "bytes", "encoded", "the encoded image"),
    ),
    shard_name="{name}_{split}_{number:02d}of{count:02d}.tfrecord",
    split_words={"train": "training"},
)
