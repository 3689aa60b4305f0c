"""Pairs of images: a photograph, and a mask or another second image of the same thing.

Recordmill stores one image per record, so a folder of second images is not a class. Equal base
names alone prove nothing, because `cat/0001.jpg` and `dog/0001.jpg` are two classes: one more sign
is needed.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import nsmallest
from itertools import chain, filterfalse, product
from math import log
from statistics import median
from zlib import crc32

from recordmill.transforms.inputs.copied_images import find_copies, find_parts
from recordmill.transforms.inputs.folder_sketch import join_names
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.image_looks import (
    LOSSLESS,
    MOST_GRAY_LEVELS,
    SAMPLED_FILES,
    SAMPLED_FOLDERS,
    Appearance,
    Looker,
    spread,
)
from recordmill.transforms.inputs.pair_names import (
    AGREEMENT,
    IMAGE_WORDS,
    TELLING,
    are_counters,
    cores_of,
    divide_by_sides,
    is_domain,
    is_second_domain,
    is_telling,
    parts_of,
    split_word_of,
    words_in,
)
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.sample_folders import find_samples
from recordmill.transforms.inputs.twins import find_twins

_NUMBERED_LABEL = re.compile(r"labels?[ _-]?[0-9]+", re.IGNORECASE)


def find_pairs(folders: Mapping[str, Sequence[str]], look: Looker) -> Pairs | None:
    """Finds pairs of images, in one folder or in parallel ones; None if there are none.

    Args:
        folders: the names of the images in each folder, by path below the input.
        look: looks at an image.
    """
    cores = {path: cores_of(images) for path, images in folders.items()}
    return (
        _find_sides(folders)
        or find_samples(folders, look)
        or find_twins(folders, cores, look)
        or find_copies(folders, cores)
        or find_parts(folders, look)
        or _find_parallel(folders, cores, look)
        or _find_numbered(folders, cores, look)
        or _find_named(folders)
        or _find_letters(folders)
    )


def _find_sides(folders: Mapping[str, Sequence[str]]) -> Pairs | None:
    """Finds `trainA` next to `trainB`, whatever their images are called."""
    sides: dict[str, str] = {}
    for path in folders:
        side = next(filter(is_domain, path.split("/")), "")
        if not side:
            return None
        sides[path] = side
    seconds = tuple(sorted(path for path, side in sides.items() if is_second_domain(side)))
    firsts = tuple(sorted(sides.keys() - set(seconds)))
    if not firsts or not seconds:
        return None
    one = ", ".join(sorted({sides[path] for path in firsts}))
    other = ", ".join(sorted({sides[path] for path in seconds}))
    why = f"{one} and {other} are two sides of the same splits"
    count = sum(len(folders[path]) for path in seconds)
    return Pairs(why, firsts, seconds, are_sides=True, count=count)


def _find_letters(folders: Mapping[str, Sequence[str]]) -> Pairs | None:
    """Finds `A` next to `B`, and no other folder but those of splits, whatever is in them."""
    letters = {path: tuple(filterfalse(split_word_of, path.split("/"))) for path in folders}
    if {*letters.values()} != {("A",), ("B",)}:
        return None
    firsts, seconds = (
        tuple(sorted(path for path in folders if letters[path] == (letter,))) for letter in "AB"
    )
    return Pairs(
        f"{firsts[0]} and {seconds[0]} may be two sides of the same things",
        firsts,
        seconds,
        is_even=True,
        may_be_classes=True,
        class_from="none" if _are_one_folder_of_splits(firsts) else None,
        count=sum(len(folders[path]) for path in seconds),
    )


def _find_parallel(
    folders: Mapping[str, Sequence[str]], names: Mapping[str, Sequence[str]], look: Looker
) -> Pairs | None:
    """Finds folders that hold the same base names and are not classes."""
    cores = {path: frozenset(each) for path, each in names.items()}
    kept: dict[str, None] = {}
    left_out: dict[str, None] = {}
    is_even = may_be_classes = False
    groups = [group for group in _group(cores) if not _is_chance(group, cores)]
    alike: set[str] = set()
    for group in groups:
        firsts, seconds = _divide(group, folders, look)
        if seconds and _look_alike(group, folders, look):
            alike.update(group)
            continue
        own = _own_parts(group)
        # Folders named `a` and `b` may be classes.
        are_letters = sorted(map(sorted, own.values())) == [["A"], ["B"]]
        are_alone = len(group) == len(cores) and len(cores[group[0]]) > 1
        sides = divide_by_sides(own, may_be_letters=are_letters and are_alone)
        if not seconds and (all(sides) or _agree_by_themselves(group, cores)):
            firsts, seconds = sides
            if not seconds:
                firsts, seconds = group[:1], group[1:]
            is_even = True
            may_be_classes = are_letters or are_counters(cores[group[0]]) or not all(sides)
        if seconds:
            kept.update(dict.fromkeys(firsts))
            left_out.update(dict.fromkeys(seconds))
    for first, second in _parts_of_others(cores, {*kept, *left_out, *alike}):
        kept[first] = left_out[second] = None
    if not left_out:
        return None
    for path in cores:  # parts of these sets, in folders whose names tell as much
        if path not in kept and path not in left_out:
            (left_out if _is_second(path, kept, left_out) else kept)[path] = None
    first, second = max(
        (pair for pair in product(kept, left_out) if _agree(cores[pair[0]], cores[pair[1]])),
        key=lambda pair: len(set(pair[0].split("/")) & set(pair[1].split("/"))),
        default=(next(iter(kept)), next(iter(left_out))),
    )
    first = first or "the folder itself"
    why = f"{first} and {second} hold images of the same names"
    count = sum(len(folders[path]) for path in left_out)
    return Pairs(
        why,
        tuple(sorted(kept)),
        tuple(sorted(left_out)),
        is_even=is_even,
        may_be_classes=may_be_classes,
        class_from="none" if is_even and _are_one_folder_of_splits(kept) else None,
        count=count,
    )


def _are_one_folder_of_splits(paths: Iterable[str]) -> bool:
    """Returns whether paths differ in splits alone, so that the other folder is not a class."""
    parts = [path.split("/") for path in paths]
    others = {tuple(filterfalse(split_word_of, each)) for each in parts}
    have_splits = all(any(map(split_word_of, each)) for each in parts)
    return have_splits and len(others) == 1


def _divide(
    group: Sequence[str], folders: Mapping[str, Sequence[str]], look: Looker
) -> tuple[list[str], list[str]]:
    """Divides a group into first and second images by names, or by looks."""
    firsts, seconds = _by_words(group)
    if not seconds:
        return _by_looks(group, folders, look)
    return _by_layers(firsts, seconds)


def _is_chance(group: Sequence[str], cores: Mapping[str, Collection[str]]) -> bool:
    """Whether a single image has the name of another one whose folder is around its folder."""
    around = [path for path in group if not path.startswith(f"{group[0]}/")]
    return len(around) == 1 and len(cores[group[0]]) == 1


def _find_numbered(
    folders: Mapping[str, Sequence[str]], names: Mapping[str, Sequence[str]], look: Looker
) -> Pairs | None:
    """Finds masks whose names have the same numbers, after another word than those of images."""
    if not any(map(_have_lossless, folders.values())):
        return None
    cores = {}
    for path, each in names.items():
        begin, end = (re.compile(form) for form in (r"\D*", r"\D*$"))
        edges = {(begin.match(core)[0], end.search(core)[0]) for core in each}  # type: ignore[index]
        ((before, after), *others) = edges
        numbers = {core[len(before) : len(core) - len(after)] for core in each}
        if not others and len(numbers) == len(each) > 1 and "" not in numbers:
            cores[path] = frozenset(numbers)
    for group in _group(cores):
        if not any(_have_lossless(folders[path]) for path in group):
            continue
        firsts, seconds = _by_looks(group, folders, look)
        if seconds:
            why = f"{seconds[0]} looks like masks of the images in {firsts[0]}"
            kept = tuple(sorted(folders.keys() - set(seconds)))
            count = sum(len(folders[path]) for path in seconds)
            return Pairs(why, kept, tuple(sorted(seconds)), count=count)
    return None


def _have_lossless(images: Iterable[str]) -> bool:
    """Returns whether some images are stored without loss, as masks are."""
    return any(name.lower().endswith(LOSSLESS) for name in images)


def _find_named(folders: Mapping[str, Sequence[str]]) -> Pairs | None:
    """Finds `masks` next to `images`, whatever their images are called."""
    children: dict[str, list[str]] = defaultdict(list)
    for path in folders:
        children[posixpath.dirname(path)].append(path)
    kept, left_out = list[str](), list[str]()
    for paths in children.values():
        firsts = [path for path in paths if posixpath.basename(path).lower() in IMAGE_WORDS]
        seconds = [path for path in paths if _is_drawn_folder(path)]
        if firsts and seconds:
            kept += firsts
            left_out += seconds
    if not left_out:
        return None
    why = f"{left_out[0]} is named as masks of the images in {kept[0]}"
    others = folders.keys() - set(left_out)
    are_single = len(kept) > 2 and all(len(folders[path]) == 1 for path in kept)
    return Pairs(
        why,
        tuple(sorted(others)),
        tuple(sorted(left_out)),
        class_from="none" if are_single else None,
        count=sum(len(folders[path]) for path in left_out),
    )


def _is_drawn_folder(path: str) -> bool:
    name = posixpath.basename(path)
    return is_telling(name) and not split_word_of(name) and not re.search("[0-9]", name)


def _parts_of_others(
    cores: Mapping[str, frozenset[str]], known: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yields folders of images, and folders of masks for a part of these."""
    telling = [
        path for path in cores if path not in known and any(map(is_telling, path.split("/")))
    ]
    some = {path: _choose_cores(cores[path]) for path in telling}
    wanted = frozenset(chain.from_iterable(some.values()))
    holding: dict[str, list[str]] = defaultdict(list)
    for path, own in cores.items() if wanted else ():
        for core in own & wanted:
            holding[core].append(path)
    for path in telling:
        own = cores[path]
        others = {*chain.from_iterable(holding[core] for core in some[path])}
        for other in sorted(others - {path}):
            apart = set(path.split("/")) - set(other.split("/"))
            back = set(other.split("/")) - set(path.split("/"))
            # One image proves nothing, unless its folder is in that of the other.
            is_inner = posixpath.dirname(path) == other and _is_drawn_folder(path)
            are_enough = len(own) > 1 or is_inner
            is_part = are_enough and len(own & cores[other]) >= AGREEMENT * len(own)
            if is_part and any(map(is_telling, apart)) and not any(map(is_telling, back)):
                yield other, path
                break
        else:
            yield from _part_of_several(path, some[path], holding, cores)


