"""Refuses folders that may be splits or classes, with flags that are complete."""

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from recordmill.pipeline.configuration.config import flags_of
from recordmill.pipeline.configuration.refuse_contradictions import refuse_layers, show_folders
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    likely_splits,
    split_for_word,
    split_pattern,
    splits_for_words,
)
from recordmill.transforms.inputs.image_looks import spread
from recordmill.transforms.inputs.pair_names import (
    AGREEMENT,
    is_about_pairs,
    split_word_of,
    stem_of,
)
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.sources.class_folders import find_wrappers
from recordmill.transforms.inputs.unlikely_classes import NO_CLASS, is_of_images

_SAMPLED_NAMES = 64
"""Names of a folder that say whether all others are worth a look."""

FolderContent = Literal["classes", "wrapped classes", "images"]


def refuse_unclear_splits(sketch: FolderSketch, place: str) -> None:
    """Refuses folders that may be splits or classes, and splits where some hold no classes.

    Args:
        sketch: the input, whose folders would be classes or splits.
        place: the input's path.

    Raises:
        UsageError: there are such folders; the text has the commands that may be meant.
    """
    folders = [
        each for each in sketch.top.folders if sketch.holds_images(each) or each not in sketch.names
    ]
    splits = splits_for_words(sketch.split_folders)
    if splits:
        ways = _explain_mixed(sketch, splits, [], sketch.ignored)
        if ways:
            raise UsageError(f"{place}: {'; '.join(ways)}")
        return
    splits = _main_splits(folders)
    if not splits:
        return
    others = [each for each in folders if each not in splits]
    ways = _explain_mixed(sketch, splits, others, sketch.ignored)
    what = f"{place}: {show_folders([*splits])} could be splits or classes"
    if not ways:
        content = _contents_of(sketch, splits)[next(iter(splits))]
        without = f" and {show_folders(others)} is left out" if others else ""
        flags = _as_splits(splits, content, others, sketch.ignored)
        ways = [f"if they are splits{without}, add {flags}"]
        if others and {content} == {*_contents_of(sketch, [*splits, *others]).values()}:
            own = {each: re.sub(r"[^\w.-]", "_", each) for each in others}
            flags = _as_splits({**splits, **own}, content, [], sketch.ignored)
            ways.append(f"if {show_folders(others)} {_are(others)} of its own, add {flags}")
        differ_in_words = bool(split_pattern(splits)[0])
        if content == "images" and not differ_in_words:
            ways.append(f"if they are classes, add {flags_of({'labels': {'classes': folders}})}")
    raise UsageError(f"{what}: {'; '.join(ways)}")


def refuse_given_splits(sketch: FolderSketch, place: str, splits: Collection[str]) -> None:
    """Refuses a folder around everything in given splits, which would be the only class.

    Raises:
        UsageError: there is one; the text has the flag that may be meant.
    """
    for split in splits:
        refuse_layers(sketch, place, split, _folders_in(sketch, split))
    contents = _contents_of(sketch, [*filter(sketch.holds_images, splits)])
    folders = {each for split in contents for each in sketch.at(split).folders}
    are_generic = folders and all(NO_CLASS.fullmatch(each.lower()) for each in folders)
    if set(contents.values()) == {"wrapped classes"}:
        flags = flags_of({"source": {"class_from": "last_folder"}})
    elif set(contents.values()) == {"images"} and are_generic:
        flags = flags_of({"source": {"class_from": "none"}})
    else:
        return
    what = (
        f"{show_folders(sorted(folders))} in the splits {show_folders([*contents])} names no class"
    )
    raise UsageError(f"{place}: {what}: add {flags}")


def refuse_splits_of_classes(sketch: FolderSketch, place: str) -> None:
    """Refuses folders that name a class and a split each: `cat_train`, `dog_test`.

    Raises:
        UsageError: all folders of images are such; the text says what to do.
    """
    folders = [each for each in sketch.top.folders if sketch.holds_images(each)]
    splits = {each: split_word_of(each) for each in folders}
    classes: dict[str, set[str]] = {}
    for folder, split in splits.items():
        words = re.findall("[A-Za-z]+", folder)
        label = "_".join(word for word in words if not split_for_word(word))
        if not split or not label or is_about_pairs(label) or NO_CLASS.fullmatch(label.lower()):
            return
        classes.setdefault(label, set()).add(split)
    if len(classes) < 2 or not all(len(found) > 1 for found in classes.values()):
        return
    first, split = next(iter(splits.items()))
    label = next(iter(classes))
    flags = flags_of({"splits": {"from_folders": splits}, "source": {"class_from": "none"}})
    raise UsageError(
        f"{place}: {show_folders(folders)} name a class and a split each, which are read from two "
        f"folders: rename {first} to {split}/{label}, and the others in the same way; to convert "
        f"the images without labels, add {flags}"
    )


