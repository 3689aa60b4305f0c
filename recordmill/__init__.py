"""Recordmill's public names: the pipeline's steps as PTransforms, their functions and records, and readers.

A name is imported when it is first used, so that `import recordmill` loads neither Beam nor TensorFlow. `pipeline`,
`transforms`, `schemas` and `configs` are links to the repository's top-level folders: an installed Recordmill has them
below `recordmill`, where a user's own `transforms.py` cannot shadow them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recordmill.schemas.version import VERSION as __version__

if TYPE_CHECKING:
    from recordmill.imaging import ImageSettings, PreparedImage, prepare_image
    from recordmill.pipeline.convert import ConversionError, convert
    from recordmill.reading.dataset import Dataset, open_dataset
    from recordmill.reading.load.examples_as_numpy import examples_as_numpy
    from recordmill.reading.load.load import load
    from recordmill.reading.load.split_info import SplitInfo, describe_split
    from recordmill.reading.load_error import LoadError
    from recordmill.reading.verify.verify_dataset import Verification, verify_dataset
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
    from recordmill.schemas.settings.listing import Input, ListingSettings
    from recordmill.storage.record_bytes import StoredFile
    from recordmill.storage.record_reader import Damage, RecordFile
    from recordmill.transforms.compose import BuildExamples, ReadImages, ReencodeImages, SplitExamples
    from recordmill.transforms.inputs.sources.class_folders import ClassFolders
    from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
    from recordmill.transforms.list_images import ListImages

_MODULES = {
    "BuildExamples": "transforms.compose",
    "ClassFolders": "transforms.inputs.sources.class_folders",
    "Convention": "schemas.conventions",
    "ConversionError": "pipeline.convert",
    "Damage": "storage.record_reader",
    "Dataset": "reading.dataset",
    "Feature": "schemas.features",
    "FilenameLabels": "transforms.inputs.sources.filename_labels",
    "ImageRef": "schemas.image_ref",
    "ImageSettings": "imaging",
    "Input": "schemas.settings.listing",
    "LabelMap": "schemas.label_map",
    "ListImages": "transforms.list_images",
    "ListingSettings": "schemas.settings.listing",
    "LoadError": "reading.load_error",
    "PreparedImage": "imaging",
    "ReadImages": "transforms.compose",
    "RecordFile": "storage.record_reader",
    "ReencodeImages": "transforms.compose",
    "SplitExamples": "transforms.compose",
    "SplitInfo": "reading.load.split_info",
    "StoredFile": "storage.record_bytes",
    "Verification": "reading.verify.verify_dataset",
    "convention_names": "schemas.conventions",
    "convert": "pipeline.convert",
    "describe_features": "schemas.features",
    "describe_split": "reading.load.split_info",
    "encode_example": "schemas.features",
    "examples_as_numpy": "reading.load.examples_as_numpy",
    "load": "reading.load.load",
    "load_convention": "schemas.conventions",
    "open_dataset": "reading.dataset",
    "parse_example": "schemas.features",
    "prepare_image": "imaging",
    "tensorflow_features": "schemas.features",
    "verify_dataset": "reading.verify.verify_dataset",
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
