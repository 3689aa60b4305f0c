"""Recordmill's public names: pipeline steps as PTransforms, their functions and record types, and dataset readers.

A name is imported when it is first used, so `import recordmill` loads neither Beam nor TensorFlow. `pipeline`,
`transforms`, `schemas` and `configs` are links to the repository's top-level folders: an installed Recordmill has them
below `recordmill`, where a user's own `transforms.py` cannot shadow them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recordmill.schemas.version import VERSION as __version__

if TYPE_CHECKING:
    from recordmill.imaging import ImageSettings, PreparedImage, prepare_image
    from recordmill.pipeline.convert import convert
    from recordmill.reading.dataset import Dataset, SplitInfo, describe_split, open_dataset
    from recordmill.reading.epoch_order import EpochOrder
    from recordmill.reading.example import examples_as_numpy
    from recordmill.reading.load import load
    from recordmill.reading.records import OpenedDataset, Records, open
    from recordmill.reading.torch_stream import TorchStream
    from recordmill.reading.verify_dataset import Verification, verify_dataset
    from recordmill.schemas.conventions import Convention, convention_names, load_convention
    from recordmill.schemas.errors import ConversionError, LoadError, RecordmillError
    from recordmill.schemas.features import (
        Feature,
        describe_features,
        encode_example,
        parse_example,
        tensorflow_features,
    )
    from recordmill.schemas.image_ref import ImageRef
    from recordmill.schemas.label_map import LabelMap
    from recordmill.schemas.rejection import Reject
    from recordmill.schemas.settings.dataset import DatasetSettings, ShardSettings
    from recordmill.schemas.settings.source import Input, ListingSettings
    from recordmill.storage.tfrecord_file import Damage, RecordFile, StoredFile
    from recordmill.transforms.compose import (
        BuildExamples,
        ReadImages,
        ReencodeImages,
        SplitExamples,
        convert_with_beam,
    )
    from recordmill.transforms.inputs.sources.class_folders import ClassFolders
    from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
    from recordmill.transforms.list_images import ListReferences
    from recordmill.transforms.planning.plan import Plan

_NAMES = {
    "imaging": ("ImageSettings", "PreparedImage", "prepare_image"),
    "pipeline.convert": ("convert",),
    "reading.dataset": ("Dataset", "SplitInfo", "describe_split", "open_dataset"),
    "reading.epoch_order": ("EpochOrder",),
    "reading.example": ("examples_as_numpy",),
    "reading.load": ("load",),
    "reading.records": ("OpenedDataset", "Records", "open"),
    "reading.torch_stream": ("TorchStream",),
    "reading.verify_dataset": ("Verification", "verify_dataset"),
    "schemas.conventions": ("Convention", "convention_names", "load_convention"),
    "schemas.errors": ("ConversionError", "LoadError", "RecordmillError"),
    "schemas.features": ("Feature", "describe_features", "encode_example", "parse_example", "tensorflow_features"),
    "schemas.image_ref": ("ImageRef",),
    "schemas.label_map": ("LabelMap",),
    "schemas.rejection": ("Reject",),
    "schemas.settings.dataset": ("DatasetSettings", "ShardSettings"),
    "schemas.settings.source": ("Input", "ListingSettings"),
    "storage.tfrecord_file": ("Damage", "RecordFile", "StoredFile"),
    "transforms.compose": ("BuildExamples", "ReadImages", "ReencodeImages", "SplitExamples", "convert_with_beam"),
    "transforms.inputs.sources.class_folders": ("ClassFolders",),
    "transforms.inputs.sources.filename_labels": ("FilenameLabels",),
    "transforms.list_images": ("ListReferences",),
    "transforms.planning.plan": ("Plan",),
}
"""The public names, by the module that defines them."""

_MODULES = {name: module for module, names in _NAMES.items() for name in names}
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
