"""TensorFlow's tutorial "TFRecord and tf.train.Example": height, width, depth, label, image_raw."""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="TensorFlow's TFRecord tutorial",
    features=(
        Feature("height", "int64", "height", "rows of pixels"),
        Feature("width", "int64", "width", "columns of pixels"),
        Feature("depth", "int64", "channels", "channels of a pixel: 3, or 1 for grayscale"),
        Feature("label", "int64", "label", "class id, counted from the label map's offset"),
        Feature("image_raw", "bytes", "encoded", "the encoded image (the name is the tutorial's)"),
    ),
)
