"""Pairs of images: a photograph, and a mask or another second image of the same thing.

Recordmill stores one image per record, so a folder of second images is not a class. Equal base
names alone prove nothing, because `cat/0001.jpg` and `dog/0001.jpg` are two classes: one more sign
is needed.
"""

import io
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from heapq import nsmallest
from itertools import pairwise
from math import log
from statistics import median
from typing import Any, TypeVar
from zlib import crc32

import re2
from PIL import Image

from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.folder_sketch import split_of
from recordmill.transforms.inputs.patterns import compile_globs, escape_glob

T = TypeVar("T")

AGREEMENT = 0.95
"""The least share of base names that two folders of pairs have in common."""

MOST_LEVELS = 64
"""The most values in a mask."""

MOST_GRAY_LEVELS = 8
"""The same if the photographs are gray, too."""

MOST_OF_ONE_VALUE = 0.6
"""The largest share of a photograph's pixels that have the same value: drawings have more."""

MOST_PIXELS = 2**25
"""Larger images are not decoded, which would take long."""

SAMPLED_FILES = 16
SAMPLED_FOLDERS = 8
"""How many files are read, in how many folders."""

_TELLING = re.compile(
    r"mask|annot|(?<!un)label(?!l?ed)|segment|ground_?-?truth|target|trimap|saliency|matte|silhouette",
    re.IGNORECASE,
)
"""What tells, anywhere in a name, that something was drawn."""

_TELLING_WORDS = frozenset(
    {
        *("gt", "gts", "seg", "segs", "sem", "semantic", "semantics", "truth", "truths", "depth"),
        *("depths", "disparity", "disp", "instance", "instances", "instanceids", "panoptic", "lr"),
        *("alpha", "predict", "predicts", "pred", "preds", "prediction", "predictions", "matting"),
        *("anno", "annos", "contour", "contours", "skeleton", "heatmap", "heatmaps", "gtfine"),
    }
)
"""The same as whole words, in lower case."""

_IMAGE_WORDS = frozenset(
    {
        *("image", "images", "img", "imgs", "rgb", "sat", "original", "originals", "orig"),
        *("input", "photo", "color", "raw", "leftimg8bit", "hr", "fine", "coarse"),
    }
)
"""Words that a photograph's name may end with if its mask's name ends with another."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
_DOMAIN = re.compile(rf"(?i:{'|'.join(SPLIT_NAMES)})[ _-]?[AB]")
"""The names of CycleGAN's and pix2pix's folders: `trainA`, `trainB`."""

_WORD_BEFORE = re.compile(r"([A-Za-z]+)[ _.-]+(.+)")
_WORD_AFTER = re.compile(
    r"(.+?)(?:[ _.-]+|(?<=[a-z0-9])(?=[A-Z]))([A-Za-z]+[0-9]?[A-Za-z]*)((?:[ _-]?[0-9]+)?)"
)
_SCALE = re.compile(r"(.*[0-9])x[2-9]")
"""The name of an image at a lower resolution, as in DIV2K: `0801x2`."""

_SHAPE = str.maketrans("01234567 9".replace(" ", ""), "002222222")
"""Digits that the rules for names treat alike. `8` stays, because of `leftImg8bit`."""

_DRAWN = re2.compile(
    "(?i)mask|annot|label|segment|ground|target|trimap|saliency|matte|silhouette|"
    + "|".join(sorted(_TELLING_WORDS))
)
_SIGNS = re2.compile(rf"{_DRAWN.pattern}|[0-9]x[2-9]\n|{'|'.join(sorted(_IMAGE_WORDS))}")
"""What the names of drawn images, and all that are not their own cores, have in them.

