"""What contradicts the rest of the settings in features that functions compute."""

from collections.abc import Mapping

from recordmill.schemas.conventions import Convention
from recordmill.schemas.record_fields import IMAGE_FIELDS
from recordmill.transforms.inputs.sources import Source
from recordmill.transforms.records.features.settings import FeatureFunction


def check_functions(
    functions: Mapping[str, FeatureFunction], layout: Convention, source: Source, holds_images: bool
) -> None:
    """Raises ValueError, beginning with the YAML key, where a function cannot fill its feature, or one has none.

    Args:
        functions: by feature.
        layout: the convention; a function may fill one of its fields.
        source: what is read.
        holds_images: whether Examples have images.
    """
    if functions and source.contents == "rows":
        raise ValueError("features: functions take images or files, and the source holds neither")
    fields = {feature.field: feature for feature in layout.features}
    taken = {feature.key for feature in (*layout.features, *source.features())}
    for name, each in functions.items():
        feature, asked = each.as_feature(name), fields.get(name)
        if each.takes == "image" and not holds_images:
            remedy = "choose file_sha256" if each.is_built_in else "set its of: file"
            raise ValueError(f"features.{name}: {each.function} takes images, and decode is none: {remedy}")
        if name in IMAGE_FIELDS or (asked is None and name in taken):
            raise ValueError(f"features.{name}: the name is taken: choose another, such as x/{name}")
        if asked is not None and (asked.kind, asked.many) != (feature.kind, feature.many):
            wanted = f"{asked.kind} of shape {'[null]' if asked.many else '[]'}"
            raise ValueError(f"features.{name}: the convention ({layout.title}) wants {wanted}")
    given = {*functions, *(feature.field for feature in source.features())}
    if "feature" in fields and "feature" not in given:
        raise ValueError(f"features.feature is missing: the convention ({layout.title}) stores what it computes")
