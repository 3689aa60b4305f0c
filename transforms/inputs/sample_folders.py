"""Folders that hold one sample each: `s00/image.png`, `s00/contour.png`.

All of them hold the same few names, in which their own name may stand: `IMD2/IMD2_lesion.bmp`.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Literal

from recordmill.transforms.inputs.folder_sketch import ARCHIVE_ENDINGS, join_names
from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.image_looks import SAMPLED_FOLDERS, Looker, spread
from recordmill.transforms.inputs.pair_names import (
    IMAGE_WORDS,
    divide_by_sides,
    is_telling,
    split_word_of,
    stem_of,
    words_in,
)
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.twins import choose_patterns
from recordmill.transforms.inputs.unlikely_classes import NO_CLASS, are_numbered

MOST_OF_A_SAMPLE = 32
"""Images of one sample."""

MOST_NAMES = 8
"""Names that the folders of samples have in common."""

FEWEST_SAMPLES = 3
"""Folders that hold the same names, if no image looks like a mask."""

LEAST_SHARE = 0.9
"""The share of folders that hold a name, and of images that look alike."""

LEAST_PART = 0.75
"""The share of images, of all in the input, that are parts of samples."""

_SAMPLED_FOLDERS = 64
"""Folders whose names say what all hold."""

_OWN = "\0"
_ANY = "\1"
"""The folder's own name, and any number, in the name of a file."""

Files = Mapping[str, Mapping[str, Sequence[str]]]
"""Paths of images, by the folder of the sample and the name that other samples have, too."""


def find_samples(folders: Mapping[str, Sequence[str]], look: Looker) -> Pairs | None:
    """Finds folders of one sample each: only one of the images in each can be stored.

    Args:
        folders: the names of the images in each folder, by path below the input.
        look: looks at an image.
    """
    files = _find_files(folders)
    names = sorted({*chain.from_iterable(files.values())})
    folder = next((at for at, found in files.items() if len(found) == len(names)), None)
    if folder is None or len(files) < 2 or not 1 < len(names) <= MOST_NAMES:
        return None
    drawn = _find_drawn(files, names, look)
    firsts = _find_firsts(files, names, drawn)
    if not firsts:
        return None
    leave_out = partial(_leave_out, files, {*join_names(folders)})
    found = partial(Pairs, class_from=_find_classes(files))
    shown = {name: files[folder][name][0].removeprefix(f"{folder}/") for name in names}
    if len(firsts) == 1:
        seconds = [name for name in names if name != firsts[0]]
        what = "a mask" if drawn else "a second image"
        why = f"{folder}/{shown[seconds[0]]} looks like {what} of {shown[firsts[0]]}"
        return found(why, patterns=leave_out(seconds), count=_count(files, seconds))
    return found(
        f"{folder} and all other folders hold the same files ({', '.join(shown.values())})",
        choices=tuple((shown[kept], leave_out({*names} - {kept})) for kept in firsts),
        is_even=True,
        may_be_classes=not drawn and not any(map(_has_digit, files)),
        count=_count(files, names[1:]),
    )


def _has_digit(text: str) -> bool:
    return _ANY in text or any(map(str.isdigit, text))


def _find_firsts(files: Files, names: Sequence[str], drawn: Collection[str]) -> list[str]:
    """Returns the names of images that may be the first one of a sample.

    Returns empty unless there are samples.
    """
    firsts = [name for name in names if name not in drawn]
    if not drawn:
        if len(files) < FEWEST_SAMPLES or _are_counted(names):
            return []
        firsts = _find_named_image(names) or firsts
    if any(len(images) > 1 for images in _images_called(firsts, files)):
        return []
    are_classes = _are_counted(firsts) and (len(firsts) > 1 or not _are_counted_folders(files))
    return [] if are_classes else firsts


def _images_called(names: Iterable[str], files: Files) -> Iterator[Sequence[str]]:
    """Yields the images of each sample that have one of these names, name by name."""
    for found in files.values():
        for name in names:
            yield found.get(name, ())


def _count(files: Files, names: Collection[str]) -> int:
    return sum(map(len, _images_called(names, files)))


