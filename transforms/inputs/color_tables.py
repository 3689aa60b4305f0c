"""Tables of the colors of classes in masks: lines of `R G B name`, or JSON."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from recordmill.imaging.masks.mask_file import pack_color
from recordmill.transforms.inputs.named_files import bad_annotations

ClassColor = tuple[int, int, int]

_LINE = re.compile(r"\s*([0-9]{1,3})[\s,]+([0-9]{1,3})[\s,]+([0-9]{1,3})[\s,]+(\S.*?)\s*")
_NAME_FIRST = re.compile(
    r"\s*([^:#][^:]*?)\s*:\s*([0-9]{1,3}),([0-9]{1,3}),([0-9]{1,3})(?::.*)?\s*"
    r"|\s*\"?([^,\"]+?)\"?\s*,\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*,\s*([0-9]{1,3})\s*"
)
_HEADER = re.compile(
    r"\W*((name|class)\w*\W+)?r(ed)?\W+g(reen)?\W+b(lue)?(\W+(name|class)\w*)?\W*", re.IGNORECASE
)


def read_color_table(data: bytes) -> dict[str, int]:
    """Returns the color of each class, as `decode_mask` gives it.

    The table is text with a line `R G B name` per class, as CamVid's, or `name:R,G,B` with more
    after it, as CVAT's `labelmap.txt`; CSV with the columns `name,r,g,b`, as Kaggle's
    `class_dict.csv`; or a JSON object of a color per name.

    Raises:
        Rejected: `bad_annotations`: it has another form, or two classes share a name or a color.
    """
    text = data.decode("utf-8-sig", errors="replace")
    entries = _read_json(text) if text.lstrip().startswith("{") else _read_lines(text)
    table, colors = dict[str, int](), set[int]()
    for name, color in entries:
        if max(color) > 255:
            raise bad_annotations(f"the color of {name!r:.60} is {color}: give 0 to 255")
        packed = pack_color(*color)
        if name in table or packed in colors:
            raise bad_annotations(f"the table of colors has {name!r:.60} or its color twice")
        table[name] = packed
        colors.add(packed)
    if not table:
        raise bad_annotations("the table of colors is empty")
    return table


def _read_lines(text: str) -> Iterator[tuple[str, ClassColor]]:
    for number, line in enumerate(text.splitlines(), start=1):
        is_header = number == 1 and _HEADER.fullmatch(line)
        if not line.strip() or line.lstrip().startswith("#") or is_header:
            continue
        if match := _LINE.fullmatch(line):
            yield match[4], (int(match[1]), int(match[2]), int(match[3]))
        elif match := _NAME_FIRST.fullmatch(line):
            name, red, green, blue = filter(None, match.groups())
            yield name, (int(red), int(green), int(blue))
        else:
            raise bad_annotations(f"line {number} of the table of colors is not R G B name")


def _read_json(text: str) -> Iterator[tuple[str, ClassColor]]:
    try:
        content: Mapping[str, Any] = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise bad_annotations(f"the table of colors is not JSON: {error!s:.100}") from None
    for name, color in content.items():
        is_color = isinstance(color, list) and len(color) == 3
        if not is_color or not all(type(each) is int and each >= 0 for each in color):
            raise bad_annotations(f"the color of {name!r:.60} is not a list of 3 numbers")
        yield name, (color[0], color[1], color[2])
