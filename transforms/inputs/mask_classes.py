"""The classes of semantic masks: the names of their ids, and their colors."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from recordmill.annotations.segmentation import IGNORED_ID_16
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.class_names import parse_class_names, why_unread
from recordmill.transforms.inputs.color_tables import read_color_table
from recordmill.transforms.inputs.label_map_file import parse_label_map
from recordmill.transforms.inputs.named_files import bad_annotations, locate, read_sibling
from recordmill.transforms.inputs.yolo_names import YAML_ENDINGS, read_names


@dataclass(frozen=True, slots=True)
class MaskClasses:
    """The classes that a file names.

    Attributes:
        names: the id of each class.
        colors: their colors in the order of the ids, as `decode_mask` gives them; empty if values
            are ids.
    """

    names: Mapping[str, int]
    colors: tuple[int, ...] = ()


def read_mask_classes(root: str, path: str, has_colors: bool) -> MaskClasses:
    """Returns the classes in a file below an input, from memory if it is unchanged.

    Args:
        root: the input.
        path: the file's path below it.
        has_colors: whether it is a table of colors; otherwise, it is `data.yaml`, or text with a
            name or `id:name` in each line.

    Raises:
        Rejected: `bad_annotations`: it cannot be read, or names no classes, or too many.
    """
    try:
        return _read_classes(*locate(root, path), has_colors)
    except Rejected as rejected:
        raise bad_annotations(f"{path} names no classes: {rejected.detail}") from None
    except ValueError as error:
        raise bad_annotations(f"{path} names no classes: {why_unread(error)}") from None


@lru_cache(maxsize=16)
def _read_classes(uri: str, size: int, version: str, has_colors: bool) -> MaskClasses:
    data = read_sibling(uri)
    if has_colors:
        table = read_color_table(data)
        names = {name: number for number, name in enumerate(table)}
        _check_ids(names)
        return MaskClasses(names, tuple(table.values()))
    text = data.decode("utf-8-sig")
    if uri.endswith(YAML_ENDINGS):
        names = read_names(uri, text)
    elif uri.endswith(".pbtxt"):
        names = {name: number for number, name in parse_label_map(text).items()}
    else:
        names = {name: number for number, name in parse_class_names(text, 0).items()}
    _check_ids(names)
    return MaskClasses(names)


def _check_ids(names: Mapping[str, int]) -> None:
    """Raises ValueError unless there are classes, and masks of 16 bits can have their ids."""
    if not names:
        raise ValueError("it is empty")
    wrong = [name for name, number in names.items() if not 0 <= number <= IGNORED_ID_16]
    if wrong:
        raise ValueError(f"the id of {wrong[0]!r:.60} is not from 0 to {IGNORED_ID_16:,}")
