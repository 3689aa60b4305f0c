"""Pairs of images and masks: the templates of paths that name both sides, from their names."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Literal

from recordmill.transforms.inputs.folder_sketch import split_for_word
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.image_looks import LOSSLESS
from recordmill.transforms.inputs.pair_names import (
    DEPTH_WORDS,
    MASK_LETTER,
    cores_of,
    is_telling,
    split_word_of,
    stem_of,
    words_in,
)
from recordmill.transforms.inputs.unlikely_classes import (
    NO_CLASS,
    are_unlikely_classes,
    explain_unlikely,
)

_LEAST_PAIRED = 0.9
"""The smallest share of images that have a mask, and of masks that have an image."""

_PREDICTED = re.compile("pred(ict|s?$|s?[^a-z])", re.IGNORECASE)
"""What is in the names of masks that a model has drawn: they are not what others learn from."""

_OTHER_VALUES = DEPTH_WORDS | {"instance", "instances", "segmentationobject"}
"""Words, in lower case, for second images whose values are measured, or number objects."""

_CITIES = "leftimg8bit"
"""Cityscapes' folder of images, in which folders are cities, not classes."""

_CLASS_IDS = ("_labelIds.png", "_labelTrainIds.png")
_NEXT_TO_IDS = (*_CLASS_IDS, "_instanceIds.png", "_instanceTrainIds.png", "_color.png")
"""The ends of the names of Cityscapes' masks of classes, and of all its masks."""

_CLASS_FOLDERS = ("SegmentationClass", "SegmentationClassPNG")
_NEXT_TO_CLASSES = (
    "SegmentationObject",
    "SegmentationClassVisualization",
    "SegmentationObjectVisualization",
)
"""The folders of masks of classes that Pascal VOC and LabelMe have, and others next to them."""

_JPEGS = (".jpg", ".jpeg")


@dataclass(frozen=True, slots=True)
class MaskPairs:
    """Images and their masks.

    Attributes:
        images: the template of the paths of images.
        masks: that of masks.
        words: the words for splits in the place of `{split}`.
        found: the path of each image, and that of its mask.
        without_masks: folders of images without masks.
        classes: the folders in the place of `{class}`.
    """

    images: str
    masks: str
    words: tuple[str, ...]
    found: tuple[tuple[str, str], ...]
    without_masks: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def leaves_only_tests(self) -> bool:
        """Whether all images without masks are test images, which often have none."""
        return all(map(_is_of_tests, self.without_masks))


@dataclass(frozen=True, slots=True)
class _MaskPair:
    image: str
    mask: str
    core: str  # what both names have in common


@dataclass(frozen=True, slots=True)
class _PathForms:
    images: str
    masks: str
    word: str
    label: str = ""


_FolderRole = Literal["splits", "classes", "names"]
"""What folders are: splits alone, or also classes, or parts of the names of images."""


def find_mask_pairs(
    pairs: Pairs, folders: Mapping[str, Sequence[str]], are_names: bool = False
) -> MaskPairs | None:
    """Returns the images and masks of pairs, if two templates name all of them.

    Folders must be splits, Cityscapes' cities, or likely classes.

    Args:
        pairs: what second images are, by their names and looks.
        folders: the names of the images in each folder, by path below the input.
        are_names: whether folders that may be classes are parts of the names of images.
    """
    if pairs.is_even or pairs.are_sides or pairs.may_be_classes or pairs.may_be_single:
        return None
    folders = {
        path: without_other_masks(names)
        for path, names in folders.items()
        if not _is_next_to_classes(path, folders)
    }
    if pairs.left_out:
        matched = _match_folders(pairs, folders)
    elif pairs.patterns:
        matched = [_match_within(folder, images) for folder, images in folders.items()]
    else:
        return None
    found = [*chain.from_iterable(own or () for own in matched)]
    roles: Sequence[_FolderRole] = ("names",) if are_names else ("splits", "classes")
    known = next(filter(None, (_find_forms(found, role) for role in roles)), None)
    if None in matched or not known:
        return None
    paired = {path for pair in found for path in (pair.image, pair.mask)}
    without = [each for each in folders if not paired & _paths_in(each, folders)]
    others = sum(len(images) for folder, images in folders.items() if folder not in without)
    if len(paired) < _LEAST_PAIRED * others:
        return None
    if _PREDICTED.search(known[0].masks) or _have_other_values(known[0]):
        return None
    return MaskPairs(
        known[0].images,
        known[0].masks,
        tuple(sorted({each.word for each in known} - {""})),
        tuple(sorted((pair.image, pair.mask) for pair in found)),
        tuple(without),
        tuple(sorted({each.label for each in known} - {""})),
    )


