"""Names of images and folders: words that tell of pairs, and what the names of a pair share."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from statistics import median
from zlib import crc32

import re2

from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.folder_sketch import split_for_word

AGREEMENT = 0.95
"""The least share of base names that two folders of pairs have in common."""

TELLING = re.compile(
    r"mask|annot|(?<!un)label(?!l?ed)|segment|ground_?-?truth|target|trimap|saliency|matte|silhouette",
    re.IGNORECASE,
)
"""What tells, anywhere in a name, that something was drawn."""

DEPTH_WORDS = frozenset({"depth", "depths", "disparity", "disp"})
"""Words, in lower case, for second images whose values are measured."""

_MASK_WORDS = frozenset(
    {"gt", "gts", "gtfine", "seg", "segs", "sem", "semantic", "semantics", "truth", "truths"}
)
"""Words, in lower case, for images of classes."""

_TELLING_WORDS = frozenset(
    {
        *_MASK_WORDS,
        *DEPTH_WORDS,
        *("instance", "instances", "instanceids", "panoptic", "lr"),
        *("alpha", "predict", "predicts", "pred", "preds", "prediction", "predictions", "matting"),
        *("anno", "annos", "contour", "contours", "skeleton", "heatmap", "heatmaps"),
    }
)
"""The same as whole words, in lower case."""

IMAGE_WORDS = frozenset(
    {
        *("image", "images", "img", "imgs", "rgb", "sat", "original", "originals", "orig"),
        *("input", "photo", "color", "raw", "leftimg8bit", "hr", "fine", "coarse"),
    }
)
"""Words that a photograph's name may end with if its mask's name ends with another."""

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
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

DRAWN = re2.compile(
    "(?i)mask|annot|label|segment|ground|target|trimap|saliency|matte|silhouette|"
    + "|".join(sorted(_TELLING_WORDS))
)
MASK_LETTER = "L"
"""The word at the end of the names of CamVid's masks: `0001TP_L.png`."""

_SIGNS = re2.compile(
    rf"{DRAWN.pattern}|[0-9]x[2-9]\n|[ _.-]{MASK_LETTER}\n|{'|'.join(sorted(IMAGE_WORDS))}"
)
"""What the names of drawn images, and all that are not their own cores, have in them.

Both are searched for in many names at once.
"""

_SIDES = (
    ("left", "right"),
    ("noisy noise noised", "clean denoised noiseless"),
    ("blur blurred blurry", "sharp deblurred"),
    ("hazy haze foggy", "clear dehazed"),
    ("rainy rain", "norain derained"),
    ("dark lowlight low", "bright normallight high normal"),
    ("before pre", "after post"),
    ("day", "night"),
    ("gallery", "probe query"),
    (
        "input inputs source src raw",
        "output outputs target targets reference references enhanced restored expert corrected",
    ),
    ("rgb visible vis color colour", "thermal infrared ir nir lwir gray grey grayscale greyscale"),
    ("front", "back"),
    ("distorted degraded corrupted compressed", "reference pristine restored original"),
    ("time1 t1 im1 img1 image1", "time2 t2 im2 img2 image2"),
)
"""Words in lower case; a folder is on one side if its name has one of the words of this side."""

_LETTERS = ("a", "b")
"""Sides next to a folder of annotations, or alone in capitals: elsewhere, they may be classes."""

_SIDE_WORD = re.compile(r"[A-Z]+(?![a-z])[0-9]?|[A-Z]?[a-z]+[0-9]?")


def words_in(names: Iterable[str], form: re.Pattern[str] = WORD) -> set[str]:
    """Returns the words of some names, in lower case; no word is in two names."""
    return {word.lower() for word in form.findall("\n".join(names))}


def parts_of(paths: Iterable[str]) -> set[str]:
    """Returns the names of all folders in some paths."""
    return {*chain.from_iterable(path.split("/") for path in paths)}


def is_telling(name: str) -> bool:
    """Tells if a name of a folder or file means a drawing or a second image."""
    words = {word.lower() for word in WORD.findall(name)}
    return bool(TELLING.search(name) or words & _TELLING_WORDS or is_second_domain(name))


