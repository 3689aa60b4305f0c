"""What the user must say about the columns of a table of images, with a command for each answer."""

import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import orjson

from recordmill.schemas.formatting import show_first
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Question
from recordmill.transforms.inputs.image_classes import WITH_SEVERAL_LABELS
from recordmill.transforms.inputs.split_words import may_be_split
from recordmill.transforms.inputs.tables.keypoint_columns import KeyPointColumns, guess_key_points
from recordmill.transforms.inputs.tables.known_tables import FoundColumns
from recordmill.transforms.inputs.tables.table_boxes import SIDES
from recordmill.transforms.inputs.tables.table_heads import SEVERAL

MOST_WAYS = 4
"""Commands that a message offers for one question."""

_HAVE_COMMAS = "have decimal commas (write points, as in 1.5, to store numbers)"

_MOST_NAMED = 8
"""Columns that a command names one by one, rather than by a pattern."""

_OF_MASKS = re.compile("mask|seg|label|annot|gt|truth|depth", re.IGNORECASE)
"""Words in the names of columns of masks: next to them, a class is that of the image."""

_OF_SEMANTIC_MASKS = re.compile("mask|seg|label|annot|gt|truth", re.IGNORECASE)
"""Words in the names of columns of masks whose values may be ids of classes."""


def ask_for_second(first: FoundColumns, kept: str) -> Question:
    """Returns what to do about a table whose rows name several images."""
    uri, label = first.columns["uri"], first.columns.get("label", "")
    others = _unknown_columns(first)
    are_masks = any(map(_OF_MASKS.search, first.seconds))
    ways = []
    unlabeled = ["source.columns.label="] if label or others else []
    # Without a header, no name tells what the second images are.
    semantic = [each for each in first.seconds if first.names or _OF_SEMANTIC_MASKS.search(each)]
    if len(semantic) == 1 and uri == kept:
        flags = [f"source.columns.uri={uri}", f"source.columns.mask={semantic[0]}", *unlabeled]
        way = to_set(*flags, "convention=deeplab")
        ways.append(f"those of {kept} with the semantic masks in {semantic[0]}, add {way}")
        if label:
            way = to_set(*flags[:2], "convention=tfds")
            both = f"the semantic masks in {semantic[0]} and the classes in {label}"
            ways.append(f"those of {kept} with {both}, add {way}")
    if label and are_masks:
        way = to_set(f"source.columns.uri={uri}")
        ways.append(f"those of {kept} with the classes in {label}, add {way}")
    several = semantic if first.names and len(semantic) > 1 and uri == kept else []
    for name in several:
        flags = [f"source.columns.uri={uri}", f"source.columns.mask={name}", "convention=deeplab"]
        ways.append(f"those of {kept} with the semantic masks in {name}, add {to_set(*flags)}")
    for name in (kept,) if are_masks else (kept, *first.seconds):
        template = name if uri == kept else uri.replace(f"{{{kept}}}", f"{{{name}}}")
        flags = [f"source.columns.uri={template}", *unlabeled]
        ways.append(f"those of {name} without labels, add {to_set(*flags)}")
    return (
        f"its columns {' and '.join((kept, *first.seconds))} name images, and one of a row is "
        f"stored: to store {'; or '.join(ways)}",
        ("source.columns.uri",),
    )


def find_mask_column(images: Sequence[str]) -> str | None:
    """Returns how to store the semantic masks in a column next to that of images.

    It is the rest of a sentence; None if there is no such column, or several columns of images.
    """
    masks = [each for each in images if _OF_SEMANTIC_MASKS.search(each)]
    others = [each for each in images if each not in masks]
    if len(masks) != 1 or len(others) != 1:
        return None
    flags = [f"source.columns.bytes={others[0]}", f"source.columns.mask={masks[0]}"]
    return f"; for semantic masks in {masks[0]}, add {to_set(*flags, 'convention=deeplab')}"


def ask_for_meanings(path: str, first: FoundColumns, sketch: FolderSketch) -> Iterator[Question]:
    """Yields what to do about columns that may hold boxes, the split or the class."""
    key = "source.columns.label"
    label = first.columns.get("label", "")
    if first.several:
        image, one, other = first.several
        yield (
            f"{image} has two rows, with the classes {one} and {other}: write one row for each "
            f"image, with all its classes in one cell, such as {one}|{other}, or add "
            f"{to_ignore([path], sketch)} {to_set('source.class_from=none')} to convert the images "
            "without labels",
            ("source.columns.key",),
        )
    if inner := _ask_for_inner(first):
        yield inner
    if first.corners and label:
        yield _ask_for_unnamed_boxes(first)
    others = _unknown_columns(first)
    points = _find_points(first, others)
    if points and (first.boxes or not first.has_classes):
        yield _ask_for_points(others, points, label)
    elif first.boxes and label and not first.corners:
        alone = to_set(f"{key}={label}")
        yield f"{_say_boxes(first)}, or add {alone} to store the images' classes alone", (key,)
    elif others and not first.has_classes:
        yield _ask_for_class(first, [name for name in others if name not in first.boxes])
    if first.other_split:
        yield _ask_for_split(first)


