"""The flags that convert one folder of an input, and the files around it that they leave out."""

import posixpath
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from recordmill.pipeline.configuration.config import flags_of
from recordmill.schemas.formatting import show_first
from recordmill.transforms.inputs.class_lists import name_levels, says_nothing_new
from recordmill.transforms.inputs.file_roles import HEAD_BYTES
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.patterns import compile_globs, move_patterns
from recordmill.transforms.inputs.sources.source import load_source
from recordmill.transforms.inputs.unclaimed_files import find_sibling, role_of


def input_flags(
    place: str, folder: str, ignored: Sequence[str], more: Mapping[str, Any] | None = None
) -> str:
    """Returns the flags that make a folder the input.

    Args:
        place: the path of the present input.
        folder: the folder below it.
        ignored: the patterns of `ignore` for the present input.
        more: further settings.
    """
    flags = f"--input {shlex.quote(f'{place}/{folder}')}"
    moved = move_patterns(ignored, folder)
    settings: dict[str, Any] = {**(more or {})}
    if moved and moved != list(ignored):
        settings["ignore"] = moved
    return f"{flags} {flags_of(settings)}" if settings else flags


def advise_input(sketch: FolderSketch, place: str, folder: str) -> str:
    """Returns the flags that make a folder the input, and names what they leave out.

    Args:
        sketch: the present input.
        place: its path.
        folder: the folder below it.
    """
    around = find_files_around(sketch, folder, sketch.ignored)
    return name_left_out(input_flags(place, folder, sketch.ignored), around)


def name_left_out(flags: str, paths: Sequence[str]) -> str:
    """Returns flags, and after them the files that they leave out, if there are some."""
    if not paths:
        return flags
    return f"{flags}, without {show_first(paths)}, which may carry labels, boxes, masks or splits"


def find_files_around(
    sketch: FolderSketch, folder: str, ignored: Sequence[str] = (), kind: str = "class_folders"
) -> list[str]:
    """Finds the files outside a folder that may carry labels, boxes, masks or splits.

    Known files of the format are not among them, nor are lists that only repeat the classes, nor
    files in other folders of images, which are collections of their own.

    Args:
        sketch: the input.
        folder: a folder below it.
        ignored: the patterns of files that are left out on purpose.
        kind: the source that would read the folder.
    """
    levels = name_levels(sketch.images)
    siblings = load_source(kind)().siblings
    globs = compile_globs(tuple(ignored))
    found = []
    for path in _list_files_around(sketch, folder):
        head = sketch.heads.get(path)
        is_whole = head is not None and len(head) < HEAD_BYTES
        if globs.match_file(path) or find_sibling(path, siblings) is not None:
            continue
        if is_whole and says_nothing_new(head or b"", levels):
            continue
        role = role_of(path, head)
        if role.may_carry:
            found.append(path)
    return found


def _list_files_around(sketch: FolderSketch, folder: str) -> Iterator[str]:
    """Yields the files, but images, around a folder and in folders without images next to it."""
    above = {"", *accumulate(folder.split("/"), posixpath.join)}
    for at, names in sketch.contents.items():
        if f"{at}/".startswith(f"{folder}/"):
            continue
        parts = [*accumulate(at.split("/"), posixpath.join)]
        if any(part not in above and sketch.holds_images(part) for part in parts):
            continue
        images = set(names.images)
        yield from (posixpath.join(at, name) for name in names.files if name not in images)


def are_named_by_plan(sketch: FolderSketch, paths: Sequence[str]) -> bool:
    """Tells if it is certain that one of these files may carry labels, so that the plan stops.

    The plan reads more of other texts, and may find that they are descriptions.
    """
    roles = [role_of(path, sketch.heads.get(path)) for path in paths]
    return any(each.may_carry and each.role != "other" for each in roles)
