"""What kind of value each field of a record is, for conventions that users state."""

from collections.abc import Mapping

from schemas.features import Kind

_BYTES = "encoded sha256 file_sha256 format pixels_base64 label_text filename key source_id split split_upper"
_LISTS: Mapping[Kind, str] = {
    "bytes": "label_texts box_label_texts",
    "int64": "labels box_labels is_crowd",
    "float": "xmin xmax ymin ymax bbox area",
}

FIELD_KINDS: Mapping[str, tuple[Kind, bool]] = {
    **dict.fromkeys(_BYTES.split(), ("bytes", False)),
    **dict.fromkeys(("height", "width", "channels", "label"), ("int64", False)),
    **{name: (kind, True) for kind, names in _LISTS.items() for name in names.split()},
}
"""Kind and whether it is a list, of every field that docs/conventions.md lists."""
