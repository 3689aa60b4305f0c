"""Recordmill's public names: pipeline steps as PTransforms, their functions and record types, and dataset readers.

A name is imported when it is first used, so `import recordmill` loads neither Beam nor TensorFlow. `pipeline`,
`transforms`, `schemas` and `configs` are links to the repository's top-level folders: an installed Recordmill has them
below `recordmill`, where a user's own `transforms.py` cannot shadow them.
"""

import ast
from importlib import import_module
from pathlib import Path
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

_IMPORTS = next(node for node in ast.parse(Path(__file__).read_bytes()).body if isinstance(node, ast.If))
_MODULES = {name.name: node.module for node in _IMPORTS.body if isinstance(node, ast.ImportFrom) for name in node.names}
"""The public names, each with its module: the imports above, which type checkers read."""

__all__ = [*sorted(_MODULES), "__version__"]


def __getattr__(name: str) -> Any:
    """Imports a public name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(str(_MODULES[name])), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
