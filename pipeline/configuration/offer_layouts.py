"""Offers the layouts that an input may be meant as, each with the flags that choose it."""

import posixpath
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from recordmill.pipeline.configuration.config import AUTO, flags_of
from recordmill.transforms.inputs.file_roles import TITLES, YOLO_TEXT
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.tables.known_tables import find_columns
from recordmill.transforms.inputs.unclaimed_files import role_of

_TITLE_OF = {**TITLES, "yolo": YOLO_TEXT}
"""The formats of annotations by the kinds of sources that read them."""

_LISTS_OF_YOLO = ("classes.txt", "data.yaml", "data.yml", "obj.names", "obj.data")


def offer_layouts(found: Sequence[Recognized], sketch: FolderSketch) -> list[str]:
    """Describes layouts, each with the flags that choose it, or what it still needs.

    The flags leave out the annotations of the other layouts. Other files are still checked:
    `layout: auto` is among the flags if the kind is, which is not if all have it.

    Args:
        found: the layouts.
        sketch: the input.
    """
    kinds = list(dict.fromkeys(each.kind for each in found))
    files = {kind: [*_find_annotations(kind, sketch)] for kind in kinds}
    ways = []
    for each in found:
        what = f"{each.kind} ({each.describe(each.left_out)})"
        if each.needs:
            ways.append(f"{what}, but {each.needs}")
            continue
        settings: dict[str, Any] = {**each.settings, "layout": AUTO}
        if len(kinds) == 1:
            source = {key: value for key, value in each.settings["source"].items() if key != "kind"}
            settings = {**each.settings, "source": source}
        elif left_out := _leave_out(each.kind, files, sketch):
            settings["ignore"] = [*sketch.ignored, *left_out]
        ways.append(f"{what}: {flags_of(settings)}")
    return ways


def _find_annotations(kind: str, sketch: FolderSketch) -> Iterator[str]:
    """Yields those of the files with known first bytes that a source of this kind reads."""
    for path, head in sketch.heads.items():
        role = role_of(path, head)
        is_table = kind == "manifest" and role.role == "table" and find_columns(path, sketch)
        if is_table or role.title == _TITLE_OF.get(kind):
            yield path
    if kind == "yolo":
        yield from (name for name in _LISTS_OF_YOLO if name in sketch.top.files)


def _leave_out(kind: str, files: Mapping[str, Sequence[str]], sketch: FolderSketch) -> list[str]:
    """Returns patterns for the annotations of the other kinds."""
    own = set(files[kind])
    others = {path for each, paths in files.items() if each != kind for path in paths} - own
    return sorted({_pattern_for(path, own, sketch) for path in others})


def _pattern_for(path: str, own: Collection[str], sketch: FolderSketch) -> str:
    """A pattern for a file of annotations and those like it, and for none of a layout's own."""
    folder, _, name = path.rpartition("/")
    ending = posixpath.splitext(name)[1]
    first = f"{path.partition('/')[0]}/"
    below = {
        each
        for at, names in sketch.names.items()
        if f"{at}/".startswith(first)
        for each in names.files
    }
    is_whole = folder and all(each.endswith(ending) for each in below)
    is_apart = not any(each.startswith(first) for each in own)
    if is_whole and is_apart and not sketch.holds_images(first.rstrip("/")):
        return f"/{escape_glob(first)}"
    same = [each for each in sketch.at(folder).files if each.endswith(ending)]
    is_shared = any(each.endswith(ending) and posixpath.dirname(each) == folder for each in own)
    if len(same) == 1 or is_shared:
        return f"/{escape_glob(path)}"
    within = f"/{escape_glob(folder)}" if folder else ""
    return f"{within}/*{escape_glob(ending)}"
