"""ReencodeImages: checks images and, if needed, re-encodes them, as the main job does."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import apache_beam as beam
from pydantic import TypeAdapter

from recordmill.imaging import ImageSettings
from recordmill.schemas.image_ref import Content, ImageRef
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.records.convert_image import LoadedImage, prepare_loaded
from recordmill.transforms.steps.elements import EncodedImage, RawImage
from recordmill.transforms.steps.image_step import ImageStep, ImageWork


class ReencodeImages(ImageStep):
    """Prepares a PCollection of `RawImage`, and gives a PCollection of `EncodedImage`.

    JPEGs that need no change are copied byte for byte; all other images become JPEGs, unless the
    settings say otherwise. The result's attribute `rejected` is the PCollection of `RejectedImage`.

    Example:
        encoded = read | recordmill.ReencodeImages(recordmill.ImageSettings(quality=90))
    """

    def __init__(self, settings: ImageSettings | DatasetSettings | None = None) -> None:
        """Sets how images are prepared.

        Args:
            settings: settings of images; or those of a dataset, whose filters (`keep`) and computed
                features are applied, too. None: the defaults.

        Raises:
            ValueError: a value is not allowed.
        """
        super().__init__()
        if isinstance(settings, DatasetSettings):
            whole = settings
        else:
            whole = DatasetSettings(source=ClassFolders(), images=settings or ImageSettings())
        TypeAdapter(ImageSettings).validate_python(asdict(whole.images))
        if whole.images.reencode == "auto":
            convention = ExampleLayout(whole).convention
            whole = replace(whole, images=whole.images.complete(convention))
        images = whole.images
        self.shown = {name: str(value) for name, value in asdict(images).items()}
        self._work = _ReencodeImage(whole, self.shown)

    def expand(self, images: beam.PCollection[RawImage]) -> beam.PCollection[EncodedImage]:
        """Adds the step to a pipeline."""
        return self.divide(images, "Reencode", self._work, EncodedImage)


class _ReencodeImage(ImageWork):
    def __init__(self, settings: DatasetSettings, shown: dict[str, str]) -> None:
        super().__init__("images_encoded", "reencode_microseconds", shown)
        self._layout = ExampleLayout(settings)

    def process(self, image: RawImage) -> Iterator[Any]:
        yield from self.attempt(
            image.key, partial(self._reencode, image), image.reference, image.split
        )

    def _reencode(self, image: RawImage) -> EncodedImage:
        settings, stored = self._layout.settings, image.pixels
        content = Content(image.data, image.data)
        if not settings.holds_images:
            content.image = None
        elif stored is not None:
            content.image = stored
        loaded = LoadedImage(reference_of(image), "", content, None, None, "", len(image.data))
        prepared, computed = prepare_loaded(loaded, self._layout)
        if prepared is not None and prepared.raster is not None:
            prepared = replace(prepared, raster=None)  # pixels need not travel on
        features = {**image.features, **computed}
        return EncodedImage(
            image.key,
            prepared,
            image.data,
            image.label,
            features,
            image.group,
            image.split,
            image.annotations,
            image.reference,
            image.files,
        )


def reference_of(image: RawImage | EncodedImage) -> ImageRef:
    """Returns the reference of an image; made from its key and its annotations if it has none."""
    if image.reference is not None:
        return image.reference
    return ImageRef(
        image.key,
        image.key,
        len(image.data),
        annotations=image.annotations,
        files=image.files,
    )
