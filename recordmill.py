"""Recordmill's public names: the pipeline's steps as PTransforms, the functions and records behind them, and readers.

Importing it imports no TensorFlow; `load` does when it is called.
"""

from reading.examples_as_numpy import examples_as_numpy
from reading.load_error import LoadError
from reading.loading.load import load
from reading.loading.split_info import SplitInfo, describe_split
from schemas.conventions import Convention, convention_names, load_convention
from schemas.features import Feature, describe_features, encode_example, parse_example, tensorflow_features
from schemas.image_ref import ImageRef
from schemas.label_map import LabelMap
from schemas.version import VERSION as __version__
from transforms.build_examples import BuildExamples
from transforms.imaging import ImageSettings, PreparedImage, prepare_image
from transforms.list_images import Input, ListImages, ListingSettings
from transforms.read_images import ReadImages
from transforms.reencode_images import ReencodeImages
from transforms.sources.class_folders import ClassFolders
from transforms.sources.filename_labels import FilenameLabels
from transforms.split_examples import SplitExamples

__all__ = [
    "BuildExamples",
    "ClassFolders",
    "Convention",
    "Feature",
    "FilenameLabels",
    "ImageRef",
    "ImageSettings",
    "Input",
    "LabelMap",
    "ListImages",
    "ListingSettings",
    "LoadError",
    "PreparedImage",
    "ReadImages",
    "ReencodeImages",
    "SplitExamples",
    "SplitInfo",
    "__version__",
    "convention_names",
    "describe_features",
    "describe_split",
    "encode_example",
    "examples_as_numpy",
    "load",
    "load_convention",
    "parse_example",
    "prepare_image",
    "tensorflow_features",
]
