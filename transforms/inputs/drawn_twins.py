"""Drawings next to images whose names share more than numbers, but no telling word.

Examples are `0.jpg` and `0m.jpg`, or `img0.jpg` and `outline-0.png`. The names propose pairs, and
what the images look like decides, because `cat1.jpg` and `cat1_flip.jpg` are two images.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, cycle, permutations, takewhile, zip_longest
from typing import TypeVar

from recordmill.transforms.inputs.image_looks import (
    LOSSLESS,
    MOST_GRAY_LEVELS,
    SAMPLED_FILES,
    Appearance,
    Looker,
    spread,
)
from recordmill.transforms.inputs.pair_names import AGREEMENT, is_telling, stem_of
from recordmill.transforms.inputs.patterns import escape_glob

T = TypeVar("T")

MOST_FORMS = 16
"""Forms of names in a folder that are compared with each other."""

MOST_KINDS = 16
"""Kinds of twins whose images are read."""

_SAMPLED_NAMES = 32
_MOST_SIDES = 8
"""Names of a folder that are compared with all others, and the beginnings and ends that count."""

_MOST_SHAPES = 256
"""The same before numbers of any length are one form."""

_STEP = 7919
"""How far apart sampled names are: a prime, so that they are not all of one form."""

_DIGITS = str.maketrans("123456789", "0" * 9)
_RUN = re.compile("0+")
_NUMBER = re.compile("[0-9]+")
_LETTER = re.compile(r"[^\W\d_]")

_FEWEST_LETTERS = 3
"""Letters of a word."""


@dataclass(frozen=True, slots=True)
class Twin:
    """An image and a second one in the same folder.

    Attributes:
        folder: the folder's path below the input.
        first: the image's name.
        second: the name of the second one.
        forms: patterns that match names such as the second, the widest first.
    """

    folder: str
    first: str
    second: str
    forms: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """What differs in the names of twins, with `0` for numbers; the first's part may be empty."""

    first: str
    second: str


def find_drawn_twins(
    folders: Mapping[str, Sequence[str]],
    cores: Mapping[str, Sequence[str]],
    known: Mapping[str, Sequence[Twin]],
    look: Looker,
) -> dict[str, list[Twin]]:
    """Finds images next to which there are drawings, by folder.

    Args:
        folders: the names of the images in each folder.
        cores: the same names as `cores_of` returns them.
        known: twins that are known by their names, by folder.
        look: looks at an image.
    """
    kinds: defaultdict[Kind, dict[tuple[str, str], Twin]] = defaultdict(dict)
    for folder, images in folders.items():
        forms = _group_by_form(images)
        if len(forms) == 1:
            continue
        seconds = {each.second for each in known.get(folder, ())}
        by_core = dict(zip(cores[folder], images, strict=True))
        found = (
            *_by_stems(folder, images, by_core),
            *_by_numbers(folder, forms),
            *_by_words(folder, forms),
        )
        for kind, twin in found:
            if not {twin.first, twin.second} & seconds:
                kinds[kind].setdefault((folder, twin.second), twin)
    look = cache(look)
    drawn: defaultdict[str, dict[str, Twin]] = defaultdict(dict)
    largest = sorted(kinds, key=lambda kind: (-len(kinds[kind]), kind))
    for kind in largest[:MOST_KINDS]:
        twins = [*kinds[kind].values()]
        if _are_next_to(twins, known) or (len(twins) > 1 and _are_drawn(kind, twins, look)):
            for each in twins:
                drawn[each.folder].setdefault(each.second, each)
    return {folder: [*twins.values()] for folder, twins in drawn.items()}