def _part_of_several(
    path: str,
    some: Collection[str],
    holding: Mapping[str, Sequence[str]],
    cores: Mapping[str, frozenset[str]],
) -> Iterator[tuple[str, str]]:
    """Yields the folder of masks with one of the class folders that hold its images.

    Args:
        path: the folder that may be of masks.
        some: some of its base names.
        holding: the folders that hold these.
        cores: all base names in each folder.
    """
    own = set(path.split("/"))
    others = {*chain.from_iterable(holding[core] for core in some)} - {path}
    plain = sorted(each for each in others if not any(map(is_telling, set(each.split("/")) - own)))
    held = frozenset[str]().union(*(cores[each] for each in plain))
    is_named = all(any(map(is_telling, own - set(each.split("/")))) for each in plain)
    if len(plain) > 1 and is_named and len(cores[path] & held) >= AGREEMENT * len(cores[path]) > 1:
        yield plain[0], path


def _is_second(path: str, kept: Iterable[str], left_out: Iterable[str]) -> bool:
    """Returns whether a folder is named as those of second images are, and as no other is."""
    name = posixpath.basename(path)
    # `label_0` is as `label_1`, next to which it is.
    forms = {re.sub("[0-9]+", "0", posixpath.basename(each)) for each in kept}
    return (
        bool(name)
        and re.sub("[0-9]+", "0", name) not in forms
        and (
            name in {posixpath.basename(each) for each in left_out}
            or any(map(is_telling, path.split("/")))
        )
    )


