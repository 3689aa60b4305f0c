"""Example conventions: the features of an Example, and the names of files.

There is one YAML file in this folder per convention. The file's name is the name that users write
(`convention: tutorial`); nothing else lists it. Users write the same form under `convention:`, so a
shipped file can be copied as the start of one's own.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from typing import ClassVar, Literal

from recordmill.schemas.attribute_words import WordIds, describe_numbers
from recordmill.schemas.dataset.file_names import SHARD_NAME, check_pattern
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import (
    ATTRIBUTE,
    EACH_ATTRIBUTE,
    Feature,
    FeatureKind,
    FeatureValueError,
    coerce_setting,
)
from recordmill.schemas.setting_fields import ClassId, FeatureShape


@dataclass(frozen=True, slots=True, kw_only=True)
class ConventionFeature:
    """One feature: the YAML keys below its name.

    Attributes:
        type: `bytes`, `float` or `int64`, like its field.
        field: where the value comes from, e.g. `encoded`. If an image has no such value, the
            feature is omitted.
        shape: `[]` for one value, `[null]` for any number, like its field.
        default: the value that readers use if the feature is absent, from the dataset's metadata.
            Without one, the feature must be present.
        value: a constant, in place of a field.
        meaning: a description in one line.
    """

    type: FeatureKind
    field: str = ""
    shape: FeatureShape = ()
    default: str | float | int | None = None
    value: str | float | int | None = None
    meaning: str = ""

    def __post_init__(self) -> None:
        """Raises SettingError if the feature is impossible."""
        if bool(self.field) == (self.value is not None):
            raise SettingError("field", "or value: give one of the two")
        if self.shape and (self.default is not None or self.value is not None):
            raise SettingError(
                "shape", "[null] allows neither default nor value: a missing list is empty"
            )
        for key in ("default", "value"):
            try:
                coerce_setting(getattr(self, key), self.type)
            except FeatureValueError as error:
                raise SettingError(key, f": {error}") from None

    def as_feature(self, key: str) -> Feature:
        """Returns the feature under its name."""
        meaning = self.meaning or (
            f"the field `{self.field}`" if self.field else f"always {self.value}"
        )
        default, constant = (
            coerce_setting(value, self.type) for value in (self.default, self.value)
        )
        return Feature(
            key,
            self.type,
            self.field,
            meaning,
            many=bool(self.shape),
            default=default,
            constant=constant,
        )


@dataclass(frozen=True, kw_only=True)
class Convention:
    """A layout of images as `tf.train.Example`s: the YAML keys under `convention:`.

    Attributes:
        features: the features by their names in the Example, in the documented order.
        title: where the convention comes from.
        shard_name: pattern of the files' names, unless `shards.name` gives another.
        split_words: names of splits in file names, e.g. `{train: training}`.
        label_offset: the id of the first class; 1 if readers keep 0 for background.
        label_lines: the lines in `labels.txt`: `id:name`, or the `name` alone, in the order of the
            ids.
        label_map_file: `label_map.pbtxt`: also write the Object Detection API's label map.
        compression: compression of the files: `none` or `gzip`.
        stores: how images are stored: `jpeg`, or `raw` pixels.
        format_names: the text of the field `format`, e.g. `{JPEG: jpg}`; others are lower-cased.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid"}

    features: Mapping[str, ConventionFeature]
    title: str = "the user's own"
    shard_name: str = SHARD_NAME
    split_words: Mapping[str, str] = field(default_factory=dict)
    label_offset: ClassId = 0
    label_lines: Literal["id:name", "name"] = "id:name"
    label_map_file: Literal["", "label_map.pbtxt"] = ""
    compression: Literal["none", "gzip"] = "none"
    stores: Literal["jpeg", "raw"] = "jpeg"
    format_names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError if it cannot name files."""
        check_pattern(self.shard_name, "convention.shard_name")

    @cached_property
    def example_features(self) -> tuple[Feature, ...]:
        """The features of an Example, without those of attributes of objects."""
        return tuple(
            each.as_feature(key)
            for key, each in self.features.items()
            if not each.field.startswith(ATTRIBUTE)
        )

    @cached_property
    def attribute_features(self) -> tuple[Feature, ...]:
        """The features of attributes of objects; `*` stands for the name of each."""
        return tuple(
            each.as_feature(key)
            for key, each in self.features.items()
            if each.field.startswith(ATTRIBUTE)
        )

    def name_attributes(
        self, attributes: Mapping[str, WordIds], taken: Collection[str]
    ) -> Iterator[Feature]:
        """Yields the features of attributes of objects.

        Args:
            attributes: the ids of the words of each, by its name.
            taken: the keys of other features.
        """
        places = [each for each in self.attribute_features if each.key not in taken]
        named = {each.field for each in places}
        for name, words in attributes.items():
            own = f"{ATTRIBUTE}{name}"
            wanted = own if own in named else EACH_ATTRIBUTE
            for each in places:
                if each.field == wanted:
                    meaning = describe_numbers(each.meaning.replace("*", name), words)
                    key = each.key.replace("*", name)
                    yield replace(each, key=key, field=own, meaning=meaning)

    def has_place(self, attribute: str, taken: Collection[str]) -> bool:
        """Returns whether an attribute of objects has a feature with a key that is not taken."""
        fields = {each.field for each in self.attribute_features if each.key not in taken}
        return not fields.isdisjoint((f"{ATTRIBUTE}{attribute}", EACH_ATTRIBUTE))

    @cached_property
    def fields(self) -> Mapping[str, Feature]:
        """The features by the fields of a record that they are filled from."""
        return {feature.field: feature for feature in self.example_features}

    def name_format(self, image_format: str) -> str:
        """Returns the text of the field `format` for an image format, such as `JPEG`."""
        return self.format_names.get(image_format, image_format.lower())


@cache
def convention_names() -> tuple[str, ...]:
    """Returns the names of all shipped conventions, sorted: those of the YAML files here.

    Example:
        features = {
            name: recordmill.load_convention(name).example_features
            for name in recordmill.convention_names()
        }
    """
    files = (file.name for file in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in files if name.endswith(".yaml")))


@cache
def load_convention(name: str) -> Convention:
    """Returns the shipped convention of that name.

    Example:
        convention = recordmill.load_convention("slim")
        print([feature.key for feature in convention.example_features])

    Raises:
        ValueError: there is none (the message lists those that exist).
    """
    # Imported here: it takes 0.05 s, and most readers of records need no convention.
    from pydantic import TypeAdapter

    from recordmill.schemas.yaml_core import load_yaml

    if name not in convention_names():
        raise ValueError(
            f"there is no convention {name!r}: choose one of {', '.join(convention_names())}"
        )
    text = (resources.files(__name__) / f"{name}.yaml").read_text(encoding="utf-8")
    return TypeAdapter(Convention).validate_python(load_yaml(text)["convention"])


def is_shipped(feature: Feature) -> bool:
    """Returns whether a shipped convention fills this feature from the same field.

    The user may have copied it, and Examples lack it if the source gives no such values.
    """
    return (feature.key, feature.field, feature.kind, feature.many) in _list_shipped()


@cache
def _list_shipped() -> frozenset[tuple[str, str, FeatureKind, bool]]:
    """Returns key, field, type and whether there are many values, of each shipped feature."""
    return frozenset(
        (key, each.field, each.type, bool(each.shape))
        for convention in map(load_convention, convention_names())
        for key, each in convention.features.items()
    )
