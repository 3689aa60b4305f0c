"""tf-object-detection: what `create_coco_tf_record.py` of the Object Detection API writes.

The API's `tf_example_decoder.py` reads it. Class ids count from 1, as in `label_map.pbtxt`.
"""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="TensorFlow's Object Detection API",
    features=(
        Feature("image/height", "int64", "height", "rows of pixels", default=1),
        Feature("image/width", "int64", "width", "columns of pixels", default=1),
        Feature("image/filename", "bytes", "filename", "base name of the source file, UTF-8", default=b""),
        Feature("image/source_id", "bytes", "source_id", "the source's id of the image, or its file name", default=b""),
        Feature("image/key/sha256", "bytes", "sha256", "SHA-256 of image/encoded, in hex", default=b""),
        Feature("image/encoded", "bytes", "encoded", "the encoded image"),
        Feature("image/format", "bytes", "format", "its format: jpeg or png", default=b"jpeg"),
        Feature("image/object/bbox/xmin", "float", "xmin", "left sides, 0 to 1", many=True),
        Feature("image/object/bbox/xmax", "float", "xmax", "right sides, 0 to 1", many=True),
        Feature("image/object/bbox/ymin", "float", "ymin", "upper sides, 0 to 1", many=True),
        Feature("image/object/bbox/ymax", "float", "ymax", "lower sides, 0 to 1", many=True),
        Feature("image/object/class/text", "bytes", "box_label_texts", "class names of the boxes, UTF-8", many=True),
        Feature("image/object/class/label", "int64", "box_labels", "class ids of the boxes, from 1", many=True),
        Feature("image/object/is_crowd", "int64", "is_crowd", "1 for a group of objects", many=True),
        Feature("image/object/area", "float", "area", "area in pixels", many=True),
    ),
    label_offset=1,
    label_map_file="label_map.pbtxt",
)
