"""BuildExamples: images and their labels become serialized Examples of a convention."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsIter, AsList, AsSideInput

from recordmill.schemas.conventions import Convention
from recordmill.schemas.image_ref import Content
from recordmill.schemas.label_map import LabelMap, find_class, rename_classes
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.records.convert_image import (
    ConvertedImage,
    LoadedImage,
    as_bytes,
    build_record,
)
from recordmill.transforms.steps.elements import BuiltExample, EncodedImage
from recordmill.transforms.steps.image_step import ImageStep, ImageWork
from recordmill.transforms.steps.reencode_images import reference_of

ClassesOfLabels = Sequence[str] | LabelMap | AsSideInput
"""Class ids, or a side input with them."""


class BuildExamples(ImageStep):
    """Serializes a PCollection of `EncodedImage`, and gives a PCollection of `BuiltExample`.

    The result's attribute `rejected` is the PCollection of `RejectedImage`.

    Example:
        built = encoded | recordmill.BuildExamples(["cat", "dog"])
    """

    def __init__(
        self,
        labels: ClassesOfLabels,
        convention: str | Convention = "default",
        *,
        settings: DatasetSettings | None = None,
    ) -> None:
        """Sets what Examples are.

        Args:
            labels: the names of the classes in the order of their ids; a `LabelMap`; or a side
                input: `AsSingleton` of one of these, or `AsList` or `AsIter` of a PCollection of
                names, which get their ids in the order of their code points.
            convention: the features of an Example: a name, or a convention of your own.
            settings: further settings, such as `labels`; their convention counts.

        Raises:
            ValueError: there is no such convention.
        """
        super().__init__()
        if settings is None:
            settings = DatasetSettings(source=ClassFolders(), convention=convention)
        layout = ExampleLayout(settings)
        self._labels = labels
        shown = {"convention": layout.convention.title, "labels": _describe(labels)}
        self._work = _BuildExample(layout, isinstance(labels, AsIter | AsList), shown)
        self.shown = shown

    def expand(self, images: beam.PCollection[EncodedImage]) -> beam.PCollection[BuiltExample]:
        """Adds the step to a pipeline."""
        return self.divide(images, "Build", self._work, BuiltExample, self._labels)


def _describe(labels: ClassesOfLabels) -> str:
    if isinstance(labels, AsSideInput):
        return "a side input"
    if isinstance(labels, LabelMap):
        return f"{len(labels.ids)} classes"
    return f"{len(labels)} classes"


class _BuildExample(ImageWork):
    def __init__(self, layout: ExampleLayout, sorts_labels: bool, shown: dict[str, str]) -> None:
        super().__init__("examples_built", "build_microseconds", shown)
        self._layout, self._sorts_labels = layout, sorts_labels
        self._seen: Iterable[str] | LabelMap | None = None
        self._map = LabelMap({})

    def process(self, image: EncodedImage, labels: Iterable[str] | LabelMap) -> Iterator[Any]:
        if labels is not self._seen:  # a side input is the same for a whole window
            self._seen, self._map = labels, self._map_of(labels)
            self._layout = replace(self._layout, attributes=self._map.attributes)
        work: Callable[[], BuiltExample] = partial(self._build, image, self._map)
        yield from self.attempt(image.key, work, image.reference, image.split)

    def _map_of(self, labels: Iterable[str] | LabelMap) -> LabelMap:
        if isinstance(labels, LabelMap):
            return labels
        names, renamed = list(dict.fromkeys(labels)), self._layout.settings.labels.rename
        if self._sorts_labels:
            names = sorted(rename_classes(names, renamed))
        ids = {name: number for number, name in enumerate(names, self._layout.label_offset)}
        return LabelMap(ids, numbers=ids, renamed=renamed)

    def _build(self, image: EncodedImage, label_map: LabelMap) -> BuiltExample:
        layout = self._layout
        if not image.split and not layout.fields.isdisjoint(("split", "split_upper")):
            raise ValueError(
                f"the convention ({layout.convention.title}) stores the split of an image, and "
                f"{image.key} has none yet: set RawImage.split or EncodedImage.split"
            )
        label = image.label
        if label is None:
            label = ""
        name, number = find_class(label, label_map)
        fields = {key: as_bytes(value) for key, value in image.features.items()}
        content = Content(image.data, None, fields=fields)
        ref = reference_of(image)
        loaded = LoadedImage(ref, image.split, content, name, number, "", len(image.data))
        built = build_record(loaded, image.image, {}, layout, label_map)
        assert built.record is not None
        converted: ConvertedImage | None = None
        if image.reference is not None:
            converted = built
        return BuiltExample(
            image.key, image.group, built.record, image.split, image.reference, converted
        )
