"""keras: image and label, as tf.wiki and many tutorials for Keras write them."""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="tf.wiki's and many Keras tutorials'",
    features=(
        Feature("image", "bytes", "encoded", "the encoded image"),
        Feature("label", "int64", "label", "class id, counted from the label map's offset"),
    ),
)
