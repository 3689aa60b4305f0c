"""Tells prose about a collection from lists, such as those of names, labels or captions."""

import re
from collections.abc import Sequence
from itertools import pairwise

from recordmill.transforms.inputs.image_suffixes import PICTURE_SUFFIXES

_END = r"[.!?\u2026][\"')\]\u201d\u00bb]*(?=\s|$)|[\u3002\uff01\uff1f]"
_SENTENCE_END = re.compile(_END)
_WHOLE_LINE = re.compile(rf".*(?:{_END})")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_IMAGE = re.compile(rf"\w\.(?:{'|'.join(sorted(PICTURE_SUFFIXES))})\b", re.IGNORECASE)
_CELLS = re.compile(r"\t|\||;[^;]*;|\S\s{3,}\S|[^\s\d],[^\s\d]|[^\s\d],\d|\d,[^\s\d]")
"""What separates the cells of a table."""

_NUMBERED = re.compile(r"\S*\d\S*\s")
"""The begin of a line about an image with a number, or with a numbered name."""

_LETTERS_PER_WORD = 5
"""Letters that count as a word, in scripts that put no blanks between words."""

_FEWEST_WORDS = 4
"""The fewest words in a sentence that tells something."""

_FEWEST_ITEMS = 3
"""The fewest lines, one after the other, that are a list."""

_MOST_WORDS_OF_ITEMS = 2
"""The most words of a line that is an item of a list, and no end of a paragraph."""


def is_prose(lines: Sequence[str]) -> bool:
    """Returns whether a text is of sentences, and not a list with a line for each image or class.

    Args:
        lines: the text's lines without surrounding blanks; an empty one separates paragraphs.
    """
    text = "\n".join(lines)
    if _IMAGE.search(text) or _are_cells(lines) or _are_captions(lines) or _has_items(lines):
        return False
    ends = [0, *(each.end() for each in _SENTENCE_END.finditer(text))]
    sentences = [text[start:end] for start, end in pairwise(ends)]
    told = [each for each in sentences if _count_words(each) >= _FEWEST_WORDS]
    in_sentences = sum(len(each.split()) for each in told)
    words = _WORD.findall(text)
    are_words = sum(map(len, words)) >= 0.7 * sum(map(len, text.split()))
    return bool(told) and are_words and in_sentences >= 0.6 * len(text.split())


def _count_words(sentence: str) -> float:
    words = _WORD.findall(sentence)
    return max(len(words), sum(map(len, words)) / _LETTERS_PER_WORD)


def _are_cells(lines: Sequence[str]) -> bool:
    """Returns whether half of the lines are rows of a table, or about things with numbers."""
    full = [line for line in lines if line]
    cells = sum(_CELLS.search(line) is not None for line in full)
    numbered = sum(_NUMBERED.match(line) is not None for line in full)
    return 2 * cells >= len(full) or (len(full) > 1 and 2 * numbered > len(full))


def _are_captions(lines: Sequence[str]) -> bool:
    """Whether the lines are sentences of their own, one after the other, as captions are."""
    full = [line for line in lines if line]
    whole = [line for line in full if _WHOLE_LINE.fullmatch(line)]
    has_paragraphs = 2 * lines.count("") >= len(full) - 1
    return len(full) >= _FEWEST_ITEMS and len(whole) >= 0.9 * len(full) and not has_paragraphs


def _has_items(lines: Sequence[str]) -> bool:
    """Returns whether some lines, one after the other, are no more than names or numbers."""
    found = 0
    for line in lines:
        is_item = 0 < len(line.split()) <= _MOST_WORDS_OF_ITEMS and not _WHOLE_LINE.fullmatch(line)
        is_numbered = len(line.split()) <= 4 and _NUMBERED.match(line)
        found = found + 1 if is_item or is_numbered else 0
        if found == _FEWEST_ITEMS:
            return True
    return False
