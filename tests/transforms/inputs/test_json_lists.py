import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.coco_annotations import CocoFile, OutlinedFile, read_coco
from recordmill.transforms.inputs.json_lists import PART_BYTES, cut_list, validate_in_parts
from recordmill.transforms.inputs.panoptic_annotations import PanopticFile

IMAGES = '"images": [{"id": 1, "file_name": "a.jpg"}]'
CATEGORIES = '"categories": [{"id": 1, "name": "cat"}]'
ENTRY = '{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}'


AFTER_INFO = f'{IMAGES}, {CATEGORIES}, "annotations": [{ENTRY}]}}'


def whole(data, model):
    """Returns the contents as text, in which NaN is equal; None if they are not valid."""
    try:
        return repr(model.model_validate_json(data))
    except ValidationError:
        return None


def in_parts(data, model, part_bytes=1):
    contents = validate_in_parts(data, model, "annotations", part_bytes)
    return None if contents is None else repr(contents)


def coco(annotations, *others):
    return "{" + ", ".join([IMAGES, CATEGORIES, f'"annotations": {annotations}', *others]) + "}"


KEYS = st.sampled_from(
    ["a", "annotations", "segmentation", "attributes", "keypoints", '}, {"', "é"]
)
WORDS = st.sampled_from(["", "}, {", "}]", '"annotations": [{', "\\", '\\"', "[", "é\u2028", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
ENTRIES = st.dictionaries(KEYS, VALUES, max_size=4).map(
    lambda more: {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], **more}
)
FILES = st.fixed_dictionaries(
    {
        "images": st.just([{"id": 1, "file_name": "}, {"}]),
        "categories": st.just([{"id": 1, "name": "annotations"}]),
        "annotations": st.lists(ENTRIES, max_size=5),
    },
    optional={"info": VALUES, "licenses": VALUES},
)


@st.composite
def texts(draw):
    """Draws a file's text with its keys in any order."""
    items = draw(st.permutations([*draw(FILES).items()]))
    indent = draw(st.sampled_from([None, 0, 1]))
    separators = draw(st.sampled_from([(",", ":"), (" , ", " : "), (",\r\n\t", ":")]))
    ascii_only = draw(st.booleans())
    return json.dumps(dict(items), indent=indent, separators=separators, ensure_ascii=ascii_only)


BREAKS = st.sampled_from(
    [
        *("{", "}", "[", "]", '"', ",", ":", "\\", " ", "1", "\v", "\f", "NaN", "\\u0061", ENTRY),
        *(
            "},{",
            "}]",
            "] , [",
            '"annotations": [',
            '"annotations": [{}], ',
            ', "annotations": null',
        ),
        "[" * 250,
    ]
)


@st.composite
def broken_texts(draw):
    """Draws a text in which something is replaced, so that most are not valid."""
    text = draw(texts())
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(BREAKS) + text[at + draw(st.integers(0, 2)) :]
    return text


@settings(max_examples=100)
@given(texts(), st.integers(1, 200), st.sampled_from([CocoFile, OutlinedFile]))
def test_a_file_in_any_order_is_as_if_read_whole(text, part_bytes, model):
    data = text.encode("utf-8", "surrogatepass")
    assert in_parts(data, model, part_bytes) in (whole(data, model), None)


@settings(max_examples=200)
@given(broken_texts(), st.integers(1, 200))
@example(coco(f"[{ENTRY} {ENTRY}]"), 1)
@example(coco(f"[{ENTRY},\v{ENTRY}]"), 1)
@example(coco(f"[{ENTRY},]"), 1)
@example(coco(f"[,{ENTRY}]"), 1)
@example(coco(f"[{ENTRY}"), 1)
@example(coco(f"[{ENTRY}]]"), 1)
@example(coco(f"[{ENTRY}, 1]"), 1)
def test_a_broken_file_is_valid_only_if_the_whole_is(text, part_bytes):
    data = text.encode("utf-8", "surrogatepass")
    assert in_parts(data, CocoFile, part_bytes) in (whole(data, CocoFile), None)


@pytest.mark.parametrize(
    "text",
    [
        coco("[]"),
        coco("[ ]", '"info": {}'),
        coco(f"[{ENTRY}]"),
        coco(f" [\n {ENTRY} ,\r\n\t{ENTRY}\n] "),
        coco(f"[{ENTRY}, {ENTRY}]", '"licenses": [{"name": "annotations"}]'),
        coco(f'[{ENTRY}, {ENTRY[:-1]}, "x": [{{"annotations": [{{}}]}}, {{}}]}}]'),
        coco(f'[{ENTRY[:-1]}, "x": "}}]}}, {{\\"annotations\\": [\\\\"}}, {ENTRY}]'),
        coco(f'[{ENTRY[:-1]}, "x": NaN, "id": 2}}]'),
    ],
)
@pytest.mark.parametrize("part_bytes", [1, 100])
def test_the_forms_that_tools_write_are_found(text, part_bytes):
    expected = whole(text.encode(), OutlinedFile)
    assert expected is not None
    assert in_parts(text.encode(), OutlinedFile, part_bytes) == expected


@pytest.mark.parametrize(
    "text",
    [
        coco(f"[{ENTRY}]", f'"annotations": [{ENTRY}, {ENTRY}]'),
        coco(f"[{ENTRY}]", '"annotations": []'),
        coco(f"[{ENTRY}]", f'"\\u0061nnotations": [{ENTRY}, {ENTRY}]'),
        f'{{{IMAGES}, {CATEGORIES}, "info": {{"annotations": [{ENTRY}]}}}}',
        f'{{"info": {{"annotations": [{ENTRY}]}}, {AFTER_INFO}',
        f'{{"x\\"annotations": [{ENTRY}], {AFTER_INFO}',
        f'{{"x\\"annotations": [{ENTRY}], {IMAGES}, {CATEGORIES}}}',
        f"{{{IMAGES}, {CATEGORIES}}}",
        coco(f'[{{"x": {"{" * 9}"x": {"{}" + "}" * 9}}}]'),
    ],
)
def test_a_list_that_may_be_another_one_is_not_cut(text):
    assert in_parts(text.encode(), CocoFile) is None


@pytest.mark.parametrize("levels", [195, 196, 197, 198, 199, 200])
def test_lists_are_as_deep_as_in_the_whole(levels):
    data = coco(f'[{ENTRY[:-1]}, "x": {"[" * levels}{"]" * levels}}}]').encode()
    assert in_parts(data, CocoFile) == whole(data, CocoFile)


def test_parts_have_the_least_size_and_the_rest_has_no_entries():
    data = coco(f"[{', '.join([ENTRY] * 5)}]").encode()
    cut = cut_list(data, "annotations", len(ENTRY) + 9)
    assert cut.rest.decode() == coco("[]")
    two = f"{ENTRY}, {ENTRY}"
    assert [data[part].decode().strip() for part in cut.parts] == [two, two, ENTRY]


def test_panoptic_annotations_are_found():
    entry = '{"image_id": 1, "file_name": "a.png", "segments_info": [{"id": 1, "category_id": 1}]}'
    data = coco(f"[{entry}, {entry}]").encode()
    assert in_parts(data, PanopticFile) == whole(data, PanopticFile)


def write(path, number, changed):
    entries = [
        {"id": each, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}
        for each in range(number)
    ]
    entries[number - 1] |= changed
    path.write_text("\ufeff" + coco(json.dumps(entries)))
    assert path.stat().st_size > PART_BYTES
    return str(path)


def test_a_long_file_is_read_in_parts(tmp_path):
    uri = write(tmp_path / "a.json", 20_000, {"area": 7})
    contents = read_coco(uri, CocoFile)
    assert [each.id for each in contents.annotations] == [*range(20_000)]
    assert contents.annotations[-1].area == 7


@pytest.mark.parametrize(
    ("changed", "detail"),
    [
        ({"image_id": None}, "the JSON does not fit: annotations.19999.image_id.int (id 19999): "),
    ],
)
def test_an_error_in_a_long_file_has_its_place_in_the_whole(tmp_path, changed, detail):
    uri = write(tmp_path / "a.json", 20_000, changed)
    with pytest.raises(Rejected) as raised:
        read_coco(uri, CocoFile)
    assert raised.value.detail.startswith(detail)
