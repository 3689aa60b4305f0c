"""Docstrings of the public functions and transforms have examples, which are true."""

import ast
import inspect
import re
import textwrap

import apache_beam as beam
import pytest
from PIL import Image

import recordmill

SHOWN = (
    *("convert", "open_dataset", "describe_split", "open", "verify_dataset", "examples_as_numpy"),
    *("EpochOrder", "load_convention", "convention_names", "encode_example", "parse_example"),
    *("describe_features", "boxes_of", "pack_annotations", "prepare_image"),
    *("tensorflow_features", "load", "TorchStream", "Reject", "Convert", "ListReferences"),
    *("ReadImages", "ReencodeImages", "BuildExamples", "SplitExamples"),
)
RUN = SHOWN[:15]
"""Those that need neither TensorFlow nor PyTorch nor a pipeline, in an order that works."""


FUNCTIONS_AND_TRANSFORMS = {
    name
    for name in recordmill.__all__
    if not isinstance(made := getattr(recordmill, name), type) or issubclass(made, beam.PTransform)
} - {"__version__"}


def test_each_public_function_and_transform_has_an_example():
    assert {*SHOWN} >= FUNCTIONS_AND_TRANSFORMS


def example_of(name):
    """The code of a public name's example, which may be a part of a sentence."""
    text = inspect.cleandoc(getattr(recordmill, name).__doc__)
    if inline := re.search(rf"`(\w+ = recordmill\.{name}\([^`]*\))`", text):
        return inline[1]
    found = re.search(r"^Example:\n((?:(?:    .*)?\n?)+)", f"{text}\n", re.MULTILINE)
    assert found, f"{name} has no example"
    return textwrap.dedent(found[1])


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_uses_public_names(name):
    tree = ast.parse(example_of(name))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "recordmill"
    }
    assert name in used
    assert used <= set(recordmill.__all__)


@pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")
def test_the_examples_run(tmp_path, monkeypatch):
    for number in range(20):
        for label in ("cat", "dog"):
            (tmp_path / "photos" / label).mkdir(parents=True, exist_ok=True)
            image = Image.new("RGB", (16, 12), (12 * number, 9, 200 * (label == "dog")))
            image.save(tmp_path / "photos" / label / f"{number:04d}.jpg")
    monkeypatch.chdir(tmp_path)
    for name in RUN:
        exec(example_of(name), {"recordmill": recordmill})
