"""Kinds of annotations are named where they are read, placed, drawn and set, and nowhere else.

All other modules loop over the kinds, or ask a kind. So a new kind needs no change in them.
"""

import re
from pathlib import Path

import pytest

REPO = Path(__file__).parents[1]
ROOMS = ("pipeline", "transforms", "schemas", "recordmill")
MAY_NAME_KINDS = {
    "recordmill/annotations": "the kinds themselves",
    "recordmill/imaging": "geometry, and the module that draws",
    "transforms/inputs": "what reads and recognizes inputs",
    "pipeline/configuration": "what recognizes layouts, and checks settings",
    "schemas/conventions": "conventions",
    "schemas/settings": "settings",
}
EXCEPTIONS = {
    "recordmill/__init__.pyi": "public names",
    "schemas/earlier_names.py": "format 2 and scripts have keys for boxes",
    "schemas/rejection.py": "reasons for which an image is rejected because of its boxes",
    "transforms/planning/explain_pairs.py": "second images that no source reads may be masks",
    "transforms/planning/explain_unclaimed.py": "files that no source reads may contain boxes",
}
OF_OTHERS = re.compile(r"viewBox|box=None|box-sizing|boolean_mask")
"""Words of SVG, rich, CSS and TensorFlow."""
KINDS = re.compile(
    r"(?<![a-z])(box(es)?|masks?|outlines?|key[ _-]?points?)(?![a-z])", re.IGNORECASE
)
MOST_EXCEPTIONS = 5


def modules():
    for room in ROOMS:
        for path in sorted((REPO / room).rglob("*")):
            is_text = path.suffix in (".py", ".pyi", ".jinja")
            if is_text and not any(parent.is_symlink() for parent in path.parents):
                yield path.relative_to(REPO)


def words_in(text):
    """The words for kinds in a text, also as parts of names."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", OF_OTHERS.sub("", text))
    return [match[0] for match in KINDS.finditer(parted)]


def lines_with_kinds():
    found = {}
    for path in modules():
        if any(path.is_relative_to(folder) for folder in MAY_NAME_KINDS):
            continue
        lines = (REPO / path).read_text(encoding="utf-8").splitlines()
        named = [f"{number}: {line}" for number, line in enumerate(lines, 1) if words_in(line)]
        if named:
            found[str(path)] = named
    return found


def test_no_other_module_names_a_kind_of_annotation():
    found = lines_with_kinds()
    assert {path: lines for path, lines in found.items() if path not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() <= found.keys(), "remove what is no exception any more"
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("images_without_boxes: ImagesWithoutBoxes", ["boxes", "Boxes"]),
        ("key points, key_points, keypoint", ["key points", "key_points", "keypoint"]),
        ("a mailbox, a masked CRC, an unboxed value", []),
        ("MOST_MASKS = box_of(outline)", ["MASKS", "box", "outline"]),
        ('<svg viewBox="0 0 1 1">, Table(box=None), tf.boolean_mask', []),
    ],
)
def test_words_are_found_in_names_and_prose(text, words):
    assert words_in(text) == words
