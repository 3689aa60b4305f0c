"""What a dataset's metadata say of its records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recordmill.reading.example import Profile
from recordmill.schemas.dataset.marker import ImageRecipe
from recordmill.schemas.features import Feature

if TYPE_CHECKING:
    from recordmill.reading.dataset import Dataset

_OPTIONAL = frozenset({"label", "label_text"})  # of an image without a label
_LABEL_FIELDS = frozenset({"label", "labels", "box_labels"})
_NAMED = {"label_text": "label", "label_texts": "labels", "box_label_texts": "box_labels"}  # fields: names, their ids
_LABELS = ("image/class/label", "label", "train/label")
_IMAGES = ("image/encoded", "image", "image_raw", "train/image")


@dataclass(frozen=True, slots=True)
class Expectations:
    """The properties of every record of a dataset.

    Attributes:
        features: by key; empty if unknown.
        label_ids: the valid ids of labels; empty if unknown.
        class_ids: ids by class name, from Recordmill's marker; empty for other datasets.
        name_keys: the features with class names, each with the feature that has their ids, or the empty string.
        label_keys: the features with labels; the first that a record has counts.
        image_keys: the features with encoded images; the first that a record has counts. Empty if images are stored
            as raw pixels.
        images_are_stated: whether the image feature is known from the convention, not from its usual name.
        max_pixels: Recordmill's images have no more.
    """

    features: Mapping[str, Feature]
    label_ids: frozenset[int]
    class_ids: Mapping[str, int]
    name_keys: tuple[tuple[str, str], ...]
    label_keys: tuple[str, ...]
    image_keys: tuple[str, ...]
    images_are_stated: bool
    max_pixels: int

    def judge(self, profile: Profile) -> str:
        """The problem of records with this profile; the empty string if there is none."""
        if not self.features:
            return ""
        there = {key: (kind, count) for key, kind, count in profile}
        for key, feature in self.features.items():
            if key not in there:
                required = feature.field and feature.default is None and not feature.many
                if required and feature.field not in _OPTIONAL:
                    return f"feature {key} is missing"
                continue
            kind, count = there[key]
            if kind != feature.kind:
                return f"feature {key} is {kind or 'empty'} and should be {feature.kind}"
            if not feature.many and count != 1:
                return f"feature {key} holds {count} values and should hold one"
        if unknown := sorted(there.keys() - self.features.keys()):
            return f"feature {unknown[0]} is not one of the dataset's"
        return ""


def expect(dataset: "Dataset") -> Expectations:
    """The expectations of a dataset."""
    from recordmill.imaging import ImageSettings  # not needed in workers, which receive expectations

    features = {feature.key: feature for feature in dataset.features}
    labels = [key for key, feature in features.items() if feature.field in _LABEL_FIELDS]
    images = [key for key, feature in features.items() if feature.field == "encoded"]
    keys = {feature.field: key for key, feature in features.items()}
    usual = tuple(key for key in _LABELS if not features or key in features)
    settings = dataset.marker.plan.settings.images if dataset.marker else ImageRecipe()
    return Expectations(
        features=features,
        label_ids=frozenset(dataset.labels.values()),
        class_ids=dict(dataset.labels) if dataset.kind == "recordmill" else {},
        name_keys=tuple((keys[names], keys.get(ids, "")) for names, ids in _NAMED.items() if names in keys),
        label_keys=tuple(labels) or usual,
        image_keys=() if settings.store == "raw" else tuple(images) or _IMAGES,
        images_are_stated=bool(images),
        max_pixels=max(ImageSettings().max_pixels, settings.max_pixels),
    )
