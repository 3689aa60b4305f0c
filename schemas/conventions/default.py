"""Recordmill's default: slim's keys plus class text, file name and the digest of the encoded bytes.

A superset: readers written for slim's `image_to_tfexample`, and most readers written for Inception's
`build_image_data.py`, parse it unchanged. `image/format` says `jpg` and `png`, as slim does.
"""

from recordmill.schemas.conventions import Convention, Feature

CONVENTION = Convention(
    title="slim's keys plus class text, file name and digest",
    features=(
        Feature("image/encoded", "bytes", "encoded", "the encoded image"),
        Feature("image/format", "bytes", "format", "its format: jpg, png, ...", default=b"jpg"),
        Feature("image/height", "int64", "height", "rows of pixels", default=0),
        Feature("image/width", "int64", "width", "columns of pixels", default=0),
        Feature("image/class/label", "int64", "label", "class id, counted from the label map's offset", default=-1),
        Feature("image/class/text", "bytes", "label_text", "class name, UTF-8", default=b""),
        Feature("image/filename", "bytes", "filename", "base name of the source file, UTF-8", default=b""),
        Feature("image/key/sha256", "bytes", "sha256", "SHA-256 of image/encoded, in hex", default=b""),
    ),
    format_names={"JPEG": "jpg"},
)
