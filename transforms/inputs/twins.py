"""Second images next to the first ones, in the same folders: `1.jpg`, `1_mask.png`."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain

from recordmill.transforms.inputs.drawn_twins import Twin, find_drawn_twins
from recordmill.transforms.inputs.folder_sketch import join_names
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.image_looks import LOSSLESS, SAMPLED_FILES, Looker, spread
from recordmill.transforms.inputs.pair_names import DRAWN, core_of, cores_of, is_telling, stem_of
from recordmill.transforms.inputs.patterns import compile_globs, escape_glob

_JPEGS = (".jpg", ".jpeg")

MOST_PATTERNS = 24
"""Patterns that a command has: a longer one does not help."""

_LEAST_PAIRS = 4


def find_twins(
    folders: Mapping[str, Sequence[str]], cores: Mapping[str, Sequence[str]], look: Looker
) -> Pairs | None:
    """Finds folders whose images have a second image next to them.

    Args:
        folders: the names of the images in each folder, by path below the input.
        cores: the same names as `cores_of` returns them.
        look: looks at an image.
    """
    found = {
        folder: twins
        for folder, images in folders.items()
        if _may_hold_twins(images, cores[folder]) and (twins := _find_twins(folder, images, look))
    }
    drawn = find_drawn_twins(folders, cores, found, look)
    twins = list[Twin]()
    for folder in folders:
        twins += (*found.get(folder, ()), *drawn.get(folder, ()))
    if not twins:
        return None
    first = twins[0]
    is_mask = is_telling(stem_of(first.second)) or first in drawn.get(first.folder, ())
    if not is_mask:
        is_mask = _are_masks(first.folder, [(first.first, first.second)], look)
    what = "a mask" if is_mask else "a second image"
    why = f"{posixpath.join(first.folder, first.second)} looks like {what} of {first.first}"
    seconds = {posixpath.join(each.folder, each.second): _patterns_for(each) for each in twins}
    patterns = choose_patterns(seconds, {*join_names(folders)} - seconds.keys())
    return Pairs(why, patterns=patterns, count=len(seconds))


def choose_patterns(left_out: Mapping[str, Iterable[str]], kept: Iterable[str]) -> tuple[str, ...]:
    """Chooses a pattern for each image that is left out; none if they would be too many.

    Args:
        left_out: the patterns that may match an image, the widest first, by its path.
        kept: the paths that no pattern may match.
    """
    paths = sorted(kept)
    globs = cache(lambda pattern: compile_globs((pattern,)))
    keeps = cache(lambda pattern: not any(map(globs(pattern).match_file, paths)))
    chosen: dict[str, None] = {}
    for path, patterns in left_out.items():
        fitting = (each for each in patterns if globs(each).match_file(path) and keeps(each))
        chosen[next(fitting, f"/{escape_glob(path)}")] = None
        if len(chosen) > MOST_PATTERNS:
            return ()
    return tuple(sorted(chosen))


def _patterns_for(twin: Twin) -> list[str]:
    """Returns the patterns that may leave out a second image, the widest first."""
    within = escape_glob(f"{twin.folder}/" if twin.folder else "")
    return [*twin.forms, *(f"/{within}{form}" for form in twin.forms)]


def _form_of(second: str) -> str:
    """Returns a pattern for second images whose names have the same words."""
    stem, ending = posixpath.splitext(second)
    before, _, after = second.partition(core_of(stem, counted=True))
    after = re.sub("[0-9]+", "*", escape_glob(after.removesuffix(ending))) + escape_glob(ending)
    return f"{escape_glob(before)}*{after}"


def _may_hold_twins(images: Sequence[str], cores: Sequence[str]) -> bool:
    """Whether some images have the same core, or may have it without numbers after words."""
    return len(set(cores)) < len(cores) or bool(DRAWN.search("\n".join(images)))


def _find_twins(folder: str, images: Sequence[str], look: Looker) -> list[Twin]:
    """Returns the second images in a folder, each with the first one."""
    pairs = _find_pairs(folder, images, look)
    return [Twin(folder, first, second, (_form_of(second),)) for first, second in pairs]


def _find_pairs(folder: str, images: Sequence[str], look: Looker) -> list[tuple[str, str]]:
    """Returns the pairs of images in a folder, if most of them have a second one, or a mask."""
    cores: dict[str, list[str]] = defaultdict(list)
    second_names = {}
    for name, core in zip(images, cores_of(images, counted=True), strict=True):
        stem = stem_of(name)
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
            stem = stem_of(first)
            beside += [
                (first, name)
                for name in firsts
                if name != first and stem_of(name) == stem and not _are_jpegs(first, name)
            ]
    pairs = named + beside
    paired = {first for first, _ in pairs}
    if not pairs:
        return []
    # A few pictures may be there in several formats.
    is_usual = named or len(paired) >= _LEAST_PAIRS or any(map(_is_jpeg_and_lossless, pairs))
    are_half = 2 * len(paired) >= len(images) - len(pairs) - _count_others(images, pairs)
    if (is_usual and are_half) or _are_masks(folder, pairs, look):
        return pairs
    return []


def _count_others(images: Sequence[str], pairs: Sequence[tuple[str, str]]) -> int:
    """Returns how many images have more after the name of a paired one.

    `1_parts_1.png` next to `1.jpg`.
    """
    known = {*chain.from_iterable(pairs)}
    stems = {stem_of(first) for first, _ in pairs}
    others = [stem_of(name) for name in images if name not in known]
    return sum(_continues_one(stem, stems) for stem in others)


def _continues_one(stem: str, stems: Collection[str]) -> bool:
    """Returns whether a name begins with one of these, and does not go on with a digit."""
    return any(stem[:at] in stems and not stem[at].isdigit() for at in range(1, len(stem)))


def _are_jpegs(*names: str) -> bool:
    """Returns whether all are JPEGs: `1.JPG` and `1.jpeg` come from different sources."""
    return all(name.lower().endswith(_JPEGS) for name in names)


def _is_jpeg_and_lossless(pair: tuple[str, str]) -> bool:
    first, second = (posixpath.splitext(name)[1].lower() for name in pair)
    return first in _JPEGS and second in LOSSLESS


def _rank(name: str) -> tuple[bool, str]:
    ending = posixpath.splitext(name)[1].lower()
    return ending not in _JPEGS, name


def _are_masks(folder: str, seconds: Sequence[tuple[str, str]], look: Looker) -> bool:
    """Returns whether second images look like masks and first ones do not."""
    some = spread(seconds, SAMPLED_FILES)
    telling = [_is_drawn(folder, pair, look) for pair in some]
    return 2 * sum(telling) > len(telling)


def _is_drawn(folder: str, pair: tuple[str, str], look: Looker) -> bool:
    """Returns whether the second image of a pair looks like a drawing, and the first does not."""
    first, second = (look(posixpath.join(folder, name)) for name in pair)
    return bool(first and second and second.is_drawn and not first.is_drawn)
