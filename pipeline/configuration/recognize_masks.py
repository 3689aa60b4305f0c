"""Recognizes images with semantic masks: parallel folders, or masks next to their images."""

import posixpath
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import filterfalse
from typing import Any

import orjson

from recordmill import storage
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Recognized,
    given_splits,
    split_for_word,
)
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.image_looks import SAMPLED_FILES, spread
from recordmill.transforms.inputs.mask_classes import MaskClasses, read_mask_classes
from recordmill.transforms.inputs.mask_looks import MaskLook, look_at_masks
from recordmill.transforms.inputs.mask_pairs import MaskPairs, find_mask_pairs
from recordmill.transforms.inputs.pair_names import split_word_of
from recordmill.transforms.inputs.pairs import patterns_of
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.split_lists import BOTH, find_list_words, name_listed
from recordmill.transforms.inputs.tables.class_name_files import NAME_LISTS

MOST_READ_ON_STORE = 4
"""Masks of all inputs that are read on stores, where each takes a request."""

_COLOR_TABLES = (
    *("label_colors.txt", "labelmap.txt", "colors.txt", "colormap.txt", "class_dict.csv"),
    *("label_map.json", "colormap.json", "colors.json", "classes.json", "palette.json"),
)
"""Names of tables of colors."""

_NAME_FILES = (*NAME_LISTS, "codes.txt", "data.yaml")
"""Names of files that name the classes of ids."""

_NAMING = ("class_names", "class_names_file", "mask_colors")
"""The settings of the source that name the classes."""


def recognize_masks(
    sketch: FolderSketch,
    pairs: Pairs,
    lists: Sequence[str],
    listing: ListingSettings,
    given: Mapping[str, Any],
    inputs: int = 1,
) -> Recognized | None:
    """Recognizes images and masks; None if second images may be something else.

    Args:
        sketch: the input.
        pairs: what its second images are.
        lists: files that name images and masks, and say no more than folders do.
        listing: the patterns that the user has given.
        given: the settings of the source that the user has given.
        inputs: how many inputs share the requests to a store.
    """
    found = find_mask_pairs(pairs, sketch.images)
    if found is None or not found.leaves_only_tests:
        return None
    ignored = [f"/{escape_glob(each)}" for each in lists]
    return _recognize_found(sketch, found, ignored, listing, given, inputs)


def suggest_masks(
    sketch: FolderSketch,
    pairs: Pairs,
    lists: Sequence[str],
    listing: ListingSettings,
    inputs: int = 1,
) -> Recognized | None:
    """Returns the layout that stores second images as masks, of images without a class.

    Of several folders of second images, the first one counts that has one for each image, and
    those of instances come last. The other ones are ignored.

    Args:
        sketch: the input.
        pairs: what its second images are.
        lists: as for `recognize_masks`.
        listing: the same.
        inputs: the same.

    Returns:
        None if second images may be something else, or if their values need a setting that only
        the user knows.
    """
    images = sketch.images
    for seconds in _list_kinds(pairs):
        read = {path: images[path] for path in (*pairs.kept, *seconds) if path in images}
        others = images.keys() - read.keys()
        found = find_mask_pairs(replace(pairs, left_out=seconds), read, are_names=True)
        if found is None or not found.leaves_only_tests or not others <= {*pairs.left_out}:
            continue
        ignored = [f"/{escape_glob(each)}" for each in lists]
        ignored += patterns_of([*others], [*read])
        layout = _recognize_found(sketch, found, ignored, listing, {}, inputs)
        if layout is not None and not layout.questions:
            return layout
    return None


def _list_kinds(pairs: Pairs) -> Iterator[tuple[str, ...]]:
    """Yields all folders of second images, then groups of them that differ in splits alone.

    The masks of each group are read, so no group comes twice.
    """
    yield pairs.left_out
    kinds: dict[tuple[str, ...], list[str]] = {}
    for path in sorted(pairs.left_out, key=lambda path: "instance" in path.lower()):
        kinds.setdefault(tuple(filterfalse(split_word_of, path.split("/"))), []).append(path)
    if len(kinds) > 1:
        yield from map(tuple, kinds.values())


def _recognize_found(
    sketch: FolderSketch,
    found: MaskPairs,
    others: Sequence[str],
    listing: ListingSettings,
    given: Mapping[str, Any],
    inputs: int,
) -> Recognized | None:
    """Returns the layout of images and masks; None if they do not look like masks.

    Args:
        sketch: the input.
        found: the images and their masks.
        others: patterns of what is left out besides.
        listing: as for `recognize_masks`.
        given: the same.
        inputs: the same.
    """
    if not sketch.root:
        return None
    is_local = storage.is_local(sketch.root)
    most = SAMPLED_FILES if is_local else MOST_READ_ON_STORE // inputs
    look = look_at_masks(sketch.root, spread(found.found, most), is_local) if most else None
    named = {key: given[key] for key in _NAMING if given.get(key)}
    if look is None or (found.classes and (named or look.form == "colors")):
        return None
    source = _source_of(found)
    if not named and not found.classes:
        named |= _find_classes(sketch, look)
    source |= named
    if look.form == "levels":
        source["mask_threshold"] = look.threshold
    settings: dict[str, Any] = {"source": source, "convention": _convention_of(found)}
    if look.needs_16_bits:
        settings["masks"] = "png16"
    if found.words:
        settings |= given_splits("from_source", found.words)
    elif lists_of_splits := _find_split_lists(sketch, found):
        source["sets"], words = lists_of_splits
        splits = {word: split_for_word(word) or "train" for word in words}
        settings["splits"] = {"from_source": splits}
    if named:
        settings["labels"] = {"ids": "integers"}
    ignored = [*(f"/{escape_glob(each)}/" for each in found.without_masks), *others]
    if ignored:
        settings["ignore"] = ignored
    may_ask = not named and not found.classes
    questions = (
        _ask_for_threshold(look),
        _ask_for_classes(sketch, look) if may_ask else None,
        _ask_for_patterns(ignored, listing),
    )
    return Recognized(
        settings,
        _describe(found),
        questions=tuple(each for each in questions if each),
    )