def _group_by_form(images: Sequence[str]) -> dict[str, list[str]]:
    """Groups names that differ in their numbers only, by what they are with `0` for numbers.

    After more than `MOST_FORMS`, names are left out.
    """
    by_shape: dict[str, list[str]] = {}
    shapes = "\0".join(images).translate(_DIGITS).split("\0")  # no name has a zero byte
    for shape, name in zip(shapes, images, strict=True):
        found = by_shape.get(shape)
        if found is not None:
            found.append(name)
        elif len(by_shape) > _MOST_SHAPES:
            break
        else:
            by_shape[shape] = [name]
    forms: dict[str, list[str]] = {}
    for shape, names in by_shape.items():
        forms.setdefault(_RUN.sub("0", shape), []).extend(names)
        if len(forms) > MOST_FORMS:
            break
    return forms


def _form_of(text: str) -> str:
    return _RUN.sub("0", text.translate(_DIGITS))


def _sample(items: Sequence[T], most: int) -> list[T]:
    """Returns some of the items, in no order that names may be in, too."""
    if len(items) <= most:
        return list(items)
    return [items[at * _STEP % len(items)] for at in range(most)]


def _by_stems(
    folder: str, images: Sequence[str], by_core: Mapping[str, str]
) -> Iterator[tuple[Kind, Twin]]:
    """Yields twins: the name of one is that of the other with more before or after it."""
    stems = [*map(stem_of, images)]
    firsts = {**by_core, **dict(zip(stems, images, strict=True))}
    sides: Counter[tuple[str, str]] = Counter()
    for stem in _sample(stems, _SAMPLED_NAMES):
        sides.update([*dict.fromkeys(_sides_of(stem, firsts))])
    for (before, after), _ in sides.most_common(_MOST_SIDES):
        form = re.compile(f"{_as_regex(before)}(.+){_as_regex(after)}", re.DOTALL)
        for name, stem in zip(images, stems, strict=True):
            match = form.fullmatch(stem)
            first = firsts.get(match[1]) if match else None
            if first is None or first == name:
                continue
            endings = [posixpath.splitext(each)[1] for each in (first, name)]
            kind = Kind(endings[0].lower(), f"{before}{after}{endings[1].lower()}")
            yield kind, Twin(folder, first, name, _globs(before, after, endings[1], _form_of(stem)))


