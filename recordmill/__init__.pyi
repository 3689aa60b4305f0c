"""The public names, for type checkers and for `__init__.py`, which imports them at first use."""

from .annotations.annotation import pack_annotations
from .annotations.boxes import boxes_of
from .annotations.labels import Labels
from .imaging import ImageSettings, PreparedImage, prepare_image
from .pipeline.convert import convert
from .pipeline.convert_transform import Convert, Converted, Shard
from .reading.dataset import Dataset, SplitInfo, describe_split, open_dataset
from .reading.epoch_order import EpochOrder
from .reading.example import examples_as_numpy
from .reading.load import load
from .reading.records import OpenedDataset, Records, open
from .reading.torch_stream import TorchStream
from .reading.verify_dataset import Verification, verify_dataset
from .schemas.conventions import Convention, convention_names, load_convention
from .schemas.dataset.outcome import ConversionError, Outcome
from .schemas.errors import LoadError, RecordmillError
from .schemas.features import (
    Feature,
    describe_features,
    encode_example,
    parse_example,
    tensorflow_features,
)
from .schemas.image_ref import ImageRef
from .schemas.label_map import LabelMap
from .schemas.rejection import Reject
from .schemas.settings.dataset import DatasetSettings, ShardSettings
from .schemas.settings.source import Input, ListingSettings
from .storage.tfrecord_file import Damage, RecordFile, StoredFile
from .transforms.inputs.sources.class_folders import ClassFolders
from .transforms.inputs.sources.filename_labels import FilenameLabels
from .transforms.list_images import ListReferences
from .transforms.planning.plan import DatasetPlan
from .transforms.steps.build_examples import BuildExamples
from .transforms.steps.elements import BuiltExample, EncodedImage, RawImage, RejectedImage
from .transforms.steps.read_images import ReadImages
from .transforms.steps.reencode_images import ReencodeImages
from .transforms.steps.split_examples import SplitExamples

__version__: str

__all__ = [
    "BuildExamples",
    "BuiltExample",
    "ClassFolders",
    "Convention",
    "ConversionError",
    "Convert",
    "Converted",
    "Damage",
    "Dataset",
    "DatasetPlan",
    "DatasetSettings",
    "EncodedImage",
    "EpochOrder",
    "Feature",
    "FilenameLabels",
    "ImageRef",
    "ImageSettings",
    "Input",
    "LabelMap",
    "Labels",
    "ListReferences",
    "ListingSettings",
    "LoadError",
    "OpenedDataset",
    "Outcome",
    "PreparedImage",
    "RawImage",
    "ReadImages",
    "RecordFile",
    "RecordmillError",
    "Records",
    "ReencodeImages",
    "Reject",
    "RejectedImage",
    "Shard",
    "ShardSettings",
    "SplitExamples",
    "SplitInfo",
    "StoredFile",
    "TorchStream",
    "Verification",
    "__version__",
    "boxes_of",
    "convention_names",
    "convert",
    "describe_features",
    "describe_split",
    "encode_example",
    "examples_as_numpy",
    "load",
    "load_convention",
    "open",
    "open_dataset",
    "pack_annotations",
    "parse_example",
    "prepare_image",
    "tensorflow_features",
    "verify_dataset",
]
