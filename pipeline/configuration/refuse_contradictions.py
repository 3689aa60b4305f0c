"""Refuses folders that cannot be classes, because of what is in them."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from recordmill.pipeline.configuration.advise_input import (
    advise_input,
    are_named_by_plan,
    find_files_around,
)
from recordmill.pipeline.configuration.config import flags_of
from recordmill.schemas.errors import UsageError
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Names,
    likely_splits,
    split_for_word,
    splits_for_words,
)
from recordmill.transforms.inputs.pair_names import WORD, are_counters, is_about_pairs, stem_of
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.unclaimed_files import role_of
from recordmill.transforms.inputs.unlikely_classes import (
    DATES,
    HASH_DIGITS,
    HASHES,
    NO_CLASS,
    are_numbered,
    are_series,
    are_unlikely_classes,
    explain_unlikely,
    find_changed,
    find_parted_classes,
    find_taken_classes,
    is_of_images,
    says_nothing,
)

MOST_SHOWN = 4


def refuse_wrapper(sketch: FolderSketch, place: str) -> None:
    """Refuses a single folder around class folders or splits, which would be the only class.

    Raises:
        UsageError: there is one; the text has the commands that may be meant.
    """
    whole, below = find_branches(sketch)
    if not whole:
        return
    if len(below) < 2:
        _refuse_generic(sketch, place, whole)
        return
    around = find_files_around(sketch, whole, sketch.ignored)
    what = f"{place}: {whole} is around all folders of images, such as {below[0]}"
    where = f"use {advise_input(sketch, place, whole)}"
    first = whole.partition("/")[0]
    if explain_unlikely([first]) == DATES and all(map(str.isdigit, below)):
        flags = flags_of({"source": {"class_from": "none"}})
        raise UsageError(
            f"{place}: {whole} and the folders in it are dates, not classes: to convert the "
            f"images without labels, add {flags}"
        )
    are_splits = all(map(split_for_word, below)) or bool(likely_splits(below))
    if says_nothing(first) or are_unlikely_classes([first]) or are_splits:
        if are_named_by_plan(sketch, around):
            return  # the plan names all of them, and advises the same
        raise UsageError(f"{what}: {where}")
    flags = flags_of({"source": {"class_from": "first_folder"}})
    raise UsageError(
        f"{what}: if those are the classes, {where}; if all images are of the class {first}, "
        f"add {flags}"
    )


def _refuse_generic(sketch: FolderSketch, place: str, whole: str) -> None:
    """Refuses `data` as the class of all images, if these are in `data/images`.

    Raises:
        UsageError: they are; the text has the command that is meant.
    """
    first, _, below = whole.partition("/")
    around = find_files_around(sketch, first, sketch.ignored)
    if not below or not says_nothing(first) or are_named_by_plan(sketch, around):
        return
    where = advise_input(sketch, place, first)
    raise UsageError(
        f"{place}: all images are in {whole}, and {first} does not name a class: use {where}"
    )


def find_branches(sketch: FolderSketch) -> tuple[str, list[str]]:
    """Returns the folder below which all images are, and the folders of images in it.

    The folder is empty if the input itself holds images, or several folders of them.
    """
    whole = ""
    while True:
        below = _folders_of_images(sketch, whole)
        if _names_in(sketch, whole).images or len(below) != 1:
            return whole, below
        whole = posixpath.join(whole, below[0])


def are_no_classes(sketch: FolderSketch) -> bool:
    """Returns whether names alone show that the folders of images are patients, parts or dates."""
    for split in sketch.split_folders or ("",):
        folders = _folders_of_images(sketch, split)
        if explain_unlikely(folders):
            return True
    return False


def refuse_contradictions(sketch: FolderSketch, place: str, archive: str = "") -> None:
    """Refuses folders that are named like parts or dates, or that all hold the same folders.

    Args:
        sketch: the input, or the contents of an archive, whose folders would be classes.
        place: the input's path.
        archive: the archive's name; empty if the folders are in none.

    Raises:
        UsageError: the folders are not classes; the text has the commands that may be meant.
    """
    where = f"{place}/{archive}" if archive else place
    for split in sketch.split_folders or ("",):
        folders = _folders_of_images(sketch, split)
        if not split and likely_splits(folders):  # the listing asks for these
            continue
        refuse_layers(sketch, where, split, folders, bool(archive))
        if not split and not archive:
            _refuse_collections(sketch, where, folders)
            _refuse_some_splits(sketch, where, folders)
        what = (
            explain_unlikely(folders)
            or _explain_sequences(sketch, split, folders)
            or _explain_samples(sketch, split, folders)
        )
        are_hashes = what in (HASHES, HASH_DIGITS)
        below = _find_same_below(sketch, split, folders)
        if not below and not what and (inner := _find_tree(sketch, split, folders)):
            raise UsageError(f"{where}: {_explain_tree(folders, inner)}")
        if below and not are_hashes:
            raise UsageError(_explain_same(sketch, where, archive, (split, folders, below)))
        classes = find_parted_classes(folders)
        if not classes and (found := find_taken_classes(folders)):
            classes = found if _are_counted(sketch, split, folders) else []
        if not what and classes:
            raise UsageError(f"{where}: {_explain_parted(folders, classes)}")
        if not what and _may_be_recordings(sketch, split, folders):
            paths = [posixpath.join(split, each) for each in folders]
            raise UsageError(f"{where}: {_explain_recordings(sketch, paths)}")
        if what:
            paths = [posixpath.join(split, each) for each in folders]
            below = [] if are_hashes else _find_likely_inner(sketch, paths)
            ways = [*_keep_originals(sketch, split, folders, archive), *_offer_classes(below)]
            raise UsageError(
                f"{where}: {show_folders(paths)} are {what}, not classes: {'; '.join(ways)}"
            )


def refuse_layers(
    sketch: FolderSketch,
    where: str,
    split: str,
    folders: Sequence[str],
    is_archive: bool = False,
) -> None:
    """Refuses folders such as `aug` next to `image`, which hold the same things, as classes.

    Args:
        sketch: the input.
        where: the input's path, or that of an archive in it.
        split: the folder of a split; empty if the folders are in none.
        folders: the folders of images in it.
        is_archive: whether they are in an archive.

    Raises:
        UsageError: there are such folders; the text has the commands that may be meant.
    """
    images = [each for each in folders if is_of_images(each)]
    others = [each for each in folders if each not in images]
    if not images or not others:
        return
    paths = [posixpath.join(split, each) for each in others]
    none = {"source": {"class_from": "none"}}
    ways = [f"to convert all of them without labels, add {flags_of(none)}"]
    if not is_archive:
        patterns = [*sketch.ignored, *(f"/{escape_glob(path)}/" for path in paths)]
        ways.append(
            f"to convert {show_folders(images)} alone, add {flags_of({'ignore': patterns, **none})}"
        )
    raise UsageError(
        f"{where}: {posixpath.join(split, images[0])} is not a class, and {show_folders(paths)} "
        f"next to it may hold the same: {'; '.join(ways)}"
    )


def _explain_sequences(sketch: FolderSketch, above: str, folders: Sequence[str]) -> str | None:
    """Says that folders are sequences, as in MOT: numbered, and each with its `img1` and more."""
    paths = [posixpath.join(above, folder) for folder in folders]
    inner = _find_inner(sketch, paths)
    is_generic = len(inner) == 1 and says_nothing(inner[0])
    have_more = all(len(_names_in(sketch, path).folders) > 1 for path in paths)
    is_counted = are_numbered(folders) and not all(map(str.isdigit, folders))
    if is_generic and (have_more or is_counted):
        return "parts of the collection"
    return None


def _explain_samples(sketch: FolderSketch, above: str, folders: Sequence[str]) -> str | None:
    """Says that folders are samples: numbered, and all hold images of the same names.

    Counted images, as those of people in ORL's `s1`, say nothing.
    """
    if not are_numbered(folders) or all(map(str.isdigit, folders)):
        return None
    names = [_names_in(sketch, posixpath.join(above, each)) for each in folders]
    images = {
        tuple(image.replace(folder, "") for image in each.images)
        for folder, each in zip(folders, names, strict=True)
    }
    if len(images) > 1 or any(each.folders for each in names):
        return None
    (same,) = images
    have_words = any(not re.search("[0-9]", image.rpartition(".")[0]) for image in same)
    return "samples" if have_words else None


def _find_inner(sketch: FolderSketch, paths: Sequence[str]) -> list[str]:
    """Returns the names of the folders of images in several folders."""
    found = set[str]()
    for path in paths:
        found.update(_folders_of_images(sketch, path))
    return sorted(found)


def _find_likely_inner(sketch: FolderSketch, paths: Sequence[str]) -> list[str]:
    """Returns the names of the folders of images in several folders, or further down.

    Of `site_A/patient_1/benign`, it returns `benign`, unless there are images around it.
    """
    below = _find_inner(sketch, paths)
    if not below or not explain_unlikely(below):
        return below
    deeper = [
        posixpath.join(path, each)
        for path in paths
        for each in _names_in(sketch, path).folders
        if each in below
    ]
    are_around = all(not _names_in(sketch, path).images for path in deeper)
    return (are_around and _find_likely_inner(sketch, deeper)) or below


def _keep_originals(
    sketch: FolderSketch, split: str, folders: Sequence[str], archive: str
) -> Iterator[str]:
    """Yields the way to convert originals without the changed copies next to them."""
    changed = find_changed(folders)
    if changed and not archive:
        kept = [each for each in folders if each not in changed]
        patterns = [f"/{escape_glob(posixpath.join(split, each))}/" for each in changed]
        flags = flags_of({"ignore": [*sketch.ignored, *patterns]})
        yield f"to convert {show_folders(kept)} alone, add {flags}"


def _may_be_recordings(sketch: FolderSketch, above: str, folders: Sequence[str]) -> bool:
    """Tells if folders are one word with numbers, and the images in all of them are counted.

    `match01/0001.jpg` is a frame of a recording, or the first image of a class.
    """
    return are_series(folders) and _are_counted(sketch, above, folders)


def _are_counted(sketch: FolderSketch, above: str, folders: Sequence[str]) -> bool:
    """Returns whether the images in each folder, and below, are counted through."""
    contents = sketch.contents
    for folder in folders:
        begin = f"{posixpath.join(above, folder)}/"
        for path, names in contents.items():
            is_inside = f"{path}/".startswith(begin)
            if is_inside and names.images and not are_counters(map(stem_of, names.images)):
                return False
    return True


def _explain_parted(folders: Sequence[str], classes: Sequence[str]) -> str:
    """Says that folders are parts of classes, with the flags that make each a class."""
    flags = flags_of({"source": {"class_from": "first_folder"}})
    return (
        f"{show_folders(folders)} are parts of {show_folders(classes)}: if these are the classes, "
        f"move the images of each into one folder; if each folder is a class, add {flags}"
    )


def _explain_recordings(sketch: FolderSketch, paths: Sequence[str]) -> str:
    """Says that folders may be classes or recordings, with flags."""
    flags = flags_of({"source": {"class_from": "first_folder"}})
    *ways, last = _offer_classes(_find_inner(sketch, paths))
    ways += [f"if the classes are {show_folders(paths)}, add {flags}", last]
    return (
        f"{show_folders(paths)} may be classes, or recordings, documents or the like: all have one "
        f"name with numbers, and their images are counted: {'; '.join(ways)}"
    )


def _find_tree(sketch: FolderSketch, above: str, folders: Sequence[str]) -> dict[str, list[str]]:
    """Returns the folders in folders that would be merged into classes; empty if there are few.

    Folders that are counted through, or unlikely to be classes, are parts of a class.
    """
    inner: dict[str, list[str]] = {}
    for folder in folders:
        path = posixpath.join(above, folder)
        names = _names_in(sketch, path)
        below = [each for each in names.folders if sketch.holds_images(f"{path}/{each}")]
        is_plain = len(below) > 1 and not are_numbered(below) and not are_unlikely_classes(below)
        named = [each for each in below if not NO_CLASS.fullmatch(each.lower())]
        if is_plain and named == below and not names.images:
            inner[folder] = below
    return inner if len(inner) > 1 and 2 * len(inner) >= len(folders) else {}


def _explain_tree(folders: Sequence[str], inner: Mapping[str, Sequence[str]]) -> str:
    """Says that the first or the last folders may be the classes, with flags."""
    below = [each for names in inner.values() for each in names]
    if _are_initials(inner):
        return (
            f"{show_folders(folders)} are the first letters of the folders in them: "
            f"{'; '.join(_offer_classes(below))}"
        )
    firsts, lasts = (show_folders(sorted(set(names))) for names in (folders, below))
    ways = {"last_folder": lasts, "first_folder": firsts}
    if len(set(below)) < len(below):  # the last folder would merge folders of one name
        whole = show_folders([f"{folder}/{each}" for folder in inner for each in inner[folder]])
        ways = {"first_folder": firsts, "path": whole, "last_folder": lasts}
    offers = [
        f"if the classes are {shown}, add {flags_of({'source': {'class_from': class_from}})}"
        for class_from, shown in ways.items()
    ]
    example = next(iter(inner))
    what = f"{example} holds the folders {show_folders(inner[example])}, and others hold others"
    return f"{what}, so it is not clear which are the classes: {'; '.join(offers)}"


def _are_initials(inner: Mapping[str, Sequence[str]]) -> bool:
    """Returns whether folders are named after the first letters of those in them: `a/abbey`."""
    for folder, names in inner.items():
        are_alike = all(name.lower().startswith(folder.lower()) for name in names)
        if len(folder) > 2 or not are_alike:
            return False
    return True


def _offer_classes(below: Sequence[str]) -> list[str]:
    """Returns the ways to take the last folders for classes, if they may be, or to do without."""
    ways = []
    are_named = not any(NO_CLASS.fullmatch(each.lower()) for each in below)
    is_likely = are_named and not are_unlikely_classes(below) and not explain_unlikely(below)
    if len(below) > 1 and is_likely:
        flags = flags_of({"source": {"class_from": "last_folder"}})
        ways.append(f"if the classes are {show_folders(below)}, add {flags}")
    flags = flags_of({"source": {"class_from": "none"}})
    return [*ways, f"to convert the images without labels, add {flags}"]


def _explain_same(
    sketch: FolderSketch, where: str, archive: str, found: tuple[str, list[str], list[str]]
) -> str:
    """Says what folders that all hold the same folders may mean, with flags."""
    split, folders, below = found
    shown = show_folders([posixpath.join(split, each) for each in folders])
    what = f"{where}: {shown} all hold the folders {show_folders(below)}"
    if not split and all(map(split_for_word, below)):
        ways = _explain_inner_splits(sketch, where, archive, folders, below)
        return f"{what}, which are splits: {'; '.join(ways)}"
    offered = [] if set(below) == set(folders) else below
    *ways, last = [*_keep_originals(sketch, split, folders, archive), *_offer_classes(offered)]
    are_layers = all(any(map(is_about_pairs, WORD.findall(each))) for each in folders)
    if are_layers and not split and not archive:
        for each in folders[:MOST_SHOWN]:
            ways.append(f"to convert {each} alone, use {advise_input(sketch, where, each)}")
    are_named = not are_unlikely_classes(folders) and explain_unlikely(folders) is None
    if are_named and not are_layers and not are_numbered(folders):
        flags = flags_of({"source": {"class_from": "first_folder"}})
        ways.append(f"if the classes are {show_folders(folders)}, add {flags}")
    ways.append(last)
    return f"{what}, so it is not clear what the classes are: {'; '.join(ways)}"


def _explain_inner_splits(
    sketch: FolderSketch, where: str, archive: str, folders: Sequence[str], below: Sequence[str]
) -> list[str]:
    """Returns the ways to convert folders that all hold the same splits."""
    inner = {
        each
        for folder in folders
        for split in below
        for each in _names_in(sketch, posixpath.join(folder, split)).folders
        if not NO_CLASS.fullmatch(each.lower())
    }
    splits = {"from_source": splits_for_words(below)}
    pattern = f"/(?P<split>{'|'.join(map(re.escape, below))})/"
    ways = []
    if inner and not archive:
        whole = advise_input(sketch, where, folders[0])
        ways.append(f"to convert {folders[0]} alone, use {whole}")
    for class_from, names in (("last_folder", sorted(inner)), ("first_folder", list(folders))):
        if names and not are_unlikely_classes(names):
            source = {"class_from": class_from, "split": pattern}
            flags = flags_of({"source": source, "splits": splits})
            ways.append(f"if the classes are {show_folders(names)}, add {flags}")
    flags = flags_of({"source": {"class_from": "none", "split": pattern}, "splits": splits})
    return [*ways, f"to convert the images without labels, add {flags}"]


def _refuse_collections(sketch: FolderSketch, where: str, folders: Sequence[str]) -> None:
    """Refuses collections as classes: folders that each hold `images` and annotations.

    Raises:
        UsageError: all folders are such; the text has the commands that convert each alone.
    """
    own = [
        each
        for each in folders
        if _step_into(sketch, each) != each
        and any(
            role_of(path, sketch.heads.get(path)).role == "annotations"
            for path in (f"{each}/{name}" for name in _names_in(sketch, each).files)
        )
    ]
    if len(own) < 2 or own != list(folders):
        return
    ways = [
        f"to convert {each} alone, use {advise_input(sketch, where, each)}"
        for each in own[:MOST_SHOWN]
    ]
    raise UsageError(
        f"{where}: {show_folders(own)} hold images and annotations of their own, and are not "
        f"classes: {'; '.join(ways)}"
    )


def _refuse_some_splits(sketch: FolderSketch, where: str, folders: Sequence[str]) -> None:
    """Refuses folders as classes if some hold splits, and others only images.

    Raises:
        UsageError: there are such folders; the text has the commands that may be meant.
    """
    inner = {each: _find_splits_in(sketch, each) for each in folders}
    some = [each for each in folders if inner[each]]
    others = [each for each in folders if each not in some]
    if not some or not others:
        return
    below = sorted({each for splits in inner.values() for each in splits})
    what = f"{where}: {show_folders(some)} {_hold(some)} the splits {show_folders(below)}"
    are_plain = all(_names_in(sketch, f"{at}/{each}").images for at in some for each in inner[at])
    source = {"class_from": "first_folder"}
    if are_plain:
        pattern = f"/(?P<split>{'|'.join(map(re.escape, below))})/"
        settings = {
            "ignore": [*sketch.ignored, *(f"/{escape_glob(each)}/" for each in others)],
            "source": {**source, "split": pattern},
            "splits": {"from_source": splits_for_words(below)},
        }
        ways = [f"to convert {show_folders(some)} alone, add {flags_of(settings)}"]
    else:
        ways = [
            f"to convert {each} alone, use {advise_input(sketch, where, each)}"
            for each in folders[:MOST_SHOWN]
        ]
    if are_plain and not are_unlikely_classes(folders):
        ways.append(
            f"to convert all classes, and split them again, add {flags_of({'source': source})}"
        )
    raise UsageError(f"{what}, and {show_folders(others)} {_hold(others)} none: {'; '.join(ways)}")


def _find_splits_in(sketch: FolderSketch, folder: str) -> list[str]:
    """Returns the folders of splits in a folder, or in `images` in it.

    Returns empty unless there are several.
    """
    path = _step_into(sketch, folder)
    below = _folders_of_images(sketch, path)
    splits = {split_for_word(each) for each in below}
    has_images = bool(_names_in(sketch, path).images)
    return below if len(splits) > 1 and all(splits) and not has_images else []


def _hold(names: Sequence[str]) -> str:
    return "holds" if len(names) == 1 else "hold"


def _names_in(sketch: FolderSketch, folder: str) -> Names:
    return sketch.names.get(folder) or sketch.deeper.get(folder) or Names()


def _folders_of_images(sketch: FolderSketch, folder: str) -> list[str]:
    """Returns the folders in a folder that have images, themselves or further down."""
    folders = _names_in(sketch, folder).folders
    return [each for each in folders if sketch.holds_images(posixpath.join(folder, each))]


def _step_into(sketch: FolderSketch, path: str) -> str:
    """Returns the folder below a path at which folders of images branch.

    `images` in `amazon/images`.
    """
    below = _folders_of_images(sketch, path)
    if len(below) != 1 or _names_in(sketch, path).images or not says_nothing(below[0]):
        return path
    return _step_into(sketch, f"{path}/{below[0]}")


def _find_same_below(sketch: FolderSketch, above: str, folders: Sequence[str]) -> list[str]:
    """Returns the folders of images that all these folders hold.

    Returns empty unless that says something.
    """
    paths = [_step_into(sketch, posixpath.join(above, folder)) for folder in folders]
    inner = {
        path: frozenset(_folders_of_images(sketch, path))
        for path in paths
        if path in sketch.names or path in sketch.deeper
    }
    if len(inner) < 2 or any(_names_in(sketch, path).images for path in inner):
        return []
    ((usual, count),) = Counter(inner.values()).most_common(1)
    if 3 * count < 2 * len(inner) or count < 2 or not all(each <= usual for each in inner.values()):
        return []
    below = sorted(usual)
    if below and all(map(split_for_word, below)):
        return below
    are_digits = all(map(str.isdigit, (*folders, *below)))
    is_ordinary = are_numbered(below) and not are_unlikely_classes(folders) and not are_digits
    return [] if len(below) < 2 or is_ordinary else below


def show_folders(names: Sequence[str]) -> str:
    """Names the first folders, and says how many more there are."""
    more = len(names) - MOST_SHOWN
    return ", ".join(names[:MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")
