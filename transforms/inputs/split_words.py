"""Names of columns and keys that say which split an image is in, and what their values mean."""

import re
from collections.abc import Collection, Iterable, Sequence

from recordmill.transforms.inputs.folder_sketch import split_for_word

SPLIT_KEYS = (
    *("split", "set", "subset", "partition", "dataset", "datasplit", "phase", "usage", "fold"),
    *("traintest", "traintestval", "trainvaltest", "istraining", "istrain", "train"),
    "istrainingimage",
    *("istest", "isval", "isvalidation", "isvalid"),
)
"""Names of columns and keys that say which split an image is in, in lower case and without
punctuation."""

_MAY_BE_OTHERS = frozenset({"set", "dataset", "phase", "usage", "train"})
"""Those of them that also have other meanings, if all rows have the same value."""

_TRUE, _FALSE = ("1", "true", "yes"), ("0", "false", "no")
_FLAGS = {
    **dict.fromkeys(("istraining", "istrain", "istrainingimage", "train"), ("train", "test")),
    "istest": ("test", "train"),
    **dict.fromkeys(("isval", "isvalidation", "isvalid"), ("validation", "train")),
}
"""The splits of images whose flag is set, and whose flag is not set."""


def plain_column(name: str) -> str:
    """Returns a column's name in lower case, without what people put between words: `Image ID`."""
    return re.sub(r"[\s_.-]", "", name.lower())


def may_be_split(name: str) -> bool:
    """Returns whether a name is that of a column of splits."""
    return plain_column(name) in SPLIT_KEYS


def has_other_meanings(name: str) -> bool:
    """Returns whether a name that `may_be_split` is also that of other columns."""
    return plain_column(name) in _MAY_BE_OTHERS


def is_doubtful_split(name: str, values: Collection[str]) -> bool:
    """Returns whether the values of a column show that it may be about something else."""
    return has_other_meanings(name) and len(values) < 2


def name_splits(words: Iterable[str]) -> dict[str, str]:
    """Returns splits that are named after their words, as far as names may have these letters."""
    return {word: re.sub(r"[^\w.-]", "_", word) for word in words}


def guess_splits(name: str, values: Sequence[str]) -> dict[str, str]:
    """Returns the splits that the values of a column seem to mean; empty if one is not clear.

    Args:
        name: the column.
        values: its different values, sorted.
    """
    key = plain_column(name)
    lower = {value.lower() for value in values}
    if key in _FLAGS and lower <= {*_TRUE, *_FALSE}:
        is_set, is_not_set = _FLAGS[key]
        guessed = {value: is_set if value.lower() in _TRUE else is_not_set for value in values}
        other = next(iter(lower))
        both = next(pair for pair in zip(_TRUE, _FALSE, strict=True) if other in pair)
        return {**dict(zip(both, (is_set, is_not_set), strict=True)), **guessed}
    numbers = sorted(int(value) for value in values if value.isdecimal())
    if key == "fold" and numbers and numbers == [*range(numbers[0], numbers[0] + len(values))]:
        first = {str(number): "train" for number in numbers}
        return {**first, str(numbers[0]): "validation"} if len(numbers) > 1 else {}
    words = {value: re.findall("[A-Z]?[a-z]+|[A-Z]+", value) for value in values}
    guessed = {value: next(filter(None, map(split_for_word, words[value])), "") for value in values}
    return guessed if all(guessed.values()) else {}