def refuse_splits_in_names(sketch: FolderSketch, place: str, class_from: str) -> None:
    """Refuses images whose names say in which split they are, as in `cat/train_0.jpg`.

    Args:
        sketch: the input, or the contents of an archive, whose layout gives no splits.
        place: its path.
        class_from: which folder names the class, as in the settings.

    Raises:
        UsageError: there are such names; the text has the flags that keep these splits, or not.
    """
    contents = sketch.contents
    by_folder = {path: _find_split_words(names.images) for path, names in contents.items()}
    total = sum(len(names.images) for names in contents.values())
    words = sorted({word for found_words in by_folder.values() for word in found_words})
    have_several = any(
        len(set(map(split_for_word, found_words))) > 1 for found_words in by_folder.values()
    )
    count = sum(map(Counter.total, by_folder.values()))
    if not have_several or count < AGREEMENT * total:
        return
    choices = "|".join(map(re.escape, words))
    pattern = f"[^A-Za-z](?P<split>{choices})[^A-Za-z/][^/]*$"
    settings = {
        "source": {"class_from": class_from, "split": pattern},
        "splits": {"from_source": splits_for_words(words)},
    }
    anew = flags_of({"splits": {"fractions": {"train": 0.9, "test": 0.1}}})
    raise UsageError(
        f"{place}: the images' names have the words {', '.join(words)}, which may be splits: to "
        f"keep these, add {flags_of(settings)}; to split otherwise, add {anew}"
    )


def _find_split_words(images: Sequence[str]) -> Counter[str]:
    """Counts the first words for splits in the names of images; none if some names have none."""
    if len(images) > _SAMPLED_NAMES and not _find_split_words(spread(images, _SAMPLED_NAMES)):
        return Counter()
    found = Counter[str]()
    for name in images:
        parts = re.findall("[A-Za-z]+", stem_of(name))
        if word := next(filter(split_for_word, parts), None):
            found[word] += 1
    return found


def _main_splits(folders: Sequence[str]) -> dict[str, str]:
    """Returns the folders that are likely to be splits.

    Of `train` and `train_small`, the plain one.
    """
    plain = splits_for_words(folders)
    found = likely_splits(folders) or plain
    if len(set(found.values())) < 2:
        return {}
    order = list(dict.fromkeys(SPLIT_NAMES.values()))
    kept = {
        each: split for each, split in found.items() if each in plain or split not in plain.values()
    }
    return dict(sorted(kept.items(), key=lambda each: (order.index(each[1]), each[0])))


def _explain_mixed(
    sketch: FolderSketch, splits: Mapping[str, str], others: Sequence[str], ignored: Sequence[str]
) -> list[str]:
    """Returns the ways to convert splits, if some hold class folders and some hold only images."""
    contents = _contents_of(sketch, splits)
    flat = [each for each, content in contents.items() if content == "images"]
    labeled = {each: split for each, split in splits.items() if each not in flat}
    if not flat or not labeled or not all(sketch.holds_images(each) for each in splits):
        return []
    content = contents[next(iter(labeled))]
    some = _as_splits(labeled, content, [*flat, *others], ignored)
    whole = _as_splits(splits, "images", others, ignored)
    what = f"{show_folders(flat)} holds no class folders"
    return [
        f"{what}: to convert {show_folders([*labeled])} alone, add {some}",
        f"to convert all images without labels, add {whole}",
    ]


def _as_splits(
    splits: Mapping[str, str],
    content: FolderContent,
    left_out: Sequence[str],
    ignored: Sequence[str],
) -> str:
    """Returns the flags that take folders for splits, and leave others out."""
    settings: dict[str, Any] = {"splits": {"from_folders": dict(splits)}}
    class_from = {"images": "none", "wrapped classes": "last_folder"}.get(content)
    if class_from:
        settings["source"] = {"class_from": class_from}
    if left_out:
        patterns = [f"/{escape_glob(each)}/" for each in sorted(left_out)]
        settings["ignore"] = [*ignored, *patterns]
    return flags_of(settings)


def _contents_of(sketch: FolderSketch, folders: Collection[str]) -> dict[str, FolderContent]:
    """Returns what folders hold, if they are splits."""
    if find_wrappers(sketch, folders):
        return dict.fromkeys(folders, "wrapped classes")
    return {each: _content_of(sketch, each) for each in folders}


def _content_of(sketch: FolderSketch, folder: str) -> FolderContent:
    if find_wrappers(sketch, [folder]):
        return "wrapped classes"
    folders = _folders_in(sketch, folder)
    are_layers = any(map(is_of_images, folders))
    have_classes = any(not NO_CLASS.fullmatch(each.lower()) for each in folders)
    return "classes" if have_classes and not are_layers else "images"


def _folders_in(sketch: FolderSketch, split: str) -> list[str]:
    """Returns the folders of images in the folder of a split."""
    folders = sketch.at(split).folders
    return [each for each in folders if sketch.holds_images(posixpath.join(split, each))]


def _are(names: Sequence[str]) -> str:
    return "is a split" if len(names) == 1 else "are splits"
