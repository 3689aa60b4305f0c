"""Recordmill's public names: the pipeline's steps as PTransforms, and the pure functions and records behind them."""

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
    "PreparedImage",
    "ReadImages",
    "ReencodeImages",
    "SplitExamples",
    "__version__",
    "convention_names",
    "describe_features",
    "encode_example",
    "load_convention",
    "parse_example",
    "prepare_image",
    "tensorflow_features",
]
