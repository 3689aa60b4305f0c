"""inception: what `build_image_data.py` of TensorFlow's models/research/inception writes.

Class ids count from 1: its readers keep 0 for background. `image/colorspace` and `image/channels` are constants there
too, whatever the image is: its readers decode to three channels.
"""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="Inception's build_image_data.py",
    features=(
        Feature("image/height", "int64", "height", "rows of pixels", default=0),
        Feature("image/width", "int64", "width", "columns of pixels", default=0),
        Feature("image/colorspace", "bytes", "", "always RGB", default=b"", constant=b"RGB"),
        Feature("image/channels", "int64", "", "always 3", default=3, constant=3),
        Feature("image/class/label", "int64", "label", "class id, from 1; 0 is background", default=-1),
        Feature("image/class/text", "bytes", "label_text", "class name, UTF-8", default=b""),
        Feature("image/format", "bytes", "format", "its format: JPEG", default=b""),
        Feature("image/filename", "bytes", "filename", "base name of the source file, UTF-8", default=b""),
        Feature("image/encoded", "bytes", "encoded", "the encoded image"),
    ),
    shard_name="{split}-{index:05d}-of-{count:05d}",
    label_offset=1,
    format_names={"JPEG": "JPEG", "PNG": "PNG"},
    label_lines="name",
)
