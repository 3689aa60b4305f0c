"""Recordmill's public names: the pipeline's steps as PTransforms, the functions and records behind them, and readers.

A name is imported when it is first used, so that `import recordmill` loads neither Beam nor TensorFlow. `pipeline`,
`transforms`, `schemas` and `configs` are links to the repository's top-level folders: an installed Recordmill has them
below `recordmill`, where a user's own `transforms.py` cannot hide them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recordmill.schemas.version import VERSION as __version__

if TYPE_CHECKING:
    from recordmill.pipeline.convert import ConversionError, convert
    from recordmill.reading.dataset import Dataset, open_dataset
    from recordmill.reading.examples_as_numpy import examples_as_numpy
    from recordmill.reading.load_error import LoadError
    from recordmill.reading.loading.load import load
    from recordmill.reading.loading.split_info import SplitInfo, describe_split
    from recordmill.reading.verify_dataset import Verification, verify_dataset
    from recordmill.schemas.conventions import Convention, convention_names, load_convention
    from recordmill.schemas.features import (
        Feature,
        describe_features,
        encode_example,
        parse_example,
        tensorflow_features,
    )
    from recordmill.schemas.image_ref import ImageRef
    from recordmill.schemas.label_map import LabelMap
    from recordmill.transforms.build_examples import BuildExamples
    from recordmill.transforms.files.record_bytes import StoredFile
    from recordmill.transforms.files.record_reader import Damage, RecordFile
    from recordmill.transforms.imaging import ImageSettings, PreparedImage, prepare_image
    from recordmill.transforms.list_images import Input, ListImages, ListingSettings
    from recordmill.transforms.read_images import ReadImages
    from recordmill.transforms.reencode_images import ReencodeImages
    from recordmill.transforms.sources.class_folders import ClassFolders
    from recordmill.transforms.sources.filename_labels import FilenameLabels
    from recordmill.transforms.split_examples import SplitExamples

_MODULES = {
    "BuildExamples": "transforms.build_examples",
    "ClassFolders": "transforms.sources.class_folders",
    "Convention": "schemas.conventions",
    "ConversionError": "pipeline.convert",
    "Damage": "transforms.files.record_reader",
    "Dataset": "reading.dataset",
    "Feature": "schemas.features",
    "FilenameLabels": "transforms.sources.filename_labels",
    "ImageRef": "schemas.image_ref",
    "ImageSettings": "transforms.imaging",
    "Input": "transforms.list_images",
    "LabelMap": "schemas.label_map",
    "ListImages": "transforms.list_images",
    "ListingSettings": "transforms.list_images",
    "LoadError": "reading.load_error",
    "PreparedImage": "transforms.imaging",
    "ReadImages": "transforms.read_images",
    "RecordFile": "transforms.files.record_reader",
    "ReencodeImages": "transforms.reencode_images",
    "SplitExamples": "transforms.split_examples",
    "SplitInfo": "reading.loading.split_info",
    "StoredFile": "transforms.files.record_bytes",
    "Verification": "reading.verify_dataset",
    "convention_names": "schemas.conventions",
    "convert": "pipeline.convert",
    "describe_features": "schemas.features",
    "describe_split": "reading.loading.split_info",
    "encode_example": "schemas.features",
    "examples_as_numpy": "reading.examples_as_numpy",
    "load": "reading.loading.load",
    "load_convention": "schemas.conventions",
    "open_dataset": "reading.dataset",
    "parse_example": "schemas.features",
    "prepare_image": "transforms.imaging",
    "tensorflow_features": "schemas.features",
    "verify_dataset": "reading.verify_dataset",
}
"""Where each public name is defined."""

__all__ = [*sorted(_MODULES), "__version__"]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
