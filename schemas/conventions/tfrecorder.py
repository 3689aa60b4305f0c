"""tfrecorder: what TensorFlow Recorder (google/tensorflow-recorder) writes for images.

Pixels in base64: 17 to 37 times the size of a JPEG. Its files are gzipped.
"""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="TensorFlow Recorder",
    features=(
        Feature("image", "bytes", "pixels_base64", "url-safe base64 of the pixels, height x width x channels bytes"),
        Feature("image_name", "bytes", "filename", "base name of the source file, UTF-8"),
        Feature("image_height", "int64", "height", "rows of pixels"),
        Feature("image_width", "int64", "width", "columns of pixels"),
        Feature("image_channels", "int64", "channels", "channels of a pixel: 3, or 1 for grayscale"),
        Feature("split", "bytes", "split_upper", "TRAIN, VALIDATION, TEST: the split in upper case"),
        Feature("label", "int64", "label", "class id, counted from the label map's offset"),
    ),
    compression="gzip",
    stores="raw",
)