def _find_files(folders: Mapping[str, Sequence[str]]) -> Files:
    """Returns the images of samples; empty if most folders hold other names, or many images."""
    total = sum(map(len, folders.values()))
    small = {at: names for at, names in folders.items() if at and len(names) <= MOST_OF_A_SAMPLE}
    if sum(map(len, small.values())) < LEAST_PART * total:
        return {}
    by_depth: defaultdict[int, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for at, names in small.items():
        parts = at.split("/")
        for depth in range(1, len(parts) + 1):
            by_depth[depth]["/".join(parts[:depth])] += (posixpath.join(at, name) for name in names)
    for _, found in sorted(by_depth.items(), reverse=True):
        samples = {
            folder: paths
            for folder, paths in found.items()
            if len(paths) <= MOST_OF_A_SAMPLE and _may_be_sample(folder)
        }
        if len(samples) < 2:
            continue
        choices = [_keep_usual(samples, form_of) for form_of in (_name_in, _form_in)]
        best = max(choices, key=lambda files: _count_all(files))
        if _count_all(best) >= LEAST_PART * total:
            return best
    return {}


def _count_all(files: Files) -> int:
    return sum(sum(map(len, found.values())) for found in files.values())


def _may_be_sample(folder: str) -> bool:
    name = posixpath.basename(folder)
    return not split_word_of(name) and not NO_CLASS.fullmatch(name.lower())


def _keep_usual(samples: Mapping[str, Sequence[str]], form_of: Callable[[str, str], str]) -> Files:
    """Returns the images whose names nearly all folders hold; empty if it is one name or none."""
    some = spread([*samples], _SAMPLED_FOLDERS)
    counts = Counter[str]()
    for folder in some:
        counts.update({form_of(folder, path) for path in samples[folder]})
    usual = {name for name, count in counts.items() if count >= LEAST_SHARE * len(some)}
    if len(usual) < 2:
        return {}
    files: dict[str, dict[str, list[str]]] = {}
    for folder, paths in samples.items():
        found = files[folder] = defaultdict(list)
        for path in paths:
            if (name := form_of(folder, path)) in usual:
                found[name].append(path)
    return files


def _name_in(folder: str, path: str) -> str:
    """Returns an image's path below a folder, with a sign for the folder's own name."""
    name, below = posixpath.basename(folder), path.removeprefix(f"{folder}/")
    if name not in below:
        return below
    return _own_name(name).sub(_OWN, below)


@cache
def _own_name(name: str) -> re.Pattern[str]:
    """Finds a name that is not a part of a longer number or word."""
    before, after = (r"[0-9]" if edge.isdigit() else r"[^\W\d_]" for edge in (name[0], name[-1]))
    return re.compile(rf"(?<!{before}){re.escape(name)}(?!{after})")


def _form_in(folder: str, path: str) -> str:
    """Returns the same with a sign for numbers, for samples with several masks."""
    return re.sub("[0-9]+", _ANY, _name_in(folder, path))


def _find_drawn(files: Files, names: Sequence[str], look: Looker) -> list[str]:
    """Returns the names of images that look or are named like masks, if others do not."""
    drawn = []
    for name in names:
        paths = [found[name][0] for found in files.values() if name in found]
        looks = [seen for path in spread(paths, SAMPLED_FOLDERS) if (seen := look(path))]
        share = sum(each.is_drawn for each in looks) / max(len(looks), 1)
        if share >= LEAST_SHARE or is_telling(posixpath.splitext(name)[0]):
            drawn.append(name)
    return drawn if len(drawn) < len(names) else [name for name in names if is_telling(name)]


def _are_counted(names: Sequence[str]) -> bool:
    """Whether all names have a number, or are single letters, as those of a class may be."""
    stems = [stem_of(name) for name in names]
    are_letters = all(len(stem) == 1 for stem in stems)
    return are_letters or all(map(_has_digit, stems))


def _are_counted_folders(folders: Collection[str]) -> bool:
    """Returns whether folders have a word and a number.

    `s00`, `case12`. Numbers alone may be classes.
    """
    names = {posixpath.basename(each) for each in folders}
    return are_numbered(names) and not all(map(str.isdigit, names))


def _find_named_image(names: Sequence[str]) -> list[str]:
    """Returns the only name that is one of an image; empty if others are, or all are sides."""
    images = [name for name in names if words_in([stem_of(name)]) & IMAGE_WORDS]
    are_sides = all(divide_by_sides({name: {stem_of(name)} for name in names}))
    return images if len(images) == 1 and not are_sides else []


def _find_classes(files: Files) -> Literal["first_folder", "none"] | None:
    """Returns where the classes of samples are: in the folders around them.

    Returns None: that is not clear.
    """
    above = [_split_below_archive(folder)[:-1] for folder in files]
    if all(each and split_word_of(each[0]) for each in above):
        above = [each[1:] for each in above]
    if max(map(len, above)) > 1:
        return None
    firsts = {each[0] for each in above if each}
    return "none" if len(firsts) < 2 else "first_folder"


def _split_below_archive(path: str) -> list[str]:
    """Returns the parts of a path, without an archive and the folders that it is in."""
    parts = path.split("/")
    archives = [at for at, part in enumerate(parts) if part.lower().endswith(ARCHIVE_ENDINGS)]
    return parts[archives[-1] + 1 :] if archives else parts


def _leave_out(
    files: Files, all_images: Collection[str], names: Collection[str]
) -> tuple[str, ...]:
    """Returns patterns for the images of samples that have these names."""
    left_out = dict[str, list[str]]()
    for name in names:
        paths = chain.from_iterable(_images_called([name], files))
        left_out |= dict.fromkeys(paths, _patterns_for(name))
    return choose_patterns(left_out, set(all_images) - left_out.keys())


def _patterns_for(name: str) -> list[str]:
    """Returns the patterns that may leave out the images of this name, the widest first."""
    folder, _, base = name.rpartition("/")
    first = folder.partition("/")[0]
    forms = [base, *([f"{first}/", f"**/{name}"] if folder else [])]
    return [escape_glob(form).replace(_OWN, "*").replace(_ANY, "[0-9]*") for form in forms]