def means_mask(path: str) -> bool:
    """Returns whether the path of an image says that its values are classes."""
    said = {each.lower() for each in TELLING.findall(path)} - {"target"}
    return bool(said or words_in([path]) & _MASK_WORDS)


def is_domain(name: str) -> bool:
    """Returns whether a folder is one side of a split: `trainA`, `test_B`."""
    return bool(_DOMAIN.fullmatch(name))


def is_second_domain(name: str) -> bool:
    """Returns whether a folder is the second side of a split: `trainB`."""
    return is_domain(name) and name.endswith("B")


def split_word_of(name: str) -> str | None:
    """Returns the split that a folder is for, alone or next to what its images are (`val_images`).

    Returns None if its name has no split word.
    """
    if is_domain(name):
        return split_for_word(name[:-1].rstrip(" _-"))
    return next(filter(None, map(split_for_word, (name, *WORD.findall(name)))), None)


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
    """Returns where the core of a stem begins and ends; most stems of a folder are alike."""
    start, end = 0, len(stem)
    while found := _WORD_AFTER.fullmatch(stem, 0, end):
        is_sign = is_about_pairs(found[2]) or (found[2] == MASK_LETTER and not found[3])
        if not is_sign or (found[3] and not (counted and is_telling(found[2]))):
            break
        end = found.end(1)
    if (found := _WORD_BEFORE.fullmatch(stem, 0, end)) and is_about_pairs(found[1]):
        start = found.start(2)
    if scaled := _SCALE.fullmatch(stem, start, end):
        end = scaled.end(1)
    return start, end


@lru_cache(1 << 12)
def is_about_pairs(word: str) -> bool:
    """Returns whether a word in a name tells of an image, or of what was drawn on it."""
    lower = word.lower()
    return is_telling(word) or lower in IMAGE_WORDS or lower.rstrip("s") in IMAGE_WORDS


def stem_of(name: str) -> str:
    """Returns a file's name without its extension."""
    return name.rpartition(".")[0] or name


def cores_of(images: Sequence[str], counted: bool = False) -> list[str]:
    """Returns the cores of images' names, as `core_of` returns them, in the same order."""
    stems = [stem_of(name) for name in images]
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


def divide_by_sides(
    parts: Mapping[str, Collection[str]], may_be_letters: bool = False
) -> tuple[list[str], list[str]]:
    """Divides folders into two sides by the words in their names.

    Args:
        parts: of each folder's path, the parts that not all have.
        may_be_letters: whether the letters A and B are sides, too: there are annotations of the
            same images, or no other folders than `A` and `B`.

    Returns:
        The folders of either side; both are empty unless each folder is on one side.
    """
    words = {path: words_in(own, _SIDE_WORD) for path, own in parts.items()}
    for one, other in (*_SIDES, *([_LETTERS] if may_be_letters else [])):
        firsts = [path for path, own in words.items() if own & set(one.split())]
        seconds = [path for path, own in words.items() if own & set(other.split())]
        if firsts and seconds and sorted((*firsts, *seconds)) == sorted(words):
            return firsts, seconds
    return [], []


def are_counters(stems: Iterable[str]) -> bool:
    """Returns whether names are counted through: `0001`, `img_7`, `b (12)`."""
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
    changing = [len(set(column)) > 1 for column in zip(*numbers, strict=True)]
    if sum(changing) != 1:
        return sum(changing) == 0
    at = changing.index(True)
    gaps = [later[at] - earlier[at] for earlier, later in pairwise(numbers)]
    return median(gaps) <= 2 or len(set(gaps)) == 1


def sample_names(names: Iterable[str], most: int) -> list[str]:
    """Chooses names so that a pair is chosen or not as a whole, in one folder as in another."""
    listed = list(names)
    if len(listed) <= most:
        return listed
    cores = dict(zip(listed, cores_of(listed), strict=True))
    ranked = sorted(listed, key=lambda name: crc32(cores[name].encode()))
    return sorted(ranked[:most])