Both are searched for in many names at once.
"""

_JPEGS = (".jpg", ".jpeg")
_LOSSLESS = (".png", ".gif", ".bmp", ".tif", ".tiff")


def is_telling(name: str) -> bool:
    """Whether a name of a folder or file tells that something was drawn, or is a second image."""
    words = {word.lower() for word in _WORD.findall(name)}
    return bool(_TELLING.search(name) or words & _TELLING_WORDS or is_second_domain(name))


def is_domain(name: str) -> bool:
    """Whether a folder is one side of a split: `trainA`, `test_B`."""
    return bool(_DOMAIN.fullmatch(name))


def is_second_domain(name: str) -> bool:
    """Whether a folder is the second side of a split: `trainB`."""
    return is_domain(name) and name.endswith("B")


def split_word_of(name: str) -> str:
    """The split that a folder is for, alone or next to what its images are: `val_images`."""
    if is_domain(name):
        return split_of(name[:-1].rstrip(" _-"))
    whole = split_of(name)
    words = [split_of(word) for word in _WORD.findall(name)]
    return whole or next(filter(None, words), "")


def core_of(stem: str, counted: bool = False) -> str:
    """Returns what the names of an image and of its mask have in common.

    That is the name without an extension, and without words such as `_mask` around it.

    Args:
        stem: the name without its extension.
        counted: whether numbers after such words, as in `_mask_2`, are taken away, too.
    """
    if stem.isdigit():  # as most are
        return stem
    start, end = _find_core(stem.translate(_SHAPE), counted)
    return stem[start:end]


@lru_cache(1 << 16)
def _find_core(stem: str, counted: bool) -> tuple[int, int]:
    """Where the core of a stem begins and ends; most stems of a folder are alike."""
    start, end = 0, len(stem)
    while found := _WORD_AFTER.fullmatch(stem, 0, end):
        if not _is_about_pairs(found[2]) or (found[3] and not (counted and is_telling(found[2]))):
            break
        end = found.end(1)
    if (found := _WORD_BEFORE.fullmatch(stem, 0, end)) and _is_about_pairs(found[1]):
        start = found.start(2)
    if scaled := _SCALE.fullmatch(stem, start, end):
        end = scaled.end(1)
    return start, end


@lru_cache(1 << 12)
def _is_about_pairs(word: str) -> bool:
    lower = word.lower()
    return is_telling(word) or lower in _IMAGE_WORDS or lower.rstrip("s") in _IMAGE_WORDS


def _stem_of(name: str) -> str:
    return name.rpartition(".")[0] or name


def _cores_of(images: Sequence[str], counted: bool = False) -> list[str]:
    """The cores of images' names, as `core_of` returns them, in the same order."""
    stems = [_stem_of(name) for name in images]
    if not _SIGNS.search("\n".join((*stems, ""))):
        return stems
    places: dict[str, tuple[int, int]] = {}
    cores = []
    for stem in stems:
        shape = stem.translate(_SHAPE)
        place = places.get(shape)
        if place is None:
            place = places[shape] = _find_core(shape, counted)
        cores.append(stem[place[0] : place[1]])
    return cores


@dataclass(frozen=True, slots=True)
class Look:
    """What an image looks like.

    Attributes:
        channels: 1 if it has one channel or a palette, or shades of gray only.
        levels: its values, at most 256; 2 if nearly all are near two values.
        most: the largest share of pixels that have the same value.
    """

    channels: int
    levels: int
    most: float = 0.0

    @property
    def is_mask(self) -> bool:
        """Whether it looks like a mask."""
        return self.channels == 1 and self.levels <= MOST_LEVELS

    @property
    def is_photograph(self) -> bool:
        """Whether it looks like a photograph, not like a mask or a drawing."""
        return not self.is_mask and self.most <= MOST_OF_ONE_VALUE