def _find_forms(pairs: Sequence[_MaskPair], role: _FolderRole) -> list[_PathForms]:
    """Returns the forms of all pairs, with the same templates; empty if these differ.

    Args:
        pairs: images and masks.
        role: what folders are. Classes are those that not all pairs have.
    """
    folders = [{*each.image.split("/")[:-1], *each.mask.split("/")[:-1]} for each in pairs]
    shared = frozenset.intersection(*map(frozenset, folders)) if folders else frozenset()
    forms = {_find_templates(pair, role, shared) for pair in pairs}
    known = [each for each in forms if each]
    labels = {each.label for each in known}
    are_classes = explain_unlikely(labels) is None and not are_unlikely_classes(labels)
    if role == "classes" and ("" in labels or len(labels) < 2 or not are_classes):
        return []
    are_alike = len({(each.images, each.masks) for each in known}) == 1
    return known if len(known) == len(forms) and are_alike else []


def _have_other_values(forms: _PathForms) -> bool:
    """Returns whether a word for values other than ids of classes is in the second paths alone.

    Folders count as a whole, too: `SegmentationObject` is two words.
    """
    firsts, seconds = (
        words_in([path]) | {part.lower() for part in path.split("/")}
        for path in (forms.images, forms.masks)
    )
    return not _OTHER_VALUES.isdisjoint(seconds - firsts)


def guess_mask_folders(folders: Mapping[str, Sequence[str]]) -> Pairs | None:
    """Returns folders named as those of masks, and all others; None if either are missing.

    Their images may have names that say nothing: `1_L.png` in `train_labels`, in colors.

    Args:
        folders: the names of the images in each folder, by path below the input.
    """
    seconds = [path for path in folders if any(map(is_telling, path.split("/")))]
    firsts = [path for path in folders if path not in seconds]
    if not firsts or not seconds:
        return None
    return Pairs(f"{seconds[0]} is named as masks are", tuple(firsts), tuple(seconds))


def _paths_in(folder: str, folders: Mapping[str, Sequence[str]]) -> set[str]:
    return {posixpath.join(folder, name) for name in folders[folder]}


def _is_of_tests(folder: str) -> bool:
    """Returns whether a folder holds test images."""
    return any(split_word_of(part) == "test" for part in folder.split("/"))


def _match_folders(
    pairs: Pairs, folders: Mapping[str, Sequence[str]]
) -> list[list[_MaskPair] | None]:
    """Returns the pairs for each folder of masks; None for one whose images are not clear."""
    firsts = [path for path in pairs.kept if path in folders]
    seconds = [path for path in pairs.left_out if path in folders]
    by_words = {path: cores_of(folders[path]) for path in (*firsts, *seconds)}
    by_affixes = _strip_affixes({path: folders[path] for path in (*firsts, *seconds)})
    found: list[list[_MaskPair] | None] = []
    for cores in (by_words, by_affixes):
        grouped = {path: _group_by_core(path, folders[path], own) for path, own in cores.items()}
        images = {path: grouped[path] for path in firsts}
        found = [_match_folder(path, grouped[path], images) for path in seconds]
        if any(found):
            break
    return found