def _sides_of(stem: str, firsts: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yields what is before or after the name of another image in a name."""
    for cut in range(1, len(stem)):
        if stem[cut - 1].isdigit() and stem[cut].isdigit():
            continue
        if stem[:cut] in firsts:
            yield "", _form_of(stem[cut:])
        if stem[cut:] in firsts and not any(map(str.isdigit, stem[:cut])):
            yield stem[:cut], ""


def _by_numbers(folder: str, by_form: Mapping[str, Sequence[str]]) -> Iterator[tuple[Kind, Twin]]:
    """Yields twins whose names hold the same numbers, and otherwise have two forms."""
    if len(by_form) > MOST_FORMS:
        return
    for (one, firsts), (other, seconds) in permutations(by_form.items(), 2):
        stem, ending = posixpath.splitext(one)
        most_firsts = frozenset(firsts)
        as_first = partial(_write_numbers, stem.split("0"), ending)
        tried = _sample(seconds, _SAMPLED_NAMES)
        if 2 * sum(as_first(name) in most_firsts for name in tried) < len(tried):
            continue
        pairs = [(first, name) for name in seconds if (first := as_first(name)) in most_firsts]
        paired = {first for first, _ in pairs}
        if len(pairs) < AGREEMENT * len(seconds) or 2 * len(paired) < len(firsts):
            continue
        kind, forms = _compare_forms(one, other)
        for first, second in pairs:
            yield kind, Twin(folder, first, second, forms)


def _by_words(folder: str, by_form: Mapping[str, Sequence[str]]) -> Iterator[tuple[Kind, Twin]]:
    """Yields images whose names have a telling word, each with some image whose name has none."""
    telling = [form for form in by_form if is_telling(stem_of(form))]
    others = [*chain.from_iterable(by_form[form] for form in by_form if form not in telling)]
    if len(by_form) > MOST_FORMS or not others:
        return
    for form in telling:
        stem, ending = posixpath.splitext(form)
        forms = _globs(stem.partition("0")[0], "", ending, stem)
        for name, first in zip(by_form[form], cycle(others), strict=False):
            yield Kind("", form), Twin(folder, first, name, forms)


def _write_numbers(parts: Sequence[str], ending: str, name: str) -> str | None:
    """Returns a name of these parts around the first numbers of another name."""
    numbers = _NUMBER.findall(stem_of(name))
    if not 1 < len(parts) <= len(numbers) + 1:
        return None
    around = zip_longest(parts, numbers[: len(parts) - 1], fillvalue="")
    return "".join(chain.from_iterable(around)) + ending


def _compare_forms(one: str, other: str) -> tuple[Kind, tuple[str, ...]]:
    """Returns what differs in two forms of names, and patterns for names of the other one."""
    (stem, ending), (other_stem, other_ending) = map(posixpath.splitext, (one, other))
    start = _count_common(stem, other_stem)
    end = _count_common(stem[start:][::-1], other_stem[start:][::-1])
    part = other_stem[start : len(other_stem) - end]
    before = part if not start else ""
    after = part if start and not end else ""
    kind = Kind(f"{stem[start : len(stem) - end]}{ending.lower()}", f"{part}{other_ending.lower()}")
    return kind, _globs(before, after, other_ending, other_stem)


def _count_common(one: str, other: str) -> int:
    """Returns how many characters at the beginning are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _as_regex(form: str) -> str:
    return re.escape(form).replace("0", "[0-9]+")


def _globs(before: str, after: str, ending: str, stem: str) -> tuple[str, ...]:
    """Returns patterns for names with this before and after anything.

    The widest is the first if there is a word in it: a letter may be in names that were not seen.
    """
    begin, end = (escape_glob(part).replace("0", "*") for part in (before, after))
    ending = escape_glob(ending)
    whole = escape_glob(stem).replace("0", "[0-9]*") + ending
    wide = f"{begin}*{end}{ending}"
    begin_digit = f"{begin}[0-9]*" if before else "*"
    end_digit = f"[0-9]{end}" if after else ""
    narrow = f"{begin_digit}{end_digit}{ending}"
    if len(_LETTER.findall(before + after)) >= _FEWEST_LETTERS or not before + after:
        return (wide, narrow, whole)
    return (narrow, whole, wide) if "0" in stem else (narrow, wide)


def _are_next_to(twins: Iterable[Twin], known: Mapping[str, Sequence[Twin]]) -> bool:
    """Returns whether images that have masks known by name have these, too.

    `1_seg.png`, `1_parts_1.png`.

    JPEGs next to others are checked by their looks.
    """
    firsts = {(each.folder, each.first) for each in chain.from_iterable(known.values())}
    return all(
        (each.folder, each.first) in firsts
        and each.second.lower().endswith(LOSSLESS)
        and not each.first.lower().endswith(LOSSLESS)
        for each in twins
    )


def _are_drawn(kind: Kind, twins: Sequence[Twin], look: Looker) -> bool:
    """Returns whether second images are drawings, such as masks, and first ones are not."""
    are_named_apart = not kind.first.startswith(".")
    telling: list[bool] = []
    for at, each in enumerate(spread(twins, SAMPLED_FILES)):
        first = look(posixpath.join(each.folder, each.first))
        second = look(posixpath.join(each.folder, each.second))
        telling.append(_is_drawing_of(first, second, are_named_apart))
        if at == 3 and len(set(telling)) == 1:
            break
    return 4 * sum(telling) >= 3 * len(telling)


def _is_drawing_of(
    first: Appearance | None, second: Appearance | None, are_named_apart: bool
) -> bool:
    if first is None or second is None or first.is_drawn or not second.is_drawn:
        return False
    if not are_named_apart or second.levels <= MOST_GRAY_LEVELS:
        return True
    # Drawings in gray, such as MNIST's, may have few values, too.
    return first.is_photograph and first.channels > 1