def _source_of(found: MaskPairs) -> dict[str, Any]:
    return {"kind": "image_masks", "images": found.images, "masks": found.masks}


def _convention_of(found: MaskPairs) -> str:
    """Returns the convention that has places for masks, and for classes if there are some."""
    return "tfds" if found.classes else "deeplab"


def _describe(found: MaskPairs) -> str:
    image, mask = found.found[0]
    kinds = f" in {len(found.classes):,} classes" if found.classes else ""
    said = f"image and mask pairs: {len(found.found):,}{kinds}, such as {image} and {mask}"
    if found.without_masks:
        said += f"; left out, without masks: {', '.join(found.without_masks)}"
    return said


def _find_classes(sketch: FolderSketch, look: MaskLook) -> Mapping[str, str]:
    """Returns the setting for the file at the top that names the classes; empty if none does."""
    for name in _list_class_files(sketch, look):
        with suppress(Rejected):
            classes = read_mask_classes(sketch.root, name, look.form == "colors")
            if not _find_unnamed(classes, look):
                return {_key_of_classes(look): name}
    return {}


def _list_class_files(sketch: FolderSketch, look: MaskLook) -> list[str]:
    """Returns the files at the top that may name the classes, by their names."""
    usual = {"colors": _COLOR_TABLES, "ids": _NAME_FILES}.get(look.form, ())
    return [name for name in sketch.top.files if name.lower() in usual]


def _key_of_classes(look: MaskLook) -> str:
    """Returns the setting of the source for a file that names the classes."""
    return "mask_colors" if look.form == "colors" else "class_names_file"


def _find_split_lists(sketch: FolderSketch, found: MaskPairs) -> tuple[str, list[str]] | None:
    """Returns the path of the lists that name images, and their words; None if there are none."""
    stems = {posixpath.splitext(posixpath.basename(image))[0] for image, _ in found.found}
    for folder, names in sketch.names.items():
        words = find_list_words("{split}.txt", names.files)
        if not words or posixpath.basename(folder) == "Main":
            continue
        words = [word for word in words if word != BOTH or not {"train", "val"} & {*words}]
        with suppress(OSError, UnicodeDecodeError):
            heads = (
                storage.read_range(f"{sketch.root}/{posixpath.join(folder, word)}.txt", 0, 2**20)
                for word in words
            )
            if all(name_listed(head) & stems for head in heads):
                return posixpath.join(folder, "{split}.txt"), words
    return None


def _find_unnamed(classes: MaskClasses, look: MaskLook) -> list[int]:
    """Returns the values that were seen and that a file does not name, but the ignored one."""
    known = set(classes.colors) if classes.colors else {*classes.names.values(), look.ignored}
    return sorted(look.values - known)


def _ask_for_threshold(look: MaskLook) -> tuple[str, tuple[str, ...]] | None:
    """Asks where one of two levels ends if there are values between them."""
    if look.form != "smooth levels":
        return None
    advice = (
        "its masks have two levels with others between them: add --set "
        f"source.mask_threshold={look.threshold}, and values from {look.threshold} on become "
        "the class 1, others 0"
    )
    return advice, ("source.mask_threshold",)


def _ask_for_classes(sketch: FolderSketch, look: MaskLook) -> tuple[str, tuple[str, ...]] | None:
    """Asks for the names of values that no file names; ids need none, unless others have some."""
    key = f"source.{_key_of_classes(look)}"
    has_colors = look.form == "colors"
    for name in _list_class_files(sketch, look):
        try:
            unnamed = _find_unnamed(read_mask_classes(sketch.root, name, has_colors), look)
        except Rejected as rejected:
            if has_colors:
                return f"its masks have colors, and {rejected.detail}: correct it", (key,)
            continue
        one = list(_split(unnamed[0])) if has_colors else unnamed[0]
        fate = "reject images with other colors" if has_colors else "leave such ids without names"
        value = shlex.quote(f"{key}={name}")
        ignored = shlex.quote(
            f"ignore={orjson.dumps([*sketch.ignored, f'/{escape_glob(name)}']).decode()}"
        )
        advice = (
            f"its masks have values that {name} does not name, such as {one}: add them to it, "
            f"or add --set {value} to {fate}, or --set {ignored} if it does not name their classes"
        )
        return advice, (key,)
    if not has_colors:
        return None
    shown = ", ".join(f'"class {at}": {list(_split(color))}' for at, color in _list_some(look))
    advice = (
        "its masks have colors, and no table names them: write one next to the folders, such "
        f"as colors.json with {{{shown}}}, and add --set source.mask_colors=colors.json"
    )
    return advice, (key,)


def _list_some(look: MaskLook) -> list[tuple[int, int]]:
    return [*enumerate(sorted(look.values)[:3])]


def _split(color: int) -> tuple[int, int, int]:
    """Returns red, green and blue of a value of a mask."""
    return color & 255, color >> 8 & 255, color >> 16


def _ask_for_patterns(
    ignored: Sequence[str], listing: ListingSettings
) -> tuple[str, tuple[str, ...]] | None:
    """Asks for the patterns that the user's own replace."""
    if not ignored or not listing.ignore:
        return None
    text = orjson.dumps([*listing.ignore, *ignored]).decode()
    return f"files without masks are left: add --set {shlex.quote(f'ignore={text}')}", ()