def _choose_cores(cores: Collection[str]) -> list[str]:
    """Chooses some base names: folders that agree share most of these."""
    return nsmallest(8, cores, key=lambda core: crc32(core.encode()))


def _group(cores: Mapping[str, frozenset[str]]) -> Iterator[list[str]]:
    """Yields the groups of folders whose base names agree, in order."""
    groups: list[list[str]] = []
    # Folders that agree have about the same size, and share most of a few names.
    near: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for path in sorted(cores):
        own = cores[path]
        chosen, size = _choose_cores(own), int(log(len(own)) / -log(AGREEMENT))
        places = product((size - 1, size, size + 1), chosen)
        for at in sorted({*chain.from_iterable(near.get(place, ()) for place in places)}):
            if _agree(own, cores[groups[at][0]]):
                groups[at].append(path)
                break
        else:
            for core in chosen:
                near[size, core].append(len(groups))
            groups.append([path])
    yield from (group for group in groups if len(group) > 1)


def _agree(one: frozenset[str], other: frozenset[str]) -> bool:
    most = max(len(one), len(other))
    return min(len(one), len(other)) >= AGREEMENT * most and len(one & other) >= AGREEMENT * most


def _own_parts(group: Sequence[str]) -> dict[str, set[str]]:
    """Returns the parts of each path that not all paths of the group have."""
    parts = {path: set(path.split("/")) for path in group}
    shared = set.intersection(*parts.values())
    return {path: each - shared for path, each in parts.items()}