def _find_points(first: FoundColumns, others: Sequence[str]) -> KeyPointColumns | None:
    """Returns the key points that all columns without a meaning may hold; None if they do not."""
    points = guess_key_points([each for each in others if each in first.numbers])
    if points is None or len(others) != 2 * len(points.names):
        return None
    # The corners of a box are two points.
    return points if len(points.names) > 2 or not first.boxes else None


def _say_boxes(first: FoundColumns) -> str:
    """Says that columns may hold boxes in a form that is not read, and what to write."""
    word = "columns" if len(first.boxes) > 1 else "column"
    what = f"its {word} {show_first(first.boxes)} may hold boxes, which are read"
    if {*SIDES} <= {*first.boxes}:
        return f"{what} with a class: write a column called class into the table"
    return f"{what} from columns called xmin, ymin, xmax, ymax: write those into the table"


_FACTS = frozenset(
    {"height", "width", "size", "shape", "channels", "mode", "format", "id", "filename", "name"}
    | {"file_name", "md5", "sha1", "sha256", "url", "license", "exif", "date", "caption"}
)
"""Names of fields of an image's struct that say nothing about its class."""


def _ask_for_inner(first: FoundColumns) -> Question | None:
    """Returns what to do about fields of structs that may be the class or the split."""
    likely = {
        f"{column}.{name}": name
        for column, names in first.inner.items()
        for name in names
        if not (column in first.packed and name.lower() in _FACTS)
    }
    keys = []
    if likely and not first.has_classes:
        keys.append("source.columns.label")
    splits = [field for field, name in likely.items() if may_be_split(name)]
    if splits and "split" not in first.columns:
        keys.append("source.columns.split")
    if not keys:
        return None
    fields = list(likely) if "source.columns.label" in keys else splits
    return (
        f"fields of structs are not read, such as {fields[0]}: write each field that is needed "
        f"({show_first(fields)}) into a column of its own, or add "
        f"{to_set(*(f'{key}=' for key in keys))} to convert the images without them",
        tuple(keys),
    )


def _ask_for_unnamed_boxes(first: FoundColumns) -> Question:
    """Returns what to do about four columns without a name that may be the sides of boxes."""
    key, label = "source.columns.label", first.columns.get("label", "")
    sides = [
        f"source.columns.{side}={name}" for side, name in zip(SIDES, first.corners, strict=True)
    ]
    as_boxes = to_set(
        f"{key}=", f"source.columns.box_label={label}", *sides, "convention=tf_object_detection"
    )
    return (
        f"its columns {show_first(first.corners)} may be the left, upper, right and lower side of "
        f"boxes: add {as_boxes} if they are, or {to_set(f'{key}={label}')} to store the images' "
        "classes alone",
        (key,),
    )


def _ask_for_split(first: FoundColumns) -> Question:
    """Returns what to do about a column that may say which split an image is in."""
    column, key = first.other_split, "source.columns.split"
    given = orjson.dumps(first.guessed_splits).decode()
    use = f"add {to_set(f'{key}={column}', f'splits.from_source={given}')} to keep these splits"
    return (
        f"its column {column} may say which split an image is in: {use}, or add "
        f"{to_set(f'{key}=')} to split the images otherwise",
        (key, "splits"),
    )


def _ask_for_points(columns: Sequence[str], points: KeyPointColumns, given: str) -> Question:
    """Returns what to do if all columns may be x and y of points.

    Args:
        columns: the columns.
        points: the points.
        given: the column of classes; empty if there is none.
    """
    label, features, key = "source.columns.label", "source.features_from", "source.keypoints"
    label_flag = f"{label}={given}"
    pattern = f'{key}={{x: "{points.x}", y: "{points.y}"}}'
    if points.columns:
        pattern = f'{key}={{columns: "*"}}'
    as_points = to_set(label_flag, pattern, "convention=tf_object_detection")
    value = f"{features}={{targets: {{columns: {_columns_yaml(columns, columns)}, type: float}}}}"
    return (
        f"its columns ({show_first(columns)}) may be x and y of points: add {as_points} to store "
        f"key points, which move with the pixels, {to_set(label_flag, value)} to store numbers as "
        f"one feature, or {to_set(label_flag)} to store none of them",
        (label, "source.columns.labels", features, key),
    )


