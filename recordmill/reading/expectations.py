"""What a dataset's records are expected to hold, as far as somebody has stated it."""

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
    """What holds for every record of a dataset.

    Attributes:
        features: by key; empty where nothing is stated.
        label_ids: the ids that a label may be; empty where they are not known.
        class_ids: the ids by class name, as the marker of one of ours gives them; empty for other datasets.
        name_keys: the features that hold class names, each with the one that holds their ids, or the empty string.
        label_keys: the features that hold them; the first that a record has counts.
        image_keys: the features that hold encoded images; the first that a record has counts. Empty where images are
            stored as raw pixels.
        images_are_stated: whether the image feature is known from the convention, not from its usual name.
        max_pixels: images of ours have no more.
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
        """What is wrong with a record of this profile; the empty string if nothing is."""
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
    """What is expected of a dataset's records."""
    from recordmill.imaging import ImageSettings  # not needed where expectations only arrive (shard_workers)

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
