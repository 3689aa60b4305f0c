"""Settings that store second images with their images, for pairs that were found by their names."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any

from recordmill.transforms.inputs.folder_sketch import given_splits, split_for_word
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.pair_names import (
    AGREEMENT,
    DEPTH_WORDS,
    WORD,
    core_of,
    divide_by_sides,
    split_word_of,
    stem_of,
)
from recordmill.transforms.inputs.paired_images import PathPattern

_NO_MASKS = DEPTH_WORDS | {"lr", "target"}
"""Words for second images that are not masks."""

_DEGRADED = frozenset(
    {"noisy", "blur", "blurry", "hazy", "rainy", "low", "lq", "degraded", "distorted", "input"}
)
"""Words for first images whose second ones are not masks, even if these are called `GT`."""


_AFTER = re.compile(r".+?([ _.-][A-Za-z]+[0-9]?)")
_BEFORE = re.compile(r"([A-Za-z]+[0-9]?[ _.-]).+")
"""The word after or before what two names have in common, with the sign between them."""

_LEAST_OF_FORM = 0.4
"""The least share of names that have one of two forms."""


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
    if not pairs.kept or not pairs.left_out or _are_masks(pairs):
        return None
    folders = _find_sides(pairs) if pairs.are_sides else _find_folders(pairs, split_folders)
    groups = [(folders, pairs.left_out)] if folders else _find_groups(pairs)
    found = dict[str, str]()
    for each, left_out in groups:
        firsts, seconds = _list_files(pairs.kept, names), _list_files(left_out, names)
        if each.splits.get("from_folders"):
            firsts, seconds = _strip(firsts), _strip(seconds)
        files = _find_files(each, firsts, {*seconds})
        if files is None:
            return None
        pairs_of, found[_name_pair(each)] = files
    if not found:
        return None
    first, _ = groups[0]
    return _make_settings({**first.source, "pairs_of": pairs_of}, found, first.splits)


def _make_settings(
    source: Mapping[str, str], pairs: Mapping[str, str], splits: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Returns the settings that store pairs, in YAML's shape.

    Args:
        source: the settings of the source besides `pairs`.
        pairs: the pattern of the second images of each name.
        splits: the settings of splits.
    """
    own = {"kind": "class_folders", "class_from": "none", **source, "pairs": pairs}
    settings: dict[str, Any] = {"source": own}
    if splits:
        settings["splits"] = splits
    if _words_of(pairs.values()) & DEPTH_WORDS:
        settings["images"] = {"store": "png", "depth": 16}
    return settings


def _name_pair(folders: _Folders) -> str:
    """Returns a name for second images, from the names of their folders."""
    own = [part for part in folders.second.split("/") if part not in folders.first.split("/")]
    return _as_name("_".join(own))


def _as_name(text: str) -> str:
    """Returns a name of second images that features may have."""
    name = re.sub(r"[^A-Za-z0-9-]+", "_", PathPattern.strip_names(text)).strip("_-")
    return name or "second"


def _are_masks(pairs: Pairs) -> bool:
    """Returns whether the second images are drawn, so that no setting of images fits them."""
    if pairs.is_even or pairs.are_sides:
        return False
    is_known = _words_of(pairs.left_out) & _NO_MASKS or _words_of(pairs.kept) & _DEGRADED
    return not is_known


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


