"""What a dataset's Examples and files look like, according to its settings."""

from dataclasses import dataclass
from functools import cached_property

from recordmill.schemas.conventions import Convention, load_convention
from recordmill.schemas.dataset.file_names import fill_pattern
from recordmill.schemas.features import BOX_FIELDS, STORED_IMAGE, ExampleEncoder, Feature
from recordmill.schemas.settings.custom_convention import CustomConvention
from recordmill.schemas.settings.dataset import DatasetSettings


@dataclass(frozen=True)
class ExampleLayout:
    """The features of a dataset's Examples, their encoder, and the names of its files.

    Attributes:
        settings: what the dataset is.
    """

    settings: DatasetSettings

    @cached_property
    def convention(self) -> Convention:
        """The convention of the settings."""
        convention = self.settings.convention
        return convention.as_convention() if isinstance(convention, CustomConvention) else load_convention(convention)

    @property
    def label_offset(self) -> int:
        """The id of the first class: the user's, or the convention's own."""
        offset = self.settings.labels.offset
        return self.convention.label_offset if offset is None else offset

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The features of an Example: the convention's, the source's own, then what functions compute."""
        filled = self.convention.fields
        computed = (each.as_feature(name) for name, each in self.settings.features.items() if name not in filled)
        added = (feature for feature in self.settings.source.features() if feature.field not in filled)
        return (*self.convention.features, *added, *computed)

    @cached_property
    def fields(self) -> frozenset[str]:
        """The fields of a record that its features are filled from."""
        return frozenset(feature.field for feature in self.features)

    @property
    def stores_boxes(self) -> bool:
        """Whether Examples have a place for boxes."""
        return not BOX_FIELDS.isdisjoint(self.fields)

    @cached_property
    def optional_fields(self) -> tuple[tuple[str, str], ...]:
        """Key and field of each single-valued feature that an Example may lack; constants are in all of them."""
        features = (each for each in self.features if each.constant is None)
        return tuple((each.key, each.field) for each in features if each.default is not None and not each.many)

    @cached_property
    def encoder(self) -> ExampleEncoder:
        """The encoder of the dataset's records."""
        return ExampleEncoder(self.features)

    @cached_property
    def stores_images(self) -> bool:
        """Whether Examples have a place for the image."""
        return not self.fields.isdisjoint(STORED_IMAGE)

    @cached_property
    def needs_pixels(self) -> bool:
        """Whether a function or a filter takes images as they are stored."""
        taken = {each.signature.of for each in self.settings.features.values()}
        return self.settings.keep.needs_pixels or "image" in taken

    @property
    def shard_name(self) -> str:
        """The pattern of the files' names: the user's, or the convention's."""
        return self.settings.shards.name or self.convention.shard_name

    def file_name(self, split: str, index: int, count: int, records: int) -> str:
        """The name of a published shard, one of `count` in its split, with this number of records."""
        word = split if self.settings.shards.name else self.convention.split_words.get(split, split)
        own = self.settings.name or "dataset"  # the output folder's name is filled in before there are files
        name = fill_pattern(self.shard_name, name=own, split=word, index=index, count=count, records=records)
        return f"{name}.gz" if self.settings.compression == "gzip" and not name.endswith(".gz") else name


def explain_unstored_boxes(what: str) -> str:
    """The error of a run that would lose boxes because no convention was named."""
    return (
        f"convention is not set: {what}, and the default convention stores none: "
        "set convention=tf_object_detection or convention=tfds; convention=default leaves the boxes out"
    )