def _match_folder(
    path: str,
    masks: Mapping[str, Sequence[str]],
    images: Mapping[str, Mapping[str, Sequence[str]]],
) -> list[_MaskPair] | None:
    """Returns the pairs for one folder of masks; None if its images are not clear.

    Args:
        path: the folder.
        masks: the paths of its masks by the core of their names.
        images: the same of the images, by folder.
    """
    near = max(images, key=lambda each: _rank(path, masks, each, images[each]), default="")
    both = masks.keys() & images.get(near, {}).keys()
    several = (*(images[near][core] for core in both), *masks.values())
    if any(len(each) > 1 for each in several):
        return None
    return [_MaskPair(images[near][core][0], masks[core][0], core) for core in sorted(both)]


def _rank(
    path: str,
    masks: Mapping[str, Sequence[str]],
    other: str,
    images: Mapping[str, Sequence[str]],
) -> tuple[int, int, int]:
    """Returns how many images of a folder have a mask in another one, and what their paths share.

    Numbers of images are alike in all splits.
    """
    shared = len(set(path.split("/")) & set(other.split("/")))
    begin = _count_shared(path, other)
    end = _count_shared(path[begin:][::-1], other[begin:][::-1])
    return len(masks.keys() & images.keys()), shared, begin + end


def _group_by_core(
    folder: str, images: Sequence[str], cores: Sequence[str]
) -> dict[str, list[str]]:
    """Returns the paths of images by the cores of their names."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, core in zip(images, cores, strict=True):
        found[core].append(posixpath.join(folder, name))
    return dict(found)


def _strip_affixes(folders: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Returns names without the letters around them that all of a folder share, and others do not.

    They are in the order of the images.
    """
    stems = {path: [stem_of(name) for name in names] for path, names in folders.items()}
    before, after = dict[str, str](), dict[str, str]()
    for path, own in stems.items():
        start = re.match(r"\D*", _start_of(own))
        end = re.search(r"[^0-9A-Za-z]\D*$", _start_of([each[::-1] for each in own])[::-1])
        before[path], after[path] = start[0] if start else "", end[0] if end else ""
    for affixes in (before, after):
        if len(set(affixes.values())) == 1:
            affixes.update(dict.fromkeys(affixes, ""))
    return {
        path: [each.removeprefix(before[path]).removesuffix(after[path]) for each in own]
        for path, own in stems.items()
    }


def _start_of(texts: Sequence[str]) -> str:
    """Returns the longest start that all texts have in common."""
    first, last = min(texts), max(texts)
    return first[: _count_shared(first, last)]


def without_other_masks(images: Sequence[str]) -> Sequence[str]:
    """Returns images without those that Cityscapes has next to its masks of classes."""
    for kept in _CLASS_IDS:
        if any(name.endswith(kept) for name in images):
            others = tuple(each for each in _NEXT_TO_IDS if each != kept)
            return [name for name in images if not name.endswith(others)]
    return images


def _is_next_to_classes(path: str, folders: Container[str]) -> bool:
    """Returns whether a folder is one that Pascal VOC or LabelMe has next to masks of classes."""
    above, name = posixpath.split(path)
    there = [each for each in _CLASS_FOLDERS if posixpath.join(above, each) in folders]
    return name in _NEXT_TO_CLASSES and bool(there)


def _match_within(folder: str, images: Sequence[str]) -> list[_MaskPair] | None:
    """Returns the images of a folder with the mask next to each; None if that is not clear."""
    found = list[_MaskPair]()
    cores = cores_of(images, counted=True)  # `1_mask_1` may be a second mask of `1`
    for core, paths in _group_by_core(folder, images, cores).items():
        if len(paths) == 1:
            continue
        masks = [path for path in paths if _is_mask_name(path, core, paths)]
        if len(paths) > 2 or len(masks) != 1:
            return None
        (image,) = (path for path in paths if path not in masks)
        found.append(_MaskPair(image, masks[0], core))
    return found


