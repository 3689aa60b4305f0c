import sys
from dataclasses import fields, is_dataclass

import pytest

from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.source import Source, load_source, source_names


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
