"""Refuses archives whose images would lose their labels, because of what is in or next to them."""

import posixpath
import shlex
from collections import Counter
from collections.abc import Sequence

from recordmill.pipeline.configuration.advise_input import name_left_out
from recordmill.pipeline.configuration.config import flags_of
from recordmill.pipeline.configuration.refuse_contradictions import (
    MOST_SHOWN,
    refuse_contradictions,
    show_folders,
)
from recordmill.pipeline.configuration.refuse_splits import refuse_splits_in_names
from recordmill.schemas.errors import UsageError
from recordmill.schemas.formatting import show_first
from recordmill.transforms.inputs.folder_sketch import ARCHIVE_ENDINGS, FolderSketch, Recognized
from recordmill.transforms.inputs.pairs import find_pairs
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.recognize_archives import (
    class_folders_in,
    find_same_folders,
    name_of_archive,
)
from recordmill.transforms.inputs.sources.source import load_source
from recordmill.transforms.inputs.unclaimed_files import role_of

_MOST_PATTERNS = 8


def refuse_contents(sketch: FolderSketch, place: str, are_splits_given: bool) -> None:
    """Refuses folders in archives that cannot be classes, and names that may hold labels.

    The listing finds pairs in archives.

    Args:
        sketch: the input.
        place: the input's path.
        are_splits_given: whether the user decides the splits.

    Raises:
        UsageError: there are some; the text has the commands that may be meant.
    """
    for name, whole in sketch.archives.items():
        _refuse_second_images(whole, f"{place}/{name}")
    for name, inside in class_folders_in(sketch):
        images = {path: each.images for path, each in inside.names.items() if each.images}
        if find_pairs(images, lambda _: None) is not None:
            continue
        refuse_contradictions(inside, place, name)
        if not are_splits_given and not inside.split_folders:
            refuse_splits_in_names(inside, f"{place}/{name}", "first_folder")
        for found in load_source("filename_labels").recognize(inside):
            flags = flags_of({"source": {"class_from": "none"}})
            raise UsageError(
                f"{place}/{name} may hold {found.why}, which are not read from archives: unpack "
                f"it, or, to convert the images without labels, add {flags}"
            )


def refuse_same_folders(sketch: FolderSketch, place: str) -> None:
    """Refuses archives of the same folders, which may be versions, or the classes themselves.

    Args:
        sketch: the input.
        place: the input's path.

    Raises:
        UsageError: there are some; the text has the commands that may be meant.
    """
    found = find_same_folders(sketch)
    if found is None:
        return
    folders = show_folders(found.folders)
    what = f"{show_folders(found.archives)} all hold the folders {folders}"
    if found.member:
        what += f" and images of the same names, such as {found.member}"
    by_folder = flags_of({"source": {"class_from": "first_folder"}})
    ways = [f"to take all of them for images of {folders}, add {by_folder}"]
    if found.may_be_classes:
        classes = show_folders([name_of_archive(each) for each in found.archives])
        by_archive = flags_of({"source": {"class_from": "archive"}})
        ways.append(f"if the classes are {classes}, add {by_archive}")
    if found.member:
        places = (shlex.quote(f"{place}/{each}") for each in found.archives[:MOST_SHOWN])
        alone = " or ".join(f"--input {each}" for each in places)
        others = [path for path in _list_carriers(sketch) if path not in found.archives]
        whole = name_left_out(alone, others)
        ways.append(f"if they are versions of one collection, use {whole}")
    raise UsageError(f"{place}: {what}: {'; '.join(ways)}")


def _refuse_second_images(archive: FolderSketch, where: str) -> None:
    """Refuses samples of two images and a file that is named as both: `0.json`, `0_a.jpg`.

    Raises:
        UsageError: there are such samples; the text has the commands that read one image of each.
    """
    for names in archive.names.values():
        others = [name for name in names.files if name not in names.images]
        keys = {posixpath.splitext(name)[0] for name in others}
        ends = Counter(
            (stem[:at], f"{stem[at:]}{ending}")
            for stem, ending in map(posixpath.splitext, names.images)
            for at in range(1, len(stem))
            if stem[:at] in keys and not stem[at].isalnum() and stem[at] != "."
        )
        counts = Counter(end for _, end in ends)
        are_all = len(counts) == 2 and counts.total() == len(names.images)
        if not are_all or len(set(counts.values())) > 1 or counts.total() < 4:
            continue
        first, second = sorted(counts)
        endings = {f"!*{escape_glob(posixpath.splitext(name)[1])}" for name in others}
        ways = [
            f"to convert *{kept} alone, add "
            + flags_of({"source": {"members": ["*", f"!*{escape_glob(other)}", *sorted(endings)]}})
            for kept, other in ((first, second), (second, first))
        ]
        raise UsageError(
            f"{where} holds two images of each sample, *{first} and *{second}, and a file such as "
            f"{others[0]}, but one image is stored: {'; '.join(ways)}"
        )


def refuse_mixture(
    found: Sequence[Recognized], sketch: FolderSketch, place: str, ignored: Sequence[str]
) -> None:
    """Refuses archives of images next to another layout, which may belong together.

    Args:
        found: the possible layouts.
        sketch: the input.
        place: the input's path.
        ignored: the patterns that the user has given.

    Raises:
        UsageError: there are both; the text has the commands that convert either alone.
    """
    others = [each for each in found if each.kind != "archives"]
    if not others or len(others) == len(found):
        return
    archives = sketch.all_ending(*ARCHIVE_ENDINGS)
    packed = [f"/{escape_glob(path)}" for path in archives]
    are_images_outside = any(each.images for each in sketch.deeper.values())
    advice = [f"unpack {show_first(archives)} to convert all of it"]
    for what, left_out in (
        ("the archives", _list_others(sketch)),
        ("the other files", packed if are_images_outside else []),
    ):
        if 0 < len(left_out) <= _MOST_PATTERNS:
            flags = flags_of({"ignore": [*ignored, *left_out]})
            advice.append(f"to convert {what} alone, add {flags}")
    raise UsageError(
        f"{place} holds images in archives, next to what looks like {others[0].kind} "
        f"({others[0].why}): {'; '.join(advice)}"
    )


def _list_others(sketch: FolderSketch) -> list[str]:
    """Patterns for the first folders without archives, and for files that may carry labels."""
    around = {path.partition("/")[0] for path in sketch.all_ending(*ARCHIVE_ENDINGS)}
    folders = [f"/{escape_glob(each)}/" for each in sketch.top.folders if each not in around]
    files = [f"/{escape_glob(each)}" for each in _list_carriers(sketch) if each not in around]
    return [*folders, *files]


def _list_carriers(sketch: FolderSketch) -> list[str]:
    """Returns the files in the input itself that may carry labels, boxes, masks or splits."""
    roles = {each: role_of(each, sketch.heads.get(each)) for each in sketch.top.files}
    return [each for each, role in roles.items() if role.may_carry]
