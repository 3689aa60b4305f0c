"""Refuses images and their masks in folders that look like classes, with commands that work."""

import posixpath
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, filterfalse, takewhile
from typing import Any

from recordmill.pipeline.configuration.advise_input import find_files_around, input_flags
from recordmill.pipeline.configuration.config import flags_of
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.file_roles import YOLO_TEXT
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized, given_splits
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.listed_pairs import make_looker
from recordmill.transforms.inputs.mask_pairs import without_other_masks
from recordmill.transforms.inputs.pair_names import split_word_of
from recordmill.transforms.inputs.pairs import find_pairs, patterns_of
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.sources.class_folders import find_telling_folders
from recordmill.transforms.inputs.sources.source import load_source
from recordmill.transforms.inputs.suggest_pairs import suggest_pairs, suggest_pairs_beside
from recordmill.transforms.inputs.unclaimed_files import role_of
from recordmill.transforms.inputs.unlikely_classes import NO_CLASS, explain_unlikely
from recordmill.transforms.inputs.views import find_views

MOST_READ = 16
"""Images of all inputs that recognition reads on stores, where each takes a request.

The listing reads `listed_pairs.MOST_READ_ON_STORE` more.
"""


def find_pairs_in(sketch: FolderSketch, inputs: int = 1) -> Pairs | None:
    """Finds pairs of images in an input, by their names and looks; None if there are none.

    Args:
        sketch: the input.
        inputs: how many inputs share the requests to a store.
    """
    images = {path: without_other_masks(names) for path, names in sketch.images.items()}
    return find_pairs(images, make_looker(sketch.root, MOST_READ // inputs))


def refuse_pairs(
    sketch: FolderSketch,
    place: str,
    listing: ListingSettings,
    pairs: Pairs | None,
    drawn: Recognized | None = None,
) -> None:
    """Refuses an input that holds second images, such as masks, if it would be class folders.

    Args:
        sketch: the input.
        place: the input's path.
        listing: the patterns and the group that the user has given. Images that `splits.group`
            keeps together may be several of one thing.
        pairs: what `find_pairs_in` has found.
        drawn: the layout that stores second images as masks, of images without a class.

    Raises:
        UsageError: there are second images; the text has the commands that leave them out.
    """
    pairs = pairs or _find_by_names(sketch)
    if pairs is None and listing.group is None:
        pairs = _find_views(sketch, sketch.images)
    if pairs is None:
        return
    said = "masks and other second images are not stored, and are not classes"
    if pairs.left_out and not any(map(sketch.holds_images, pairs.left_out)):
        said = f"{', '.join(pairs.left_out)} may hold annotations, which are not read"
        if text := _find_yolo_text(sketch, pairs.left_out):
            said = f"{text} is a text file of YOLO: {_explain_yolo_names(pairs, text)} to read it"
    lists = find_lists(sketch, pairs)
    if lists:
        said = f"{said}, nor are the lists that name both, such as {lists[0]}"
    escaped = [f"/{escape_glob(path)}" for path in lists]
    splits = _find_splits(sketch)
    ignored = [*listing.ignore, *escaped]
    advice = _advise(sketch, pairs, place, ignored, splits)
    if offers := _offer_to_store(sketch, pairs, drawn):
        said = "second images are not classes"
        advice = "; ".join([advice, *offers])
    names = {posixpath.basename(path) for path in (*pairs.kept, *pairs.left_out)}
    if pairs.may_be_classes and explain_unlikely(names) is None and not _hold_classes(pairs.kept):
        classes = {"source": {"kind": "class_folders"}}
        flags = flags_of(classes | given_splits("from_folders", sketch.split_folders))
        advice = f"{advice}; if they are classes, add {flags}"
    if _has_cityscapes_objects(sketch):
        flags = "--config configs/cityscapes_objects.yaml"
        advice = f"{advice}; to store boxes and masks of objects, use {flags}"
    if pairs.may_be_single:
        said = "one image is stored of each thing"
        advice = f"{advice}; if they are images of their own, add {_as_images(sketch)}"
    raise UsageError(f"{place}: {pairs.why}: {said}; {advice}")


def _offer_to_store(sketch: FolderSketch, pairs: Pairs, drawn: Recognized | None) -> list[str]:
    """Returns the flags that store second images with their images; empty if there are none.

    Args:
        sketch: the input.
        pairs: its second images.
        drawn: the layout that stores them as masks of images without a class.
    """
    offers = list[str]()
    if drawn:
        flags = flags_of(drawn.settings)
        offers.append(f"to store the masks of images, which have no class then, add {flags}")
    if both := _store_both(sketch, pairs):
        offers.append(f"to store both in one record, add {flags_of(both)}")
    return offers


def _store_both(sketch: FolderSketch, pairs: Pairs) -> Mapping[str, Any] | None:
    """Returns the settings that store second images with the first ones; None if none would."""
    images = sketch.images
    if pairs.left_out:
        return suggest_pairs(pairs, images, sketch.split_folders)
    return suggest_pairs_beside(images, sketch.split_folders, not pairs.may_be_single)


def _has_cityscapes_objects(sketch: FolderSketch) -> bool:
    """Returns whether folders of Cityscapes have masks of objects."""
    names = chain.from_iterable(sketch.images.values())
    is_complete = {"gtFine", "leftImg8bit"} <= {*sketch.top.folders}
    return is_complete and any(name.endswith("_gtFine_instanceIds.png") for name in names)


def _hold_classes(kept: Sequence[str]) -> bool:
    """Returns whether the sides are around folders of several names, as in `raw/cat`, `raw/dog`."""
    return len({posixpath.basename(path) for path in kept if "/" in path}) > 1


def _find_views(sketch: FolderSketch, images: Mapping[str, Sequence[str]]) -> Pairs | None:
    """Finds several images of each thing, unless their names may hold labels."""
    if any(load_source("filename_labels").recognize(sketch)):
        return None
    return find_views(images)


def _as_images(sketch: FolderSketch) -> str:
    """Returns the flags that take every image for one of its own, in classes if there are some."""
    found = next(iter(load_source("class_folders").recognize(sketch)), None)
    settings: Mapping[str, Any] = {"source": {"kind": "class_folders", "class_from": "none"}}
    if found is not None:
        settings = found.settings
    return flags_of(settings)


def _find_yolo_text(sketch: FolderSketch, folders: Sequence[str]) -> str | None:
    """Returns the first text file with boxes of YOLO in these folders or below."""
    for path, head in sorted(sketch.heads.items()):
        if path.partition("/")[0] in folders and role_of(path, head).title == YOLO_TEXT:
            return path
    return None


def _explain_yolo_names(pairs: Pairs, text: str) -> str:
    """Says which folders to rename so that images and text files are in folders of YOLO's names."""
    renamed = {text.partition("/")[0]: "labels"}
    if len(pairs.kept) == 1:
        renamed[pairs.kept[0]] = "images"
    return " and ".join(
        f"rename the folder {old} to {new}" for old, new in renamed.items() if old != new
    )


def find_lists(sketch: FolderSketch, pairs: Pairs) -> list[str]:
    """Returns the lists of images and masks that say no more than the folders of splits do."""
    drawn = {posixpath.basename(path) for path in pairs.left_out}
    photos = {posixpath.basename(path) for path in pairs.kept}
    found = []
    for path, head in sketch.heads.items():
        words = head.decode(errors="replace").partition("\n")[0].replace(",", " ").split()
        folders = {posixpath.basename(posixpath.dirname(word)) for word in words}
        split = split_word_of(posixpath.splitext(posixpath.basename(path))[0])
        is_known = bool(split) and split in {split_word_of(each) for each in folders & photos}
        if path.lower().endswith((".txt", ".lst", ".csv")) and folders & drawn and is_known:
            found.append(path)
    return found


def _find_by_names(sketch: FolderSketch) -> Pairs | None:
    telling = find_telling_folders(sketch)
    kept = tuple(
        path
        for path in sketch.top.folders
        if path not in telling and (sketch.holds_images(path) or path not in sketch.names)
    )
    if not kept or not telling:
        return None
    layers = _find_layers(sketch, kept)
    kept, telling = tuple(path for path in kept if path not in layers), [*telling, *layers]
    what = f"{', '.join(sketch.top.folders)} do not look like classes"
    return Pairs(what, kept, tuple(telling))


def _find_layers(sketch: FolderSketch, kept: Sequence[str]) -> list[str]:
    """The folders that hold the same folders as `images` does, and are not named as it is."""
    images = [path for path in kept if NO_CLASS.fullmatch(path.lower())]
    below = {each for path in images for each in sketch.at(path).folders}
    return [path for path in kept if path not in images and below & set(sketch.at(path).folders)]


def _find_splits(sketch: FolderSketch) -> dict[str, Any] | None:
    """Returns the settings for splits of images without classes.

    Returns None if some folders are not splits.
    """
    folders = [each for each in sketch.top.folders if sketch.holds_images(each)]
    splits = {each: split_word_of(each) for each in folders}
    are_usual = bool(sketch.split_folders)
    if are_usual or not any(splits.values()) or sketch.top.images:
        return {}
    return {"splits": {"from_folders": splits}} if all(splits.values()) else None


def _advise(
    sketch: FolderSketch,
    pairs: Pairs,
    place: str,
    ignored: Sequence[str],
    splits: Mapping[str, Any] | None,
) -> str:
    """Says how to convert the first images alone, or either side."""
    more: dict[str, Any] = {}
    if pairs.class_from and splits is not None:  # else the next question is about splits
        more = {"source": {"class_from": pairs.class_from}, **splits}
    advice = {f"to convert {kept} alone": patterns for kept, patterns in pairs.choices}
    if pairs.patterns:
        advice["to leave them out"] = pairs.patterns
    if advice and all(advice.values()):
        return "; ".join(
            f"{what}, add {flags_of({'ignore': [*ignored, *patterns], **more})}"
            for what, patterns in advice.items()
        )
    if not pairs.left_out:
        return "move them into a folder of their own"
    command = partial(_command, sketch, place, ignored=ignored, is_even=pairs.is_even)
    if pairs.class_from == "none":
        command = partial(_with_ignore, ignored=ignored, have_classes=False)
    if not pairs.is_even and not pairs.are_sides:
        return f"to convert the images alone, {command(pairs.kept, pairs.left_out)}"
    ways = [
        f"to convert {', '.join(one)} alone, {command(one, other)}"
        for one, other in ((pairs.kept, pairs.left_out), (pairs.left_out, pairs.kept))
    ]
    return "; ".join(ways)


def _command(
    sketch: FolderSketch,
    place: str,
    kept: Sequence[str],
    left_out: Sequence[str],
    ignored: Sequence[str],
    is_even: bool,
) -> str:
    """Returns the flags that convert these folders without those, and keep their splits.

    Files of annotations next to the folders are not left out without a word.
    """
    parts = posixpath.commonpath(kept).split("/") if kept else []
    common = "/".join(takewhile(lambda part: part.lower() not in SPLIT_NAMES, parts))
    is_apart = not any(f"{each}/".startswith(f"{common}/") for each in left_out)
    # The user knows of those in the folders that are left out.
    known = [*ignored, *(f"/{escape_glob(each)}/" for each in left_out)]
    if common and is_apart and not find_files_around(sketch, common, known):
        more = {"source": {"class_from": "none"}} if _is_of_cities(common) else {}
        return f"use {input_flags(place, common, ignored, more)}"
    return _with_ignore(kept, left_out, ignored, is_even=is_even)


def _with_ignore(
    kept: Sequence[str],
    left_out: Sequence[str],
    ignored: Sequence[str],
    have_classes: bool = True,
    is_even: bool = False,
) -> str:
    settings: dict[str, Any] = {"ignore": [*ignored, *patterns_of(left_out, kept)]}
    firsts = dict.fromkeys(path.partition("/")[0] for path in kept)
    splits = {first: split_word_of(first) for first in firsts}
    below = {part.lower() for path in kept for part in path.split("/")[1:]}
    are_images = all(map(NO_CLASS.fullmatch, below))
    if (
        splits
        and all(splits.values())
        and not {first.lower() for first in firsts} <= set(SPLIT_NAMES)
    ):
        settings["splits"] = {"from_folders": splits}
        if are_images:
            settings["source"] = {"class_from": "none"}
    if not have_classes or _are_sides(kept, left_out, is_even):
        settings["source"] = {"class_from": "none"}
    return f"add {flags_of(settings)}"


def _are_sides(kept: Sequence[str], left_out: Sequence[str], is_even: bool) -> bool:
    """Returns whether folders are one side of pairs, and no classes: `A` of `train/A`, `val/A`.

    Args:
        kept: the folders of this side.
        left_out: those of the other sides; folders in classes are none.
        is_even: whether nothing says which side is the first one.
    """
    parts = [path.split("/") for path in kept]
    names = {tuple(filterfalse(split_word_of, each)) for each in parts}
    have_splits = all(any(map(split_word_of, each)) for each in parts)
    are_beside = {*map(posixpath.dirname, kept)} <= {*map(posixpath.dirname, left_out)}
    are_single = len(names) == 1 and all(len(each) == 1 for each in names)
    are_in_splits = have_splits and are_single and are_beside
    return are_in_splits or (is_even and all(len(each) == 1 for each in parts))


def _is_of_cities(folder: str) -> bool:
    """Returns whether the folders in it are cities, as in Cityscapes."""
    return posixpath.basename(folder).lower() == "leftimg8bit"