def look_at_image(data: bytes) -> Look | None:
    """Looks at a file's pixels; None if it cannot be decoded."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            image.draft(None, (512, 512))
            if image.width * image.height > MOST_PIXELS:
                return None
            one_channel = image.mode in ("1", "L", "P", "I", "I;16", "F")
            colors: Any = (image if one_channel else image.convert("RGB")).getcolors(65_536) or []
    except Exception:  # noqa: BLE001  # the conversion says what is wrong with it
        return None
    total = sum(count for count, _ in colors)
    most = max((count for count, _ in colors), default=0) / max(total, 1)
    if not one_channel and colors and all(max(value) - min(value) <= 6 for _, value in colors):
        colors = [(count, value[1]) for count, value in colors]
        one_channel = True
    if one_channel:
        return Look(1, _count_levels(colors), most)
    return Look(3, min(len(colors) or 256, 256), most)


def _count_levels(colors: Sequence[tuple[int, float]]) -> int:
    """Returns the number of values, or 2 if nearly all pixels are near two of them."""
    if not colors:
        return 256
    total = sum(count for count, _ in colors)
    low, high = min(value for _, value in colors), max(value for _, value in colors)
    near = (high - low) / 10
    ends = [
        sum(count for count, value in colors if abs(value - end) <= near) for end in (low, high)
    ]
    between = total - sum(ends)
    levels = len({value for _, value in colors})
    if levels > 2 and between <= min((1 - AGREEMENT) * total, min(ends) / 2):
        return 2
    return min(levels, 256)


Looker = Callable[[str], Look | None]
"""Looks at the image with that path below the input; None if it cannot be read."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """What second images are, and where.

    Attributes:
        why: the end of a sentence: what looks like pairs.
        kept: the folders of the first images, by path below the input.
        left_out: the folders of the second images.
        patterns: patterns of the second images, if they are in the same folders.
        is_even: whether nothing says which folder is the first one.
        are_sides: whether the folders are the two sides of splits: `trainA`, `trainB`.
        count: how many second images there are.
    """

    why: str
    kept: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    is_even: bool = False
    are_sides: bool = False
    count: int = 0


def find_pairs(folders: Mapping[str, Sequence[str]], look: Looker) -> Pairs | None:
    """Finds pairs of images, in one folder or in parallel ones; None if there are none.

    Args:
        folders: the names of the images in each folder, by path below the input.
        look: looks at an image.
    """
    cores = {path: _cores_of(images) for path, images in folders.items()}
    return (
        _find_sides(folders)
        or _find_twins(folders, cores, look)
        or _find_parallel(folders, cores, look)
    )


def _find_sides(folders: Mapping[str, Sequence[str]]) -> Pairs | None:
    """Finds `trainA` next to `trainB`, whatever their images are called."""
    sides: dict[str, str] = {}
    for path in folders:
        side = next(filter(is_domain, path.split("/")), "")
        if not side:
            return None
        sides[path] = side
    seconds = tuple(sorted(path for path, side in sides.items() if is_second_domain(side)))
    firsts = tuple(sorted(sides.keys() - set(seconds)))
    if not firsts or not seconds:
        return None
    one, other = (", ".join(sorted({sides[path] for path in paths})) for paths in (firsts, seconds))
    why = f"{one} and {other} are two sides of the same splits"
    count = sum(len(folders[path]) for path in seconds)
    return Pairs(why, firsts, seconds, are_sides=True, count=count)


def _find_twins(
    folders: Mapping[str, Sequence[str]], cores: Mapping[str, Sequence[str]], look: Looker
) -> Pairs | None:
    """Finds folders whose images have a second image next to them."""
    found = {
        folder: pairs
        for folder, images in folders.items()
        if _may_hold_twins(images, cores[folder])
        and (pairs := _find_twins_in(folder, images, look))
    }
    if not found:
        return None
    (folder, (pair, *_)), *_ = found.items()
    why = f"{posixpath.join(folder, pair[1])} looks like a mask of {pair[0]}"
    seconds = {
        posixpath.join(folder, second) for folder, pairs in found.items() for _, second in pairs
    }
    count = len(seconds)
    all_images = {posixpath.join(at, name) for at, names in folders.items() for name in names}
    kept = sorted(all_images - seconds)
    patterns: dict[str, None] = {}
    keeps = cache(lambda pattern: not any(map(compile_globs((pattern,)).match_file, kept)))
    for folder, pairs in found.items():
        for _, second in pairs:
            patterns[_pattern_for(folder, second, keeps)] = None
            if len(patterns) > _MOST_PATTERNS:
                return Pairs(why, count=count)
    return Pairs(why, patterns=tuple(sorted(patterns)), count=count)


_MOST_PATTERNS = 24

_LEAST_PAIRS = 4


def _pattern_for(folder: str, second: str, keeps: Callable[[str], bool]) -> str:
    """The widest pattern that leaves out a second image and none of those that are kept."""
    stem, ending = posixpath.splitext(second)
    before, _, after = second.partition(core_of(stem, counted=True))
    after = re.sub("[0-9]+", "*", escape_glob(after.removesuffix(ending))) + escape_glob(ending)
    wide = f"{escape_glob(before)}*{after}"
    within = escape_glob(f"{folder}/" if folder else "")
    choices = (wide, f"/{within}{wide}")
    return next(filter(keeps, choices), f"/{within}{escape_glob(second)}")


def _may_hold_twins(images: Sequence[str], cores: Sequence[str]) -> bool:
    """Whether some images have the same core, or may have it without numbers after words."""
    return len(set(cores)) < len(cores) or bool(_DRAWN.search("\n".join(images)))


def _find_twins_in(folder: str, images: Sequence[str], look: Looker) -> list[tuple[str, str]]:
    """Returns the pairs of images in a folder, if most of them have a second one, or a mask."""
    cores: dict[str, list[str]] = defaultdict(list)
    second_names = {}
    for name, core in zip(images, _cores_of(images, counted=True), strict=True):
        stem = _stem_of(name)
        cores[core].append(name)
        if core != stem:
            second_names[name] = is_telling(stem.replace(core, " ", 1))
    named, beside = [], []
    for group in cores.values():
        firsts = [name for name in group if not second_names.get(name)]
        seconds = [name for name in group if second_names.get(name)]
        if firsts:
            first = min(firsts, key=_rank)
            named += [(first, name) for name in seconds]
            stem = _stem_of(first)
            beside += [(first, name) for name in firsts if name != first and _stem_of(name) == stem]
    pairs = named + beside
    paired = {first for first, _ in pairs}
    if not pairs:
        return []
    # A few pictures may be there in several formats.
    is_usual = named or len(paired) >= _LEAST_PAIRS or any(map(_is_jpeg_and_lossless, pairs))
    are_half = 2 * len(paired) >= len(images) - len(pairs)
    if (is_usual and are_half) or _are_masks(folder, pairs, look):
        return pairs
    return []


def _is_jpeg_and_lossless(pair: tuple[str, str]) -> bool:
    first, second = (posixpath.splitext(name)[1].lower() for name in pair)
    return first in _JPEGS and second in _LOSSLESS


def _rank(name: str) -> tuple[bool, str]:
    ending = posixpath.splitext(name)[1].lower()
    return ending not in _JPEGS, name


def _are_masks(folder: str, seconds: Sequence[tuple[str, str]], look: Looker) -> bool:
    """Whether second images look like masks and first ones do not."""
    some = _spread(seconds, SAMPLED_FILES)
    looks = [[look(posixpath.join(folder, name)) for name in pair] for pair in some]
    telling = [first and second and second.is_mask and not first.is_mask for first, second in looks]
    return 2 * sum(map(bool, telling)) > len(telling)


def _find_parallel(
    folders: Mapping[str, Sequence[str]], names: Mapping[str, Sequence[str]], look: Looker
) -> Pairs | None:
    """Finds folders that hold the same base names and are not classes."""
    cores = {path: frozenset(each) for path, each in names.items()}
    kept: dict[str, None] = {}
    left_out: dict[str, None] = {}
    is_even = False
    for group in _group(cores):
        firsts, seconds = _by_words(group)
        if not seconds:
            firsts, seconds = _by_looks(group, folders, look)
        if not seconds and _agree_by_themselves(group, cores):
            firsts, seconds, is_even = group[:1], group[1:], True
        if seconds:
            kept.update(dict.fromkeys(firsts))
            left_out.update(dict.fromkeys(seconds))
    for first, second in _parts_of_others(cores, {**kept, **left_out}):
        kept[first] = left_out[second] = None
    if not left_out:
        return None
    for path in cores:  # parts of these sets, in folders whose names tell as much
        if path not in kept and path not in left_out:
            (left_out if _is_second(path, kept, left_out) else kept)[path] = None
    first, second = max(
        ((one, other) for one in kept for other in left_out if _agree(cores[one], cores[other])),
        key=lambda pair: len(set(pair[0].split("/")) & set(pair[1].split("/"))),
        default=(next(iter(kept)), next(iter(left_out))),
    )
    first = first or "the folder itself"
    why = f"{first} and {second} hold images of the same names"
    count = sum(len(folders[path]) for path in left_out)
    return Pairs(why, tuple(sorted(kept)), tuple(sorted(left_out)), is_even=is_even, count=count)


def _parts_of_others(
    cores: Mapping[str, frozenset[str]], known: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yields folders of images, and folders of masks for a part of these."""
    telling = [
        path for path in cores if path not in known and any(map(is_telling, path.split("/")))
    ]
    some = {path: _choose_cores(cores[path]) for path in telling}
    wanted = frozenset(core for chosen in some.values() for core in chosen)
    holding: dict[str, list[str]] = defaultdict(list)
    for path, own in cores.items() if wanted else ():
        for core in own & wanted:
            holding[core].append(path)
    for path in telling:
        own = cores[path]
        for other in sorted({each for core in some[path] for each in holding[core]} - {path}):
            apart = set(path.split("/")) - set(other.split("/"))
            back = set(other.split("/")) - set(path.split("/"))
            is_part = len(own) > 1 and len(own & cores[other]) >= AGREEMENT * len(own)
            if is_part and any(map(is_telling, apart)) and not any(map(is_telling, back)):
                yield other, path
                break


