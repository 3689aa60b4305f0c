"""The definition of a convention, and how to find one by name."""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import Literal

from recordmill.schemas.dataset.file_names import SHARD_NAME
from recordmill.schemas.features import Feature


@dataclass(frozen=True)
class Convention:
    """A layout of images as `tf.train.Example`s.

    Attributes:
        title: where the convention comes from, in a few words.
        features: the features, in the order in which they are documented.
        shard_name: pattern of a file's name; see `schemas.dataset.file_names.PLACEHOLDERS`.
        split_words: names of splits in file names, if they differ from the split's name.
        label_offset: added to every label id unless the user says otherwise; 1 if readers keep 0 for background.
        label_lines: the form of the lines in `labels.txt`: `id:name`, or the `name` alone, in the order of the ids.
        label_map_file: the name of a label map in the Object Detection API's form; empty: none is written.
        compression: compression of the files unless the user says otherwise.
        stores: how images are stored unless the user says otherwise: `jpeg`, or `raw` pixels.
        format_names: the text of `image/format` for a format; others are lower-cased.
    """

    title: str
    features: tuple[Feature, ...]
    shard_name: str = SHARD_NAME
    split_words: Mapping[str, str] = field(default_factory=dict)
    label_offset: int = 0
    label_lines: Literal["id:name", "name"] = "id:name"
    label_map_file: str = ""
    compression: Literal["none", "gzip"] = "none"
    stores: Literal["jpeg", "raw"] = "jpeg"
    format_names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def fields(self) -> Mapping[str, Feature]:
        """The features by the fields of a record that they are filled from."""
        return {feature.field: feature for feature in self.features}

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the features."""
        return frozenset(feature.key for feature in self.features)


@cache
def convention_names() -> tuple[str, ...]:
    """The names of all conventions, sorted."""
    package = import_module("recordmill.schemas.conventions")
    modules = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name for name in modules if name != "convention"))


@cache
def load_convention(name: str) -> Convention:
    """The convention of that name.

    Raises:
        ValueError: there is none (the message lists those that exist), or its module does not define one.
    """
    if name not in convention_names():
        raise ValueError(f"there is no convention {name!r}: choose one of {', '.join(convention_names())}")
    convention = getattr(import_module(f"recordmill.schemas.conventions.{name}"), "CONVENTION", None)
    if not isinstance(convention, Convention):
        raise ValueError(f"the convention {name} cannot be used: write CONVENTION = Convention(...) in {name}.py")
    return convention
