"""The values that attributes of objects have in a listing, and the numbers that are stored."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from recordmill.schemas.label_map import is_integer_label, one_line

MOST_WORDS = 1000
"""The most different texts of an attribute that is stored: others are free text."""

MOST_ATTRIBUTES = 100
"""The most attributes of a dataset; the first by name are stored."""

LONGEST_WORD = 200
"""Characters of the longest text that is a word."""

_TRUTH = {"false": 0, "true": 1}

_MOST_SHOWN = 20
"""The most words in the meaning of a feature."""

WordIds = Mapping[str, int]
"""The ids of an attribute's words; empty if its values are truth values and whole numbers."""


class AttributeText(NamedTuple):
    """A value of an attribute, as text: `true` and `false` for truth values."""

    name: str
    text: str


def find_number(text: str | None, words: WordIds) -> int | None:
    """Returns the number that stands for a value in Examples; None if nothing does."""
    if text is None:
        return None
    if words:
        return words.get(text)
    return _read_whole(text)


def describe_numbers(meaning: str, words: WordIds) -> str:
    """Returns the meaning of an attribute's feature, with what the ids of its words mean."""
    if not words:
        return meaning
    shown = [f"{number} for {one_line(word)}" for word, number in list(words.items())[:_MOST_SHOWN]]
    if len(words) > _MOST_SHOWN:
        shown.append("...")
    return f"{meaning}: {', '.join(shown)}"


def _read_whole(text: str) -> int | None:
    """Returns a truth value or a whole number; None for other texts, such as `007`."""
    truth = _TRUTH.get(text.lower())
    if truth is None and is_integer_label(text) and str(int(text)) == text:
        return int(text)
    return truth


@dataclass(slots=True)
class AttributeTally:
    """The values of one attribute.

    Attributes:
        count: how many there are.
        words: the different ones; none if there are too many, or one is too long.
        has_words: whether one is neither a truth value nor a whole number.
        has_many: whether there are too many different ones, or one is too long.
    """

    count: int = 0
    words: set[str] = field(default_factory=set)
    has_words: bool = False
    has_many: bool = False

    def add(self, text: str) -> None:
        """Adds a value."""
        self.count += 1
        self.has_words = self.has_words or _read_whole(text) is None
        self._add_words({text})

    def merge(self, other: Self) -> None:
        """Adds the values of another tally, which stays as it is."""
        self.count += other.count
        self.has_words = self.has_words or other.has_words
        self.has_many = self.has_many or other.has_many
        self._add_words(other.words)

    def _add_words(self, words: Set[str]) -> None:
        self.words |= words
        is_long = any(len(word) > LONGEST_WORD for word in words)
        self.has_many = self.has_many or is_long or len(self.words) > MOST_WORDS
        if self.has_many:
            self.words.clear()

    @property
    def is_free(self) -> bool:
        """Whether it is free text: words, and too many different ones, or one that is too long."""
        return self.has_words and self.has_many

    def number_words(self) -> WordIds:
        """Returns the ids of the words, in the order of their code points."""
        if not self.has_words:
            return {}
        return {word: number for number, word in enumerate(sorted(self.words))}


class AttributeTallies(dict[str, AttributeTally]):
    """The values of all attributes by name; of too many attributes, the first by name remain."""

    def add(self, values: Iterable[AttributeText]) -> None:
        """Adds values of objects."""
        for name, text in values:
            self.setdefault(name, AttributeTally()).add(text)
            self._limit()

    def merge(self, other: Self) -> None:
        """Adds the values of others."""
        for name, tally in other.items():
            self.setdefault(name, AttributeTally()).merge(tally)
        self._limit()

    def _limit(self) -> None:
        while len(self) > MOST_ATTRIBUTES + 1:
            del self[max(self)]
