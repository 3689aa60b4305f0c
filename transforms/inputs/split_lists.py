"""Split lists with a name in each line: the list that names an image gives its split.

Lists of images and masks are such, too: the first word of a line counts.
"""

import posixpath
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.folder_sketch import split_for_word
from recordmill.transforms.inputs.image_names import names_in
from recordmill.transforms.inputs.image_suffixes import is_image_name
from recordmill.transforms.inputs.named_files import bad_annotations, locate, read_sibling

BOTH = "trainval"
"""The word of lists that join those for training and validation."""

_SPLIT = "{split}"
_MOST_BYTES = 2**26


def find_listed_word(root: str, lists: str, name: str) -> str | None:
    """Returns the word of the list that names an image; None if no list does.

    Lists are those for split words and `trainval`. If several name an image, the first counts in
    the order of splits: `train` and `val` come before `trainval`.

    Args:
        root: the input.
        lists: the path of the lists below it, with `{split}` in the place of the word.
        name: the image's name without its extension, perhaps with folders before it.

    Raises:
        Rejected: `bad_annotations`: there is no list, or one cannot be read.
    """
    folder, pattern = posixpath.split(lists)
    texts = names_in(f"{root}/{folder}".rstrip("/"), are_texts=True)
    found = find_list_words(pattern, chain.from_iterable(texts.by_stem.values()))
    if not found:
        raise bad_annotations(f"there is no list {lists} (source.sets)")
    for word in found:
        place = posixpath.join(folder, pattern.replace(_SPLIT, word))
        if not {name, posixpath.basename(name)}.isdisjoint(_read_list(*locate(root, place))):
            return word
    return None


def find_list_words(pattern: str, names: Iterable[str]) -> list[str]:
    """Returns the words of the split lists among some files, in the order in which they count.

    Args:
        pattern: the names of lists, with `{split}` in the place of the word.
        names: the names of the files.
    """
    form = re.compile(re.escape(pattern).replace(re.escape(_SPLIT), "(.+)"), re.DOTALL)
    words = {match[1] for match in map(form.fullmatch, names) if match}
    return sorted(filter(_is_split, words), key=_rank)


def name_listed(data: bytes) -> frozenset[str]:
    """Returns the first word of each line of a list, whole and without folders before it.

    Extensions of images are left out.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    lines = data.decode("utf-8-sig").splitlines()
    words = (line.split()[0] for line in lines if line.strip() and not line.startswith("#"))
    stems = {posixpath.splitext(word)[0] if is_image_name(word) else word for word in words}
    return frozenset(stems | set(map(posixpath.basename, stems)))


def _is_split(word: str) -> bool:
    return bool(split_for_word(word)) or word == BOTH


def _rank(word: str) -> tuple[int, str]:
    """Returns the place of a word in the order of splits, after which others come."""
    order = list(dict.fromkeys(SPLIT_NAMES.values()))
    split = split_for_word(word)
    return order.index(split) if split else len(order), word


@lru_cache(maxsize=64)
def _read_list(uri: str, size: int, version: str) -> frozenset[str]:
    """Returns the names in a list, from memory if it is unchanged."""
    try:
        return name_listed(read_sibling(uri, _MOST_BYTES))
    except UnicodeDecodeError:
        raise bad_annotations(f"{posixpath.basename(uri)} is not UTF-8") from None
