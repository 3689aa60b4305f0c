"""The language that selects images: `split=train class=cat,dog objects>=1 text~0001`.

A term is a name, an operator and values. Terms are joined by "and", values by "or"; `!=` and `!~`
negate. A value with spaces, commas or quotes is written in double quotes, with a backslash before
quotes and backslashes.
"""

import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recordmill.schemas.errors import UsageError

Matches = NDArray[np.bool_]
"""Of shape (images,): which images are selected."""

NAMED = ("split", "class", "changed", "marked")
"""Names whose values are names, with the operators `=` and `!=`."""

NUMBERS = ("width", "height", "bytes", "objects", "dropped")
"""Names whose values are numbers, with the operators of comparisons."""

TEXTS = ("text",)
"""Names whose values are parts of keys, with the operators `~` and `!~`."""

SORTABLE = ("key", "width", "height", "pixels", "bytes", "bytes_per_pixel", "objects")
"""What images can be sorted by; a `-` before it reverses the order."""

_COMPARISONS: Mapping[str, Callable[[Any, float], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_OPERATORS = {
    **dict.fromkeys(NAMED, ("=", "!=")),
    **dict.fromkeys(NUMBERS, tuple(_COMPARISONS)),
    **dict.fromkeys(TEXTS, ("~", "!~")),
}

_VALUE = r'"(?:[^"\\]|\\.)*"|[^\s,"]+'
_TERM = re.compile(rf"([A-Za-z_]+)(!=|!~|<=|>=|=|~|<|>)((?:{_VALUE})(?:,(?:{_VALUE}))*)(?=\s|$)")
_SPACES = re.compile(r"\s*")
_BARE = re.compile(r'[^\s,"\\]+')


class SelectionError(UsageError):
    """A selection cannot be understood; the message says which term, and what to write."""


@dataclass(frozen=True, slots=True)
class Term:
    """One condition.

    Attributes:
        name: what is compared.
        comparison: `=`, `!=`, `<`, `<=`, `>`, `>=`, `~` or `!~`.
        values: one of them must fit; with `!=` and `!~`, none.
    """

    name: str
    comparison: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}{self.comparison}{','.join(map(quote, self.values))}"


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that an image must all meet; without any, all images are selected."""

    terms: tuple[Term, ...] = ()

    def __str__(self) -> str:
        return " ".join(map(str, self.terms))


class Selectable(Protocol):
    """The values of images that a selection compares."""

    def __len__(self) -> int:
        """The number of images."""

    def list_names(self, name: str) -> Sequence[str]:
        """Returns the values that a name of `NAMED` can have."""

    def match_name(self, name: str, value: str) -> Matches:
        """Returns the images that have this value, which is one of `list_names`."""

    def match_text(self, text: str) -> Matches:
        """Returns the images whose key has this part, in upper or lower case."""

    def numbers_of(self, name: str) -> NDArray[Any]:
        """Returns the numbers of a name of `NUMBERS`; -1 where a value is unknown."""


def quote(value: str) -> str:
    """Returns a value as it is written in a selection."""
    if _BARE.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _unquote(written: str) -> str:
    if written.startswith('"'):
        return re.sub(r"\\(.)", r"\1", written[1:-1], flags=re.DOTALL)
    return written


def parse_selection(text: str) -> Selection:
    """Parses a selection.

    Raises:
        SelectionError: a term is malformed, or has an unknown name, a wrong operator, or a value
            that is not a number.
    """
    return Selection(tuple(_parse_terms(text)))


def _parse_terms(text: str) -> Iterator[Term]:
    at = _skip_spaces(text, 0)
    while at < len(text):
        found = _TERM.match(text, at)
        if found is None:
            shown = text[at:].split(maxsplit=1)[0]
            raise SelectionError(
                f"{shown!r:.60} is not a condition: write one such as class=cat or text~0001, with "
                "values that have spaces in double quotes"
            )
        values = re.findall(_VALUE, found[3], re.DOTALL)
        yield _check(Term(found[1].lower(), found[2], tuple(map(_unquote, values))))
        at = _skip_spaces(text, found.end())


def _skip_spaces(text: str, at: int) -> int:
    spaces = _SPACES.match(text, at)
    return spaces.end() if spaces else at


def _check(term: Term) -> Term:
    allowed = _OPERATORS.get(term.name)
    if allowed is None:
        raise SelectionError(f"there is no {term.name!r:.40}: {_suggest(term.name, _OPERATORS)}")
    if term.comparison not in allowed:
        raise SelectionError(
            f"{term.name} is compared by {' or '.join(allowed)}, not by {term.comparison}"
        )
    for value in term.values if term.name in NUMBERS else ():
        if not re.fullmatch(r"\d{1,15}", value):
            raise SelectionError(
                f"{term.name} is compared with {value!r:.40}: write a whole number"
            )
    return term


def _suggest(wrong: str, known: Sequence[str] | Mapping[str, object]) -> str:
    """Returns what to write instead of an unknown name."""
    longer = (name for name in known if wrong.lower() in name.lower())
    if (name := next(longer, None)) is not None:
        return f"did you mean {quote(name)}?"
    if near := difflib.get_close_matches(wrong, list(known), 1, cutoff=0.6):
        return f"did you mean {quote(near[0])}?"
    listed = [*known][:8]
    more = " and others" if len(known) > len(listed) else ""
    return f"choose one of {', '.join(map(quote, listed))}{more}"


def select(selection: Selection, images: Selectable) -> Matches:
    """Returns which images meet all conditions.

    Raises:
        SelectionError: a term names a split, a class or a change that the images cannot have.
    """
    selected = np.ones(len(images), np.bool_)
    for term in selection.terms:
        selected &= _match(term, images)
    return selected


def _match(term: Term, images: Selectable) -> Matches:
    """Returns the images that meet one condition; those whose value is unknown never do."""
    if term.name in NUMBERS:
        return _compare(term, images.numbers_of(term.name))
    matched = np.zeros(len(images), np.bool_)
    if term.name in TEXTS:
        for value in term.values:
            matched |= images.match_text(value)
    else:
        known = images.list_names(term.name)
        for value in term.values:
            if value not in known:
                raise SelectionError(
                    f"there is no {term.name} {value!r:.60}: {_suggest(value, known)}"
                )
            matched |= images.match_name(term.name, value)
    if term.comparison.startswith("!"):
        return ~matched
    return matched


def _compare(term: Term, numbers: NDArray[Any]) -> Matches:
    compare = _COMPARISONS[term.comparison]
    found = [np.asarray(compare(numbers, int(value))) for value in term.values]
    if term.comparison == "!=":
        met = np.logical_and.reduce(found)
    else:
        met = np.logical_or.reduce(found)
    known: Matches = met & (numbers >= 0)
    return known