def _find_groups(pairs: Pairs) -> list[tuple[_Folders, Sequence[str]]]:
    """Returns folders whose names have the word for the split: `set_train_HR`, `set_val_HR`.

    The folders of second images are grouped by what is around this word: each group has second
    images of another kind, such as `X2` and `X4`.
    """
    divided = {path: _divide_by_split(path) for path in (*pairs.kept, *pairs.left_out)}
    words = {word: split_for_word(word) for _, word, _ in divided.values() if word}
    if len(words) < 2:
        words = {}
        divided = {path: (path, "", "") for path in divided}
    templates = {
        path: f"{before}{{split}}{after}" if word else path
        for path, (before, word, after) in divided.items()
    }
    firsts = {templates[path] for path in pairs.kept}
    if len(firsts) > 1:
        return []
    before, _, after = divided[pairs.kept[0]]
    source, splits = dict[str, str](), dict[str, Any]()
    if words:
        choice = "|".join(map(re.escape, words))
        source["split"] = f"^/{re.escape(before)}(?P<split>{choice}){re.escape(after)}/"
        splits["from_source"] = words
    groups = defaultdict[str, list[str]](list)
    for path in pairs.left_out:
        groups[templates[path]].append(path)
    (first,) = firsts
    return [(_Folders(first, second, splits, source), paths) for second, paths in groups.items()]


def _divide_by_split(path: str) -> tuple[str, str, str]:
    """Returns the first word for a split in a path, and what is before and after it."""
    for match in WORD.finditer(path):
        if split_for_word(match[0]):
            return path[: match.start()], match[0], path[match.end() :]
    return path, "", ""


def suggest_pairs_beside(
    names: Mapping[str, Sequence[str]], split_folders: Sequence[str] = (), are_sides: bool = True
) -> Mapping[str, Any] | None:
    """Returns the settings that store second images next to their images; None if none would.

    Nearly all names are of two forms, around the same numbers or words: `1_noisy`, `1_clean`.

    Args:
        names: the names of images in each folder, by path below the input.
        split_folders: the folders of splits.
        are_sides: whether the names must say which images are the second ones.
    """
    if not names or ({*names} != {""} and not {*names} <= {*split_folders}):
        return None
    files = sorted({*chain.from_iterable(names.values())})  # splits may have the same names
    found = _find_two_forms(files)
    if found is None:
        return None
    words = {form: _words_of([PathPattern.strip_names(stem_of(form))]) for form in found}
    firsts, seconds = divide_by_sides(words)
    depths = [form for form in found if words[form] & _NO_MASKS]
    if not seconds and len(depths) == 1:
        seconds, firsts = depths, [form for form in found if form not in depths]
    if not seconds and not are_sides:
        firsts, seconds = [found[0]], [found[1]]
    if not seconds:
        return None
    splits = given_splits("from_folders", split_folders).get("splits", {})
    pairs = {_as_name(stem_of(seconds[0])): seconds[0]}
    return _make_settings({"pairs_of": firsts[0]}, pairs, splits if {*names} != {""} else {})


def _find_two_forms(names: Sequence[str]) -> list[str] | None:
    """Returns the two patterns of names, around the same cores; None if there are no such two."""
    counts = Counter(chain.from_iterable(map(_forms_of, names)))
    usual = [form for form, count in counts.items() if count >= _LEAST_OF_FORM * len(names)]
    for forms in combinations(sorted(usual), 2):
        patterns = sorted(map(PathPattern.of, forms), key=lambda each: -each.letters)
        cores: list[set[str]] = [set(), set()]
        for name in names:
            parts = [each.find_parts(name) for each in patterns]
            at = next((at for at, each in enumerate(parts) if each), None)
            if at is not None:
                cores[at] |= {*(parts[at] or {}).values()}
        both = cores[0] & cores[1]
        if 2 * len(both) >= AGREEMENT * len(names) and len(both) > 1:
            return [each.text for each in patterns]
    return None


def _forms_of(name: str) -> Iterator[str]:
    """Yields the patterns that a name may have, with a word after or before `{name}`, or none."""
    stem = stem_of(name)
    ending = name[len(stem) :]
    if "{" in name or "}" in name:
        return
    yield f"{{name}}{ending}"
    if match := _AFTER.fullmatch(stem):
        yield f"{{name}}{match[1]}{ending}"
    if match := _BEFORE.fullmatch(stem):
        yield f"{match[1]}{{name}}{ending}"


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
