"""The words of a command line that are not flags: its inputs, its output, or neither."""

import argparse
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from recordmill.schemas.errors import UsageError


@dataclass(frozen=True, slots=True)
class InputsAndOutput:
    """What to convert, and where to.

    Attributes:
        inputs: folders and files, as the user wrote them.
        output: the dataset's folder; None if none is named.
    """

    inputs: tuple[str, ...]
    output: str | None


def split_positions(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the words before the first flag, and the rest."""
    positions = [*takewhile(lambda word: not is_flag(word), words)]
    return positions, [*words[len(positions) :]]


def is_flag(word: str) -> bool:
    """Returns whether a word begins as flags do; `-` alone is a value."""
    return word.startswith("-") and len(word) > 1


def join_places(positions: Sequence[str], named: InputsAndOutput) -> InputsAndOutput:
    """Returns the places that positions and flags name.

    Of two or more positions, the last is the output.

    Args:
        positions: the words before the first flag.
        named: what the flags name.

    Raises:
        UsageError: positions and flags together can be read in two ways.
    """
    if not positions:
        return named
    if named.inputs or (named.output and len(positions) > 1):
        raise UsageError(explain_stray(positions[-1]))
    if len(positions) == 1:
        return InputsAndOutput((positions[0],), named.output)
    return InputsAndOutput(tuple(positions[:-1]), positions[-1])


def explain_stray(word: str) -> str:
    """Returns the sentence on a word that may be an input or the output."""
    if re.search(r"[{}\[\],:]", word):  # the shell split a value at spaces
        advice = "quote the argument of --set, as in --set 'splits.fractions={train: 1}'"
        return f"there is no flag {word}: {advice}"
    quoted = shlex.quote(word)
    return f"{word} may be an input or the output: write --input {quoted} or --output {quoted}"


def find_stray_word(words: Sequence[str], flags: Mapping[str, argparse.Action]) -> str | None:
    """Returns the first word after the flags that is not the value of one; None without any.

    A word after a flag of Beam is its value.

    Args:
        words: the words from the first flag on, with hyphens in our flags.
        flags: our flags by name.
    """
    takes_value = False
    for at, word in enumerate(words):
        if word == "--":
            return next(iter(words[at + 1 :]), None)
        if is_flag(word):
            takes_value = "=" not in word and _may_take_value(flags.get(word))
        elif takes_value:
            takes_value = False
        else:
            return word
    return None


def _may_take_value(action: argparse.Action | None) -> bool:
    """Returns whether the next word may be the value of a flag of ours, or of Beam's (None)."""
    return action is None or action.nargs != 0