def _ask_for_class(first: FoundColumns, others: Sequence[str]) -> Question:
    """Returns what to do if a table has columns, and none is known to be the class."""
    label, features = "source.columns.label", "source.features_from"
    keys = (label, "source.columns.labels", features)
    none = f"--set {label}= to store none of them"
    if not others:
        return f"{_say_boxes(first)}, or add {none}", keys
    flags = [name for name in others if name in first.flags]
    numbers = [name for name in others if name in first.numbers] or flags
    if len(others) == 1 and not numbers and not first.boxes:
        return _ask_for_only_column(others[0], first)
    are_flags = len(others) > 1 and flags == list(others)
    if are_flags:
        numbers = flags
    what = f"it is not clear which column is the class ({show_first(others)})"
    if first.commas:
        what += f"; cells of {show_first(first.commas)} {_HAVE_COMMAS}"
    if are_flags:
        are = "are 0 or 1 (or true or false), as for several labels"
        what = f"its columns ({show_first(others)}) {are}"
    if first.boxes:
        what = f"{_say_boxes(first)}; {what}"
    candidates = [name for name in first.candidates if name in others]
    ways = _ways_of_classes([name for name in candidates if name not in numbers], first)
    if numbers:
        kind, name = ("int64", "many_hot") if numbers == flags else ("float", "targets")
        columns = _columns_yaml(numbers, first.others)
        value = f"{features}={{{name}: {{columns: {columns}, type: {kind}}}}}"
        ways.append(f"--set {label}= --set {shlex.quote(value)} to store numbers as one feature")
    numbered = [name for name in candidates if name in numbers]
    if len(numbered) <= MOST_WAYS and not are_flags:  # else these are values of one kind
        ways += _ways_of_classes(numbered, first)
    ways.append(none)
    return f"{what}: add {', or '.join(ways)}", keys


def _ways_of_classes(names: Sequence[str], first: FoundColumns) -> list[str]:
    """Returns what to add to take a column for the class, for each of the first columns."""
    return [
        f"{to_set(*_flags_of_class(name, first))} for classes {_show_class(name, first)}"
        for name in names[:MOST_WAYS]
    ]


def _flags_of_class(column: str, first: FoundColumns) -> list[str]:
    """Returns the settings that take a column for the class, or for lists of classes."""
    if column in first.lists:
        return [f"source.columns.labels={column}", f"convention={WITH_SEVERAL_LABELS}"]
    return [f"source.columns.label={column}"]


def _show_class(column: str, first: FoundColumns) -> str:
    """Returns the first class that a column holds; the column if that is a list."""
    value = first.candidates[column]
    return f"in {column}" if value in ("", SEVERAL) else f"such as {value:.40}"


def _ask_for_only_column(column: str, first: FoundColumns) -> Question:
    """Returns what to do if the only column that may be the class does not look like one."""
    label, labels, features = (
        "source.columns.label",
        "source.columns.labels",
        "source.features_from",
    )
    name = re.sub(r"\W+", "_", column).strip("_") or "text"
    name = f"column/{name}" if name in ("id", "image", "filename", "label") else name
    many = ", many: true" if column in first.lists else ""
    value = f"{features}={{{name}: {{column: {orjson.dumps(column).decode()}{many}}}}}"
    flags = _flags_of_class(column, first)
    what, several = f"its column {column} does not look like a class", ""
    if column in first.commas:
        what += f"; its cells {_HAVE_COMMAS}"
        as_list = to_set(
            f"{labels}={column}", 'source.separator=","', f"convention={WITH_SEVERAL_LABELS}"
        )
        several = f", {as_list} if each cell has several classes"
    return (
        f"{what}: add {to_set(f'{label}=', value)} to store its text, {to_set(f'{label}=')} to "
        f"leave it out{several}, or {to_set(*flags)} if it is the class",
        (label, labels, features),
    )


def _columns_yaml(numbers: Sequence[str], others: Sequence[str]) -> str:
    """Returns the columns of a feature in YAML: names if they are few, else patterns."""
    if len(numbers) > _MOST_NAMED:
        starts = [re.split("[0-9]", each, maxsplit=1)[0] for each in numbers]
        patterns = list(dict.fromkeys(f"{start or '[0-9]'}*" for start in starts))
        matched = [name for name in others if any(fnmatchcase(name, each) for each in patterns)]
        if matched == list(numbers) and len(patterns) == 1:
            return orjson.dumps(patterns[0]).decode()
        if matched == list(numbers) and len(patterns) <= _MOST_NAMED:
            return orjson.dumps(patterns).decode()
    return orjson.dumps(list(numbers)).decode()


def _unknown_columns(first: FoundColumns) -> list[str]:
    """Returns the columns without a meaning that may have one for the user."""
    known = {*first.index, *first.packed, *first.inner, *first.seconds, first.other_split}
    return [name for name in first.others if name not in known]


def to_set(*flags: str) -> str:
    """Returns settings as flags for a shell."""
    return " ".join(f"--set {shlex.quote(flag)}" for flag in flags)


def to_ignore(paths: Sequence[str], sketch: FolderSketch) -> str:
    """Returns the flag that leaves files out, too."""
    patterns = [*sketch.ignored, *(f"/{path}" for path in paths)]
    return f"--set {shlex.quote(f'ignore={orjson.dumps(patterns).decode()}')}"
