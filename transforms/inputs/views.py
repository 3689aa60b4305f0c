"""Several images of each thing, whose names differ in the same few endings: `1_left`, `1_right`.

No word tells which of them is the first one, and none looks like a mask.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from recordmill.transforms.inputs.folder_sketch import join_names
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.image_looks import spread
from recordmill.transforms.inputs.pair_names import divide_by_sides, split_word_of, stem_of
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.twins import choose_patterns

MOST_VIEWS = 4
FEWEST_THINGS = 4
"""The most images of one thing, and the fewest things that have several images."""

_SAMPLED_NAMES = 64
"""Names of a folder that say whether it may hold views."""

_WORD_AFTER = re.compile(r"(.*[^\W_].*?)([ _.-]+)([A-Za-z]{1,12}[0-9]?)")
_NUMBER_AFTER = re.compile(r"(.*[0-9].*?)([ _.-]+)([0-9]{1,4})")
_WORD_BEFORE = re.compile(r"([A-Za-z]{1,12})([ _.-]+)([0-9].*)")

_CHANGED = re.compile(
    "(?:h|v|hor|vert)?(?:flip|flipped|mirror|mirrored)|rot|rotated|aug|augmented|copy|edit|edited"
    "|crop|cropped|small|large|medium|resized|blur|noise|gray|bw|hdr|enhanced",
    re.IGNORECASE,
)
"""What tools that change images write after names."""


@dataclass(frozen=True, slots=True)
class View:
    """A name that may be one of several of the same thing.

    Attributes:
        thing: what the names have in common.
        sign: what only this one has, and where: a pattern of names.
    """

    thing: str
    sign: str


def find_views(folders: Mapping[str, Sequence[str]]) -> Pairs | None:
    """Finds several images of each thing, if at least half of the images are such.

    Args:
        folders: the names of the images in each folder, by path below the input.
    """
    total = sum(map(len, folders.values()))
    for form in (_WORD_AFTER, _NUMBER_AFTER, _WORD_BEFORE):
        found = _find_views_of(folders, form)
        signs = sorted({view.sign for view in found.values()})
        is_usual = 2 * len(found) >= total
        if is_usual and 1 < len(signs) <= MOST_VIEWS and _may_be_views(signs, form):
            return _as_pairs(found, signs, folders)
    return None


def _find_views_of(folders: Mapping[str, Sequence[str]], form: re.Pattern[str]) -> dict[str, View]:
    """Returns the images, by path, of those things that have the usual views of their folder."""
    found = {}
    for folder, names in folders.items():
        if _may_hold_views(names, form):
            for name, view in _find_views_in(names, form):
                found[posixpath.join(folder, name)] = view
    return found


def _may_hold_views(names: Sequence[str], form: re.Pattern[str]) -> bool:
    """Returns whether a few words, and not one alone, are in most of some sorted names.

    Neighbors are sampled together, since views of one thing are next to each other.
    """
    places = spread(range(0, len(names), 2), _SAMPLED_NAMES // 2)
    some = list(chain.from_iterable(names[at : at + 2] for at in places))
    signs = Counter(view.sign for name in some if (view := _divide(name, form)))
    usual = signs.most_common(MOST_VIEWS)
    return len(usual) > 1 and 2 * sum(count for _, count in usual) >= len(some)


def _divide(name: str, form: re.Pattern[str]) -> View | None:
    """Divides a name into what it shares with others and a pattern of what it does not share."""
    ending = posixpath.splitext(name)[1]
    match = form.fullmatch(stem_of(name))
    if match is None:
        return None
    if form is _WORD_BEFORE:
        return View(match[3], f"{match[1]}{match[2]}*")
    return View(match[1], f"*{match[2]}{match[3]}{ending}")


def _signs_of(views: Mapping[str, View]) -> tuple[str, ...]:
    return tuple(sorted(view.sign for view in views.values()))


def _find_views_in(names: Sequence[str], form: re.Pattern[str]) -> Iterator[tuple[str, View]]:
    """Yields the images of those things that have the usual views."""
    by_thing: defaultdict[str, dict[str, View]] = defaultdict(dict)
    for name in names:
        if view := _divide(name, form):
            by_thing[view.thing][name] = view
    plain = set(map(stem_of, names))
    kinds = Counter(map(_signs_of, by_thing.values()))
    usual, count = max(kinds.items(), key=lambda kind: len(kind[0]) * kind[1], default=((), 0))
    if len(usual) < 2 or count < FEWEST_THINGS:
        return
    if 2 * len(plain & by_thing.keys()) > count:  # `cat1`, `cat1_a`, `cat1_b`: changed images
        return
    for found in by_thing.values():
        if _signs_of(found) == usual:
            yield from found.items()


def _may_be_views(signs: Sequence[str], form: re.Pattern[str]) -> bool:
    """Returns whether such endings or beginnings are those of views.

    Words before numbers may be classes, unless they are sides: `left_1`, `right_1`.
    """
    words = {sign: sign.partition(".")[0].strip("*_- .") for sign in signs}
    if form is _WORD_BEFORE:
        return all(divide_by_sides({sign: {word} for sign, word in words.items()}))
    if form is _NUMBER_AFTER:  # more are counters
        return sorted(int(word) for word in words.values()) in ([0, 1], [1, 2])
    are_others = any(_CHANGED.fullmatch(word) or split_word_of(word) for word in words.values())
    return not are_others


def _as_pairs(
    found: Mapping[str, View], signs: Sequence[str], folders: Mapping[str, Sequence[str]]
) -> Pairs:
    """Says what was found, and which patterns keep each of the views alone."""
    first, thing = next((path, view.thing) for path, view in found.items())
    at = posixpath.dirname(first)
    beside = [
        posixpath.basename(path)
        for path, view in found.items()
        if posixpath.dirname(path) == at and view.thing == thing
    ]
    others = [path for path in join_names(folders) if path not in found]
    choices = []
    for kept in signs:
        left_out = {path: _patterns_for(path, view) for path, view in found.items()
                    if view.sign != kept}  # fmt: skip
        own = [path for path, view in found.items() if view.sign == kept]
        choices.append((kept, choose_patterns(left_out, [*own, *others])))
    shown = ", ".join(join_names({at: sorted(beside)}))
    return Pairs(
        f"{shown} may be images of one thing, as most others are",
        choices=tuple(choices),
        is_even=True,
        may_be_single=True,
        count=len(found) - len(found) // len(signs),
    )


def _patterns_for(path: str, view: View) -> list[str]:
    """Returns the patterns that may leave out a view, the widest first."""
    pattern = "*".join(map(escape_glob, view.sign.split("*")))
    folder = posixpath.dirname(path)
    within = f"/{escape_glob(folder)}/" if folder else "/"
    return [pattern, f"{within}{pattern}"]