def _is_second(path: str, kept: Iterable[str], left_out: Iterable[str]) -> bool:
    """Whether a folder is named as those of second images are, and as no other is."""
    name = posixpath.basename(path)
    return (
        bool(name)
        and name not in {posixpath.basename(each) for each in kept}
        and (
            name in {posixpath.basename(each) for each in left_out}
            or any(map(is_telling, path.split("/")))
        )
    )


def _choose_cores(cores: Collection[str]) -> list[str]:
    """Chooses some base names: folders that agree share most of these."""
    return nsmallest(8, cores, key=lambda core: crc32(core.encode()))


def _group(cores: Mapping[str, frozenset[str]]) -> Iterator[list[str]]:
    """Yields the groups of folders whose base names agree, in order."""
    groups: list[list[str]] = []
    # Folders that agree have about the same size, and share most of a few names.
    near: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for path in sorted(cores):
        own = cores[path]
        chosen, size = _choose_cores(own), int(log(len(own)) / -log(AGREEMENT))
        places = [(each, core) for each in (size - 1, size, size + 1) for core in chosen]
        for at in sorted({at for place in places for at in near.get(place, ())}):
            if _agree(own, cores[groups[at][0]]):
                groups[at].append(path)
                break
        else:
            for core in chosen:
                near[size, core].append(len(groups))
            groups.append([path])
    yield from (group for group in groups if len(group) > 1)