def _is_mask_name(path: str, core: str, paths: Sequence[str]) -> bool:
    stem = stem_of(posixpath.basename(path))
    rest = stem.replace(core, " ", 1)
    if is_telling(rest) or rest.strip(" _.-") == MASK_LETTER:
        return True
    others = [each for each in paths if each != path and stem_of(each) == stem_of(path)]
    are_photos = bool(others) and all(each.lower().endswith(_JPEGS) for each in others)
    return are_photos and path.lower().endswith(LOSSLESS)


def _find_templates(
    pair: _MaskPair, role: _FolderRole, shared: Collection[str]
) -> _PathForms | None:
    """Returns the templates of one pair; None if folders may be classes, or names have braces.

    Args:
        pair: an image and its mask.
        role: what folders are.
        shared: the folders that all pairs have, and which are not classes.
    """
    paths, core = (pair.image, pair.mask), pair.core
    image, mask = map(posixpath.dirname, paths)
    folders = _find_folders(image, mask, role, shared)
    names = [posixpath.basename(path) for path in paths]
    is_clear = core and all(stem_of(name).count(core) == 1 for name in names)
    if folders is None or not is_clear or "{" in "".join(paths):
        return None
    stems = [stem_of(name).replace(core, "{name}", 1) for name in names]
    if role == "names" and not all(stem.startswith("{name}") for stem in stems):
        return None
    templates = [
        posixpath.join(folder, stem)
        for folder, stem in zip((folders.images, folders.masks), stems, strict=True)
    ]
    if templates[0] == templates[1]:
        templates = [
            f"{template}{posixpath.splitext(name)[1]}"
            for template, name in zip(templates, names, strict=True)
        ]
    return _PathForms(templates[0], templates[1], folders.word, folders.label)


def _find_folders(
    image: str, mask: str, role: _FolderRole, shared: Collection[str]
) -> _PathForms | None:
    """Returns the templates of the folders of a pair; None if one may be a class.

    Args:
        image: the folder of the image.
        mask: that of the mask.
        role: as for `_find_templates`.
        shared: the same.
    """
    ones, others = (path.split("/") if path else [] for path in (image, mask))
    start = _count_shared(ones, others)
    end = _count_shared(ones[start:][::-1], others[start:][::-1])
    before, after = ones[:start], ones[len(ones) - end :]
    own = ["/".join(each[start : len(each) - end]) for each in (ones, others)]
    words = [part for part in (*before, *after) if split_for_word(part)]
    if role == "names" or _CITIES in own[0].lower():
        after = [part for part in after if split_for_word(part)]
    classes = list[str]()
    if role == "classes":
        classes = [each for each in (*before, *after) if _is_class(each, shared)]
    others = [each for each in after if not split_for_word(each) and each not in classes]
    if len(classes) > 1 or not all(NO_CLASS.fullmatch(each.lower()) for each in others):
        return None
    inner = [word for word in re.findall("[A-Za-z]+", own[0]) if split_for_word(word)]
    if inner and inner[0] in own[1]:
        words.append(inner[0])
        own = [part.replace(inner[0], "{split}", 1) for part in own]
    if len(words) > 1:
        return None
    before, after = ([_as_template(each, classes) for each in parts] for parts in (before, after))
    templates = ["/".join(filter(None, (*before, middle, *after))) for middle in own]
    return _PathForms(templates[0], templates[1], "".join(words), "".join(classes))


def _is_class(part: str, shared: Collection[str]) -> bool:
    is_known = split_for_word(part) or NO_CLASS.fullmatch(part.lower())
    return part not in shared and not is_known


def _as_template(part: str, classes: Collection[str]) -> str:
    if part in classes:
        return "{class}"
    return "{split}" if split_for_word(part) else part


def _count_shared(ones: Sequence[str], others: Sequence[str]) -> int:
    """Returns how many parts or letters two paths have in common at their start."""
    pairs = zip(ones, others, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
