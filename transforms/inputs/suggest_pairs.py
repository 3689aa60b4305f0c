"""Settings that store second images with their images, for pairs that were found by their names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from recordmill.transforms.inputs.folder_sketch import given_splits, split_for_word
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.pair_names import (
    AGREEMENT,
    DEPTH_WORDS,
    WORD,
    core_of,
    split_word_of,
    stem_of,
)
from recordmill.transforms.inputs.paired_images import PathPattern

_NO_MASKS = DEPTH_WORDS | {"lr", "target"}
"""Words for second images that are not masks."""


@dataclass(frozen=True, slots=True)
class _Folders:
    """The patterns of the two folders of pairs.

    Attributes:
        first: of the first images.
        second: of the second images.
        splits: the settings of splits that folders name.
        source: settings of the source for these splits.
    """

    first: str
    second: str
    splits: Mapping[str, Any]
    source: Mapping[str, str]


def suggest_pairs(
    pairs: Pairs, names: Mapping[str, Sequence[str]], split_folders: Sequence[str] = ()
) -> Mapping[str, Any] | None:
    """Returns the settings that store second images with their images; None if none would.

    Args:
        pairs: the pairs, in folders of their own.
        names: the names of images in each folder, by path below the input.
        split_folders: the first folders, if they are those of splits.
    """
    if not pairs.kept or not pairs.left_out or are_masks(pairs):
        return None
    folders = _find_sides(pairs) if pairs.are_sides else _find_folders(pairs, split_folders)
    if folders is None:
        return None
    firsts = _list_files(pairs.kept, names)
    seconds = set(_list_files(pairs.left_out, names))
    if folders.splits.get("from_folders"):
        firsts, seconds = _strip(firsts), set(_strip(seconds))
    files = _find_files(folders, firsts, seconds)
    if files is None:
        return None
    first, second = files
    own = [part for part in folders.second.split("/") if part not in folders.first.split("/")]
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", PathPattern.strip_names("_".join(own))).strip("_-")
    source = {
        "kind": "class_folders",
        "class_from": "none",
        **folders.source,
        "pairs_of": first,
        "pairs": {name or "second": second},
    }
    settings: dict[str, Any] = {"source": source}
    if folders.splits:
        settings["splits"] = folders.splits
    if _words_of(pairs.left_out) & DEPTH_WORDS:
        settings["images"] = {"store": "png", "depth": 16}
    return settings


def are_masks(pairs: Pairs) -> bool:
    """Returns whether the second images are drawn, so that no setting of images fits them."""
    if pairs.is_even or pairs.are_sides:
        return False
    return not _words_of(pairs.left_out) & _NO_MASKS


def _list_files(folders: Iterable[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    """Returns the paths of the files in folders."""
    found: list[str] = []
    for path in folders:
        found += [f"{path}/{name}" for name in names.get(path, ())]
    return found


def _words_of(paths: Iterable[str]) -> set[str]:
    """Returns the words in paths, in lower case."""
    return {word.lower() for word in chain.from_iterable(map(WORD.findall, paths))}


def _find_sides(pairs: Pairs) -> _Folders | None:
    """Returns the folders `trainA` and `trainB`, `testA` and `testB`."""
    firsts = {path[:-1] for path in pairs.kept}
    seconds = {path[:-1] for path in pairs.left_out}
    if firsts != seconds or any("/" in path for path in (*pairs.kept, *pairs.left_out)):
        return None
    words = {path.rstrip(" _-"): split_for_word(path.rstrip(" _-")) for path in sorted(firsts)}
    split = f"^/(?P<split>{'|'.join(map(re.escape, words))})[ _-]?[AB]/"
    splits = {"from_source": words}
    return _Folders("{split}A", "{split}B", splits, {"split": split})


def _find_folders(pairs: Pairs, split_folders: Sequence[str]) -> _Folders | None:
    """Returns folders that differ in the same places, whose other names are the same."""
    paths = [*pairs.kept, *pairs.left_out]
    splits: Mapping[str, Any] = {}
    firsts, seconds = list(pairs.kept), list(pairs.left_out)
    if split_folders and all(path.partition("/")[0] in split_folders for path in paths):
        splits = given_splits("from_folders", split_folders)["splits"]
        firsts, seconds = _strip(firsts), _strip(seconds)
    if len({*firsts}) == len({*seconds}) == 1:
        return _Folders(firsts[0], seconds[0], splits, {})
    parts = [{tuple(path.split("/")) for path in side} for side in (firsts, seconds)]
    if len({len(each) for side in parts for each in side}) > 1:
        return None
    source: dict[str, str] = {}
    found: list[tuple[str, str]] = []
    for at, (ones, others) in enumerate(
        zip(*(map(frozenset, zip(*side, strict=True)) for side in parts), strict=True)
    ):
        if len(ones) == len(others) == 1:
            found.append((*ones, *others))
        elif ones != others:
            return None
        elif not splits and all(map(split_word_of, ones)):
            words = {word: split_word_of(word) for word in sorted(ones)}
            source["split"] = f"/(?P<split>{'|'.join(map(re.escape, words))})/"
            splits = {"from_source": words}
            found.append(("{split}", "{split}"))
        else:
            found.append((f"{{folder_{at}}}",) * 2)
    first, second = ("/".join(side) for side in zip(*found, strict=True))
    return _Folders(first, second, splits, source)


def _strip(paths: Iterable[str]) -> list[str]:
    """Returns paths without their first folder."""
    return [path.partition("/")[2] for path in paths]


def _find_files(
    folders: _Folders, firsts: Sequence[str], seconds: frozenset[str] | set[str]
) -> tuple[str, str] | None:
    """Returns the patterns of both files; None if too few of the images have a second one."""
    one, other = (_describe_names(paths) for paths in (firsts, seconds))
    if one is None or other is None:
        return None
    found = f"{folders.first}/{one}", f"{folders.second}/{other}"
    first, second = map(PathPattern.of, found)
    parts = list(map(first.find_parts, firsts))
    paired = sum(each is not None and second.fill(each) in seconds for each in parts)
    return found if paired >= AGREEMENT * len(firsts) > 0 else None


def _describe_names(paths: Iterable[str]) -> str | None:
    """Returns the pattern of files' names; None if what is around their cores differs."""
    names = [path.rpartition("/")[2] for path in paths]
    endings = {name[len(stem_of(name)) :] for name in names}
    if len(endings) > 1:
        return "{name}"
    stems = list(map(stem_of, names))
    cores = list(map(core_of, stems))
    around = {tuple(stem.split(core, 1)) for stem, core in zip(stems, cores, strict=True) if core}
    if len(around) != 1:
        return None
    ((before, after),) = around
    return f"{before}{{name}}{after}{endings.pop()}"