def _by_words(group: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divides a group by words such as `mask` in some of the names, but not in all."""
    parts = _own_parts(group)
    numbered = {*filter(_NUMBERED_LABEL.fullmatch, chain.from_iterable(parts.values()))}
    if len(numbered) > 1:  # `label_0` and `label_1` may be classes
        parts = {path: own - numbered for path, own in parts.items()}
    seconds = [path for path in group if any(map(is_telling, parts[path]))]
    firsts = [path for path in group if path not in seconds]
    if not firsts or _are_other_splits(firsts, seconds, parts):
        return list(group), []
    return firsts, seconds


def _are_other_splits(
    firsts: Sequence[str], seconds: Sequence[str], parts: Mapping[str, set[str]]
) -> bool:
    """Returns whether all telling names are for splits, and no other is.

    `seg_train` next to classes.
    """
    return all(any(map(split_word_of, parts[path])) for path in seconds) and not any(
        any(map(split_word_of, parts[path])) for path in firsts
    )


def _by_layers(firsts: list[str], seconds: list[str]) -> tuple[list[str], list[str]]:
    """Divides a group again if its first images are layers of the same things, too.

    These are the folders next to one that is named like the images, and the second of two sides.
    """
    if not all(any(map(partial(_differ_once, path), seconds)) for path in firsts):
        return firsts, seconds
    parts = _own_parts([*firsts, *seconds])
    images = [path for path in firsts if words_in(parts[path]) & IMAGE_WORDS]
    if images and len(images) < len(firsts):
        return images, [*(path for path in firsts if path not in images), *seconds]
    ones, others = divide_by_sides({path: parts[path] for path in firsts}, may_be_letters=True)
    return (ones, [*others, *seconds]) if ones else (firsts, seconds)


def _differ_once(one: str, other: str) -> bool:
    """Returns whether two paths are of one length and differ in one folder."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return one.count("/") == other.count("/") and sum(a != b for a, b in pairs) == 1


def _look_alike(group: Sequence[str], folders: Mapping[str, Sequence[str]], look: Looker) -> bool:
    """Whether all folders hold drawings, such as letters, and no name is one of images or masks."""
    parts = {*chain.from_iterable(_own_parts(group).values())}
    if words_in(parts) & IMAGE_WORDS or any(map(TELLING.search, parts)):
        return False
    some = {path: spread(folders[path], 2) for path in _choose_folders(group)}
    looks = list(map(look, join_names(some)))
    return all(each is not None and each.is_mask for each in looks)


def _by_looks(
    group: Sequence[str], folders: Mapping[str, Sequence[str]], look: Looker
) -> tuple[list[str], list[str]]:
    """Divides a group if the files of some folders look like masks, and those of others do not."""
    if _differ_in_splits(group):
        return list(group), []
    seen = {}
    for path in _choose_folders(group):
        looks: list[Appearance] = []
        for at, name in enumerate(spread(folders[path], SAMPLED_FILES)):
            if (found := look(posixpath.join(path, name))) is not None:
                looks.append(found)
            if at == 3 and len({each.is_mask for each in looks}) == 1:  # they are alike
                break
        if looks:
            share = sum(each.is_mask for each in looks) / len(looks)
            seen[path] = (
                share,
                median(each.channels for each in looks),
                median(each.levels for each in looks),
                sum(each.is_photograph for each in looks) / len(looks),
            )
    masks = [path for path, (share, *_) in seen.items() if share >= 0.9]
    most = max((seen[path][2] for path in masks), default=0)
    # Drawings in gray, such as MNIST's, have few values too, some classes fewer than others.
    photos = [
        path
        for path, (share, channels, _, photographs) in seen.items()
        if share <= 0.1 and photographs >= 0.5 and (channels > 1 or most <= MOST_GRAY_LEVELS)
    ]
    if not masks or not photos or len(masks) + len(photos) < len(seen):
        return list(group), []
    seconds = _named_like(masks, photos, group)
    return [path for path in group if path not in seconds], seconds


def _named_like(masks: Sequence[str], photos: Sequence[str], group: Sequence[str]) -> list[str]:
    """The folders of a group that are named as all those of masks, and as none of photographs."""
    own = _own_parts(group)
    words = set.intersection(*(own[path] for path in masks))
    words = words.difference(*(own[path] for path in photos))
    return [path for path in group if words & own[path]] or list(masks)


def _choose_folders(group: Sequence[str]) -> list[str]:
    """Chooses the folders that are looked into, of different names if there are some."""
    ranked = sorted(group, key=lambda path: crc32(path.encode()))
    firsts = {posixpath.basename(path): path for path in reversed(ranked)}
    chosen = dict.fromkeys((*sorted(firsts.values(), key=ranked.index), *ranked))
    return sorted([*chosen][:SAMPLED_FOLDERS])


def _differ_in_splits(group: Sequence[str]) -> bool:
    """Returns whether the paths differ in words for splits alone: then images are there twice."""
    own = [[*map(split_word_of, parts)] for parts in _own_parts(group).values()]
    return all(map(all, own)) and len({*map(tuple, own)}) > 1


def _agree_by_themselves(group: Sequence[str], cores: Mapping[str, frozenset[str]]) -> bool:
    """Returns whether exactly two folders hold the same names, which are not counters."""
    if len(group) != 2 or _differ_in_splits(group):
        return False
    own = cores[group[0]]
    return len(own) >= 3 and not are_counters(own)


def patterns_of(left_out: Sequence[str], kept: Sequence[str]) -> list[str]:
    """Returns patterns for folders, in gitignore's syntax, that leave these out and keep those.

    A name that is left out in several places, and kept nowhere, is left out everywhere.
    """
    tops: dict[str, None] = {}
    for path in left_out:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            top = "/".join(parts[:depth])
            if not any(f"{each}/".startswith(f"{top}/") for each in kept):
                tops[top] = None
                break
    kept_parts = parts_of(kept)
    counts = Counter(posixpath.basename(top) for top in tops)
    found = []
    for top in tops:
        name = posixpath.basename(top)
        everywhere = counts[name] > 1 and name not in kept_parts
        found.append(f"{escape_glob(name)}/" if everywhere else f"/{escape_glob(top)}/")
    return sorted(set(found))