def _agree(one: frozenset[str], other: frozenset[str]) -> bool:
    most = max(len(one), len(other))
    return min(len(one), len(other)) >= AGREEMENT * most and len(one & other) >= AGREEMENT * most


def _own_parts(group: Sequence[str]) -> dict[str, set[str]]:
    """The parts of each path that not all paths of the group have."""
    parts = {path: set(path.split("/")) for path in group}
    shared = set.intersection(*parts.values())
    return {path: each - shared for path, each in parts.items()}


def _by_words(group: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divides a group by words such as `mask` in some of the names, but not in all."""
    parts = _own_parts(group)
    seconds = [path for path in group if any(map(is_telling, parts[path]))]
    firsts = [path for path in group if path not in seconds]
    if not firsts or _are_other_splits(firsts, seconds, parts):
        return list(group), []
    return firsts, seconds


def _are_other_splits(
    firsts: Sequence[str], seconds: Sequence[str], parts: Mapping[str, set[str]]
) -> bool:
    """Whether all telling names are for splits, and no other is: `seg_train` next to classes."""
    return all(any(map(split_word_of, parts[path])) for path in seconds) and not any(
        any(map(split_word_of, parts[path])) for path in firsts
    )


def _by_looks(
    group: Sequence[str], folders: Mapping[str, Sequence[str]], look: Looker
) -> tuple[list[str], list[str]]:
    """Divides a group if the files of some folders look like masks, and those of others do not."""
    if _differ_in_splits(group):
        return list(group), []
    seen = {}
    for path in _choose_folders(group):
        looks: list[Look] = []
        for at, name in enumerate(_spread(folders[path], SAMPLED_FILES)):
            if (found := look(posixpath.join(path, name))) is not None:
                looks.append(found)
            if at == 3 and len({each.is_mask for each in looks}) == 1:  # they are alike
                break
        if looks:
            share = sum(each.is_mask for each in looks) / len(looks)
            seen[path] = (
                share,
                median(each.channels for each in looks),
                median(each.levels for each in looks),
                sum(each.is_photograph for each in looks) / len(looks),
            )
    masks = [path for path, (share, *_) in seen.items() if share >= 0.9]
    most = max((seen[path][2] for path in masks), default=0)
    # Drawings in gray, such as MNIST's, have few values too, some classes fewer than others.
    photos = [
        path
        for path, (share, channels, _, photographs) in seen.items()
        if share <= 0.1 and photographs >= 0.5 and (channels > 1 or most <= MOST_GRAY_LEVELS)
    ]
    if not masks or not photos or len(masks) + len(photos) < len(seen):
        return list(group), []
    seconds = _named_like(masks, photos, group)
    return [path for path in group if path not in seconds], seconds


def _named_like(masks: Sequence[str], photos: Sequence[str], group: Sequence[str]) -> list[str]:
    """The folders of a group that are named as all those of masks, and as none of photographs."""
    own = _own_parts(group)
    words = set.intersection(*(own[path] for path in masks))
    words -= {part for path in photos for part in own[path]}
    return [path for path in group if words & own[path]] or list(masks)


def _choose_folders(group: Sequence[str]) -> list[str]:
    """Chooses the folders that are looked into, of different names if there are some."""
    ranked = sorted(group, key=lambda path: crc32(path.encode()))
    firsts = {posixpath.basename(path): path for path in reversed(ranked)}
    chosen = dict.fromkeys((*sorted(firsts.values(), key=ranked.index), *ranked))
    return sorted([*chosen][:SAMPLED_FOLDERS])


def _differ_in_splits(group: Sequence[str]) -> bool:
    """Whether the paths differ in words for splits alone: then images are there twice."""
    return all(all(map(split_of, parts)) for parts in _own_parts(group).values())


def _agree_by_themselves(group: Sequence[str], cores: Mapping[str, frozenset[str]]) -> bool:
    """Whether exactly two folders hold the same names, which are not counters."""
    if len(group) != 2 or _differ_in_splits(group):
        return False
    own = cores[group[0]]
    return len(own) >= 3 and not are_counters(own)


def are_counters(stems: Iterable[str]) -> bool:
    """Whether names are counted through: `0001`, `img_7`, `b (12)`."""
    shapes = Counter(re.sub("[0-9]+", "0", stem) for stem in stems)
    whole = shapes.total()
    (shape, count), *_ = shapes.most_common(1)
    if count < AGREEMENT * whole:
        return len(shapes) <= 2 < whole / 2
    if "0" not in shape:
        return len(shapes) == 1
    numbers = sorted(
        tuple(map(int, re.findall("[0-9]+", stem)))
        for stem in stems
        if re.sub("[0-9]+", "0", stem) == shape
    )
    changing = [len({each[at] for each in numbers}) > 1 for at in range(shape.count("0"))]
    if sum(changing) != 1:
        return sum(changing) == 0
    at = changing.index(True)
    gaps = [later[at] - earlier[at] for earlier, later in pairwise(numbers)]
    return median(gaps) <= 2 or len(set(gaps)) == 1


def _spread(items: Sequence[T], most: int) -> list[T]:
    """A sample of the items, from the first to the last."""
    count = min(most, len(items))
    return [items[at * len(items) // count] for at in range(count)]


def sample_names(names: Iterable[str], most: int) -> list[str]:
    """Chooses names so that a pair is chosen or not as a whole, in one folder as in another."""
    listed = list(names)
    if len(listed) <= most:
        return listed
    cores = dict(zip(listed, _cores_of(listed), strict=True))
    ranked = sorted(listed, key=lambda name: crc32(cores[name].encode()))
    return sorted(ranked[:most])


def patterns_of(left_out: Sequence[str], kept: Sequence[str]) -> list[str]:
    """Patterns for folders, in gitignore's syntax, that leave these out and keep those.

    A name that is left out in several places, and kept nowhere, is left out everywhere.
    """
    tops: dict[str, None] = {}
    for path in left_out:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            top = "/".join(parts[:depth])
            if not any(f"{each}/".startswith(f"{top}/") for each in kept):
                tops[top] = None
                break
    kept_parts = {part for path in kept for part in path.split("/")}
    counts = Counter(posixpath.basename(top) for top in tops)
    found = []
    for top in tops:
        name = posixpath.basename(top)
        everywhere = counts[name] > 1 and name not in kept_parts
        found.append(f"{escape_glob(name)}/" if everywhere else f"/{escape_glob(top)}/")
    return sorted(set(found))
