"""Flags that store the classes of whole images: one or several for each image."""

import shlex

WITH_SEVERAL_LABELS = (
    "{features: {image/encoded: {field: encoded, type: bytes}, image/class/label: {field: labels, "
    "type: int64, shape: [null]}, image/class/text: {field: label_texts, type: bytes, "
    "shape: [null]}}}"
)
"""A convention with several labels, as YAML."""


def offer_classes(one: str, several: str) -> str:
    """Returns the flags that store the classes in a file of annotations.

    Args:
        one: the value of `source.labels` if each image has one class.
        several: the value if an image may have several.
    """
    convention = shlex.quote(f"convention={WITH_SEVERAL_LABELS}")
    return (
        f"add --set source.labels={one} --set convention=default, or --set source.labels={several} "
        f"--set {convention} if an image may have several"
    )
