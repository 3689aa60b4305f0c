import ast
import re
import sys
from dataclasses import fields, is_dataclass

import product_text
import pytest

from recordmill.transforms.inputs.file_roles import YOLO_TEXT
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.source import (
    AddsFeatures,
    FindsClassesInFolders,
    NamesClasses,
    ReadsLabelsBeside,
    Source,
    load_source,
    source_names,
)
from recordmill.transforms.inputs.sources.yolo import SOURCE as YOLO
from scripts.count_code import modules


def test_sources_are_found_by_their_files():
    assert {"class_folders", "filename_labels"} <= set(source_names())
    assert "source" not in source_names()
    assert load_source("class_folders") is ClassFolders
    assert load_source("filename_labels") is FilenameLabels


@pytest.mark.parametrize("kind", source_names())
def test_every_source_keeps_the_contract(kind):
    source = load_source(kind)
    assert is_dataclass(source)
    assert source.__dataclass_params__.frozen
    assert all(field.kw_only for field in fields(source))
    assert isinstance(source(), Source)
    assert source.__doc__


@pytest.mark.parametrize(
    ("ability", "setting"),
    [
        (NamesClasses, "class_names"),
        (AddsFeatures, "features_from"),
        (FindsClassesInFolders, "class_from"),
        (ReadsLabelsBeside, "label_part"),
    ],
)
@pytest.mark.parametrize("kind", source_names())
def test_sources_have_the_abilities_of_their_settings(kind, ability, setting):
    source = load_source(kind)
    assert isinstance(source(), ability) == (setting in {field.name for field in fields(source)})


def test_sources_say_which_annotations_they_read():
    others = [kind for kind in source_names() if kind != "coco_panoptic"]  # its JSON is COCO's
    named = list(filter(None, (load_source(kind)().annotation_format for kind in others)))
    assert {"COCO's JSON", "Pascal VOC's XML"} <= {*named}
    assert len({*named}) == len(named)
    assert YOLO(text_files="beside").annotation_format == YOLO_TEXT


def test_no_module_looks_for_an_attribute_of_a_source():
    """An optional ability is a protocol, so that type checkers know what it gives."""
    found = []
    for path in modules():
        for node in product_text.nodes_of(path):
            is_call = isinstance(node, ast.Call)
            if is_call and re.match(r"(get|has)attr\([\w.]*source,", ast.unparse(node)):
                found.append(f"{path}:{node.lineno}")
    assert found == []


# A manifest has boxes only if a column has.
@pytest.mark.parametrize("kind", [kind for kind in source_names() if kind != "manifest"])
def test_every_source_with_boxes_says_so(kind):
    # Else a mapping of the user's with fields of boxes is refused.
    if hasattr(sys.modules[load_source(kind).__module__], "boxes_of"):
        assert load_source(kind)().annotations()["boxes"] == ""


@pytest.mark.parametrize("kind", ["nonsense", "source", "", "../class_folders"])
def test_an_unknown_kind_raises_and_lists_the_known(kind):
    with pytest.raises(
        ValueError,
        match=f"there is no source {kind!r}: choose one of .*class_folders, .*filename_labels",
    ):
        load_source(kind)
