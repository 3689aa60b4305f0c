"""Recognizes an input of archives by the names of their first members."""

import posixpath
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import orjson

from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.archive_samples import SampleSketch, SeveralImagesError
from recordmill.transforms.inputs.folder_sketch import (
    ARCHIVE_ENDINGS,
    FolderSketch,
    Question,
    Recognized,
    given_splits,
    likely_splits,
    split_for_word,
)
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS
from recordmill.transforms.inputs.pair_names import AGREEMENT, is_telling, split_word_of
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.unlikely_classes import (
    NO_CLASS,
    are_unlikely_classes,
    explain_unlikely,
    says_nothing,
)

_ENDING = re.compile(r"(?<=.)\.(tar|tar\.gz|tgz|zip)$", re.IGNORECASE)


def name_of_archive(path: str) -> str:
    """Returns an archive's own name, without its extension."""
    return _ENDING.sub("", posixpath.basename(path))


def recognize_archives(sketch: FolderSketch, image_parts: Sequence[str]) -> Iterator[Recognized]:
    """Recognizes an input that consists of archives.

    Args:
        sketch: the input.
        image_parts: the usual extensions of images in samples.
    """
    seen = sketch.archives.items()
    archives = {name: inside for name, inside in seen if inside.names and not name.endswith(".npz")}
    for name, inside in archives.items():
        samples = SampleSketch.of(inside)
        if samples.images or samples.find_several(image_parts):
            # Whatever the folders, labels are next to images.
            yield _as_samples(sketch, name, inside, samples, image_parts)
            return
    archives = {name: inside for name, inside in archives.items() if inside.has_images}
    if not archives:
        return
    name, whole = next(iter(archives.items()))
    inside = _unwrap(sketch, whole).inner
    if _are_beside(inside):
        yield _as_samples(sketch, name, inside, SampleSketch.of(inside), image_parts)
        return
    found = _as_folders(sketch, archives)
    annotations = {each: _find_annotations(inside) for each, inside in archives.items()}
    if at := next(filter(annotations.get, annotations), ""):
        found = (_with_annotations(each, at, annotations[at]) for each in found)
    yield from found


def _as_samples(
    sketch: FolderSketch,
    name: str,
    inside: FolderSketch,
    samples: SampleSketch,
    image_parts: Sequence[str],
) -> Recognized:
    source: dict[str, Any] = {"kind": "archives", "labels": "beside"}
    has_label, has_caption, has_json = map(samples.has, ("cls", "txt", "json"))
    questions: list[Question] = []
    if not has_label:
        source["label_part"] = ""
    if has_caption:
        source["features_from"] = {"image/caption": {"part": "txt", "default": ""}}
    ending = r"\.t(?:ar|gz)" if sketch.all_ending(".tgz") else r"\.tar"
    if splits := _find_splits_of_folders(sketch):
        source["split"] = f"(?:^|/){_any_of(splits)}/"
    elif splits := _find_splits_of_names(sketch):
        source["split"] = f"{_any_of(splits)}[^/]*{ending}"
    elif splits := _splits_of_samples(samples):
        source["split"] = f"/{_any_of(splits)}/"
    try:
        if own := samples.image_parts(image_parts):
            source["image_parts"] = own
    except SeveralImagesError as several:
        questions.append(_ask_for_image(several.args[0]))
    label = sketch.heads.get(f"{name}/.cls", b"").strip()
    ids = {"labels": {"ids": "integers"}} if label.lstrip(b"-").isdigit() else {}
    if has_json and not has_label and not has_caption:
        questions.append(_ask_for_key(sketch.heads.get(f"{name}/.json", b"")))
    settings = {"source": source, **splits, **ids}
    needs, keys = next(iter(questions), (None, ()))
    return Recognized(
        settings,
        f"WebDataset's samples in {name}",
        needs=needs,
        needed_keys=keys,
        questions=tuple(questions[1:]),
    )


def _ask_for_image(parts: Sequence[str]) -> Question:
    """Asks which image of a sample is stored; those that look like masks come last."""
    parts = sorted(parts, key=lambda part: (is_telling(part), part))
    ways = " or ".join(f"--set 'source.image_parts=[{part}]'" for part in parts[:_MOST_OFFERED])
    return (
        f"its samples have several images ({', '.join(parts)}), and one can be stored: add {ways}",
        ("source.image_parts",),
    )


_OF_CLASSES = re.compile(r"(class|label|category|species|target|tag)|cls", re.IGNORECASE)
_OF_TEXTS = re.compile(r"url|caption|text|sha256|md5|key|status|error|exif|license", re.IGNORECASE)
"""Keys of JSON next to an image that surely hold no class, such as those of img2dataset."""

_LONGEST_CLASS = 60


def _ask_for_key(head: bytes) -> Question:
    """Asks which key of JSON next to an image holds its class.

    Args:
        head: the first of these files; empty if it is not known.
    """
    try:
        values = orjson.loads(head)
    except ValueError:
        values = None
    likely = {
        key: value
        for key, value in (values if isinstance(values, dict) else {}).items()
        if re.fullmatch(r"[\w-]+", key) and not _OF_TEXTS.search(key) and _may_be_class(value)
    }
    ways = []
    for key in sorted(likely, key=lambda key: not _OF_CLASSES.search(key))[:_MOST_OFFERED]:
        ids = " --set labels.ids=integers" if isinstance(likely[key], int) else ""
        ways.append(
            f"--set source.label_part=json.{key}{ids} for classes such as {likely[key]!s:.40}"
        )
    ways.append("--set source.label_part= for images without labels")
    return (
        f"its .json files are not read: add {', or '.join(ways)}",
        ("source.label_part",),
    )


def _may_be_class(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, str) and 0 < len(value) <= _LONGEST_CLASS)


def _splits_of_samples(samples: SampleSketch) -> dict[str, Any]:
    """The settings that take splits from folders of samples, if all are named after splits."""
    words = {folder.rpartition("/")[2] for folder in samples.folders}
    return given_splits("from_source", words) if words <= SPLIT_NAMES.keys() else {}


def _find_splits_of_folders(sketch: FolderSketch) -> dict[str, Any]:
    """The settings that take splits from folders around archives, if all are in such folders."""
    found = set()
    for path in sketch.all_ending(*ARCHIVE_ENDINGS):
        folders = posixpath.dirname(path).split("/")
        found.add(next((each for each in folders if each.lower() in SPLIT_NAMES), ""))
    return given_splits("from_source", found)


_BEGIN_OF_WORD = re.compile(rf"(?<![a-z])(?:{'|'.join(SPLIT_NAMES)})", re.IGNORECASE)


def _find_splits_of_names(sketch: FolderSketch) -> dict[str, Any]:
    """Returns the settings that take splits from archives' names, if all have a split word.

    If it is the same split for all, a word such as `contest` is not enough.
    """
    splits = sketch.archive_splits
    names = map(name_of_archive, sketch.all_ending(*ARCHIVE_ENDINGS))
    is_one = splits and len(set(splits["splits"]["from_source"].values())) == 1
    return {} if is_one and not all(map(_BEGIN_OF_WORD.search, names)) else splits


def class_folders_in(sketch: FolderSketch) -> Iterator[tuple[str, FolderSketch]]:
    """Yields archives whose folders may be classes, with what is in the folder around them."""
    for name, whole in sketch.archives.items():
        inside = _unwrap(sketch, whole).inner
        are_samples = SampleSketch.of(whole).images or _are_beside(inside)
        if inside.has_images and not are_samples and not _find_annotations(whole):
            yield name, inside


@dataclass(frozen=True, slots=True)
class SameFolders:
    """Archives that hold the same folders, which may be those of classes.

    Attributes:
        archives: the archives that were looked into.
        folders: the folders in each of them.
        member: a member that two of them have; None unless most are the same.
        may_be_classes: whether the archives' names may be those of classes.
    """

    archives: Sequence[str]
    folders: Sequence[str]
    member: str | None
    may_be_classes: bool


def find_same_folders(sketch: FolderSketch) -> SameFolders | None:
    """Finds archives, none of them for a split, that all hold the same folders.

    They may be versions of one collection, or classes themselves. None if they are parts of a
    collection: their names are counted, and members differ or are counted in each part.
    """
    insides = {name: _unwrap(sketch, sketch.archives[name]) for name, _ in class_folders_in(sketch)}
    first = next(iter(insides.values()), None)
    if first is None or len(insides) < 2 or _find_splits(sketch)[1]:
        return None
    folders = first.holding
    are_same = all(set(each.holding) == set(folders) for each in insides.values())
    is_other = _says_nothing(first) or any(NO_CLASS.fullmatch(each.lower()) for each in folders)
    if not folders or not are_same or is_other:
        return None
    member = _find_same_member([each.inner for each in insides.values()])
    may_be_classes = _name_classes(sketch)
    if not member and not may_be_classes:
        return None
    if member and all(map(_NAMED_PART.fullmatch, map(name_of_archive, insides))):
        return None
    return SameFolders(tuple(insides), folders, member, may_be_classes)


_NAMED_PART = re.compile(
    r".*(?:part|batch|chunk|shard|vol|volume|disc|disk|set|subset)[ _.-]*[0-9]+[a-z]?",
    re.IGNORECASE,
)


def _find_same_member(insides: Sequence[FolderSketch]) -> str | None:
    """A member that the first two archives have, if nearly all of the smaller one are the same."""
    one, two = (set(inside.all_ending(*IMAGE_ENDINGS)) for inside in insides[:2])
    both = one & two
    return min(both) if len(both) >= AGREEMENT * min(len(one), len(two)) > 1 else None


def _are_beside(inside: FolderSketch) -> bool:
    """Returns whether labels are next to images, outside any folder."""
    return any(map(inside.top.beside_images, (".cls", ".json", ".txt")))


@dataclass(frozen=True, slots=True)
class _Unwrapped:
    """The contents of an archive without the folders that are around all images.

    Attributes:
        inner: what is in the last of these folders.
        depth: how many there are.
    """

    inner: FolderSketch
    depth: int = 0

    @property
    def holding(self) -> list[str]:
        """The first folders that hold images, at any depth."""
        firsts = {at.partition("/")[0] for at, names in self.inner.names.items() if names.images}
        return [each for each in self.inner.top.folders if each in firsts]


def _unwrap(sketch: FolderSketch, inside: FolderSketch) -> _Unwrapped:
    """Looks into folders that are around all images of an archive.

    A folder of images is around them only if its name is that of a split, as the archive's is; so
    is a folder of images and of several folders of images. Other folders of splits are not.
    """
    are_splits = bool(_find_splits_of_names(sketch)) and _are_several(sketch)
    found = _Unwrapped(inside)
    while len(found.holding) == 1 and not found.inner.top.images:
        (folder,) = found.holding
        below = _Unwrapped(found.inner.below(folder), found.depth + 1)
        is_split = are_splits and split_word_of(folder) is not None
        if split_for_word(folder) and not are_splits:
            return found
        if below.inner.top.images and len(below.holding) < 2 and not is_split:
            return found
        found = below
    return found


def _are_several(sketch: FolderSketch) -> bool:
    return len(sketch.all_ending(*ARCHIVE_ENDINGS)) > 1


def _as_folders(sketch: FolderSketch, archives: Mapping[str, FolderSketch]) -> Iterator[Recognized]:
    """Recognizes archives by the folders in each of them, if these mean the same."""
    insides = {name: _unwrap(sketch, whole) for name, whole in archives.items()}
    words = {*chain.from_iterable(map(_split_words, insides.values()))}
    found = {
        name: list(_as_folders_in(sketch, inside, words, f"in {', '.join(archives)}"))
        for name, inside in insides.items()
    }
    name, ways = next(iter(found.items()))
    others = [each for each in found if not _are_same(found[each], ways)]
    if not others:
        yield from ways
        return
    if same := _find_last_folders(found, insides):
        yield same
        return
    kinds = [_describe(each, archives[each], found[each][0]) for each in (name, others[0])]
    needs = f"the archives differ ({', '.join(kinds)}): {'; '.join(_offer_archives(sketch))}"
    yield replace(ways[0], needs=needs, needed_keys=_CLASS_FROM)


def _find_last_folders(
    found: Mapping[str, Sequence[Recognized]], insides: Mapping[str, _Unwrapped]
) -> Recognized | None:
    """The layout of archives whose last folders are the classes, in folders around them or not."""
    last = None
    rest = []
    for name, ways in found.items():
        if len(ways) != 1 or ways[0].needs:
            return None
        source = dict(ways[0].settings["source"])
        class_from = source.pop("class_from", None)
        rest.append({**ways[0].settings, "source": source})
        inner = insides[name].inner
        is_flat = set(insides[name].holding) == set(inner.image_folders) and not inner.top.images
        are_last = not any(inner.at(folder).folders for folder in inner.image_folders)
        if class_from == "last_folder":
            last = ways[0]
        elif class_from is not None or not is_flat or not are_last:
            return None
    return last if all(each == rest[0] for each in rest) else None


def _describe(name: str, archive: FolderSketch, found: Recognized) -> str:
    """Says what is in an archive, with the first folder of images."""
    what = f"{name}: {found.why.partition(' in ')[0]}"
    folder = next((at for at, names in archive.names.items() if at and names.images), None)
    return f"{what} such as {folder}" if folder else what


def _offer_archives(sketch: FolderSketch) -> Iterator[str]:
    """Yields what to do with archives that differ, with flags."""
    archives = sketch.all_ending(*ARCHIVE_ENDINGS)
    if len(archives) > _MOST_OFFERED:
        archives = ()
    for each in archives:
        others = [f"/{escape_glob(path)}" for path in archives if path != each]
        ignored = orjson.dumps([*sketch.ignored, *others]).decode()
        yield f"to convert {each} alone, add --set {shlex.quote(f'ignore={ignored}')}"
    yield "to convert all images without labels, add --set source.class_from=none"


def _are_same(some: Sequence[Recognized], others: Sequence[Recognized]) -> bool:
    return [(each.settings, each.needs) for each in some] == [
        (each.settings, each.needs) for each in others
    ]


def _split_words(inside: _Unwrapped) -> list[str]:
    """Returns the first folders of an archive, if all of them are named after splits."""
    are_splits = all(each.lower() in SPLIT_NAMES for each in inside.holding)
    if not are_splits or inside.inner.top.images:
        return []
    return inside.holding


def _as_folders_in(
    sketch: FolderSketch, inside: _Unwrapped, words: Collection[str], where: str
) -> Iterator[Recognized]:
    """Recognizes archives by the folders in one of them.

    Args:
        sketch: the input.
        inside: the archive.
        words: the folders for splits, of all archives.
        where: the archives, for people.
    """
    if _split_words(inside):
        yield _below_splits(sketch, inside, words, where)
        return
    if likely := _find_likely_splits(inside):
        yield _as_likely_splits(inside, likely, where)
        return
    pattern, splits = _find_splits(sketch)
    source: dict[str, Any] = {"kind": "archives"}
    if splits:
        source["split"] = pattern
    if (label := _label_images(sketch, inside, bool(splits))) is None:
        for given, classes in _find_levels(sketch, inside):
            settings = {"source": {**source, **given}, **splits}
            yield Recognized(settings, f"classes such as {classes} {where}")
        return
    given, what = label
    what = f"{what} in archives for splits," if splits else what
    needs = None
    if given.get("class_from") in ("archive", "none"):
        needs = _ask_about_folders(sketch)
    settings = {"source": {**source, **given}, **splits}
    yield Recognized(settings, f"{what} {where}", True, needs, _CLASS_FROM)


def _find_splits(sketch: FolderSketch) -> tuple[str, dict[str, Any]]:
    """Returns the pattern and the settings that take splits from paths of archives.

    Returns empty if none do.
    """
    if splits := _find_splits_of_folders(sketch):
        return f"(?:^|/){_any_of(splits)}/", splits
    if _are_several(sketch) and (splits := _find_splits_of_names(sketch)):
        return _pattern_for_names(sketch, splits), splits
    return "", {}


def _label_images(
    sketch: FolderSketch, inside: _Unwrapped, are_splits: bool
) -> tuple[dict[str, Any], str] | None:
    """Returns the settings that label images, and what these are; None if it is not clear.

    Args:
        sketch: the input.
        inside: an archive.
        are_splits: whether archives are for splits.
    """
    holding, top = inside.holding, inside.inner.top
    if top.images and not holding:
        class_from, what = _label_flat(sketch, are_splits)
        return {"class_from": class_from}, what
    if _says_nothing(inside):
        class_from, what = _label_flat(sketch, are_splits)
        return {"class_from": class_from}, what
    if not inside.depth:
        return {}, "class folders"
    are_deep = any(inside.inner.at(folder).folders for folder in holding)
    are_images_deep = set(holding) != set(inside.inner.image_folders)
    are_unclear = _are_several(sketch) and not are_splits and _name_classes(sketch)
    if are_deep or are_images_deep or are_unclear:
        return None
    if top.images:
        return {"strip_folders": inside.depth}, "class folders"
    return {"class_from": "last_folder"}, "class folders"


_CLASS_FROM = ("source.class_from",)
_MOST_OFFERED = 4
"""Archives that differ, each with the flags that convert it alone."""


def _says_nothing(inside: _Unwrapped) -> bool:
    """Returns whether the images of an archive are in one folder, which names no class.

    `images`.
    """
    holding = inside.holding
    return (
        len(holding) == 1 and says_nothing(holding[0]) and bool(inside.inner.at(holding[0]).images)
    )


def _below_splits(
    sketch: FolderSketch, inside: _Unwrapped, words: Collection[str], where: str
) -> Recognized:
    """Recognizes folders for splits, with class folders or images in them."""
    below = {split: _Unwrapped(inside.inner.below(split)) for split in inside.holding}
    folders = {*chain.from_iterable(split.holding for split in below.values())}
    has_classes = not all(
        says_nothing(each) or NO_CLASS.fullmatch(each.lower()) for each in folders
    )
    class_from, what = "last_folder", "class folders"
    if not has_classes:
        class_from, what = _label_flat(sketch, are_splits=False)
    splits = given_splits("from_source", words)
    source = {"kind": "archives", "class_from": class_from, "split": f"/{_any_of(splits)}/"}
    flat = [split for split, each in below.items() if each.inner.top.images and not each.holding]
    needs = None
    if has_classes and flat:
        needs = (
            f"{', '.join(flat)} has no class folders, as the others have: unpack it, or add --set "
            "source.class_from=none to convert all images without labels"
        )
    why = f"{what} below {', '.join(inside.holding)} {where}"
    return Recognized({"source": source, **splits}, why, True, needs, _CLASS_FROM)


def _find_likely_splits(inside: _Unwrapped) -> dict[str, str]:
    """Returns the folders that may be splits, and their splits; other folders may be next to them.

    A single one, such as `train`, is a split if there are folders of images in it.
    """
    if inside.inner.top.images or len(inside.holding) < 2:
        return {}
    return likely_splits(inside.holding) or {
        each: SPLIT_NAMES[each.lower()]
        for each in inside.holding
        if each.lower() in SPLIT_NAMES and _Unwrapped(inside.inner.below(each)).holding
    }


def _as_likely_splits(inside: _Unwrapped, likely: Mapping[str, str], where: str) -> Recognized:
    """Takes folders such as `train_images` for splits; asks about others, such as `seg_train`."""
    folders = list(chain.from_iterable(inside.inner.at(each).folders for each in likely))
    splits = {"splits": {"from_source": likely}}
    source: dict[str, Any] = {
        "class_from": "last_folder" if folders else "none",
        "split": f"/{_any_of(splits)}/",
    }
    others = [each for each in inside.holding if each not in likely]
    needs = None
    if any(not is_telling(each) for each in others) or not all(
        NO_CLASS.fullmatch(each.lower()) for each in likely
    ):  # otherwise, the listing finds pairs
        members = ["*", *(f"!**/{escape_glob(each)}/**" for each in others)]
        words = ", ".join(f"{orjson.dumps(each).decode()}: {likely[each]}" for each in likely)
        values = {
            **{f"source.{key}": value for key, value in source.items()},
            "splits.from_source": f"{{{words}}}",
        }
        if others:
            values["source.members"] = orjson.dumps(members).decode()
        flags = " ".join(f"--set {shlex.quote(f'{key}={value}')}" for key, value in values.items())
        needs = (
            f"{', '.join(likely)} may be splits: if so, add {flags}; if they are classes, give "
            "them other names"
        )
    settings = {"source": {"kind": "archives", **source}, **splits}
    why = f"{', '.join(likely)} for splits {where}"
    return Recognized(settings, why, True, needs, ("splits.from_source",))


def _pattern_for_names(sketch: FolderSketch, splits: Mapping[str, Any]) -> str:
    """Returns the pattern that finds splits in the names of archives, in folders or not."""
    if any("/" in path for path in sketch.all_ending(*ARCHIVE_ENDINGS)):
        return rf"{_any_of(splits)}[^/]*\.(?:tar|tar\.gz|tgz|zip)/"
    return f"^[^/]*?{_any_of(splits)}"


def _label_flat(sketch: FolderSketch, are_splits: bool) -> tuple[str, str]:
    """Returns whether archives without folders are classes.

    A value of `class_from`, and what they hold.

    Archives in folders for splits may be, if these have some in common.
    """
    by_folder: defaultdict[str, set[str]] = defaultdict(set)
    for path in sketch.all_ending(*ARCHIVE_ENDINGS):
        by_folder[posixpath.dirname(path)].add(name_of_archive(path))
    has_several = all(len(names) > 1 for names in by_folder.values())
    in_folders = bool(_find_splits_of_folders(sketch))
    if has_several and (in_folders or not are_splits) and _name_classes(sketch):
        return "archive", "archives that are classes"
    return "none", "images without labels"


def _ask_about_folders(sketch: FolderSketch) -> str | None:
    """Asks about folders of archives that may be classes; None if there are none."""
    paths = sketch.all_ending(*ARCHIVE_ENDINGS)
    folders = sorted({posixpath.basename(posixpath.dirname(path)) for path in paths})
    may_be = [each for each in folders if each and not split_for_word(each)]
    if len(folders) < 2 or not may_be or may_be != folders or not _are_classes(folders):
        return None
    return (
        f"the folders around the archives, such as {folders[0]}, do not name classes: unpack the "
        "archives if they should, or add --set source.class_from=none to convert the images "
        "without labels"
    )


def _name_classes(sketch: FolderSketch) -> bool:
    """Returns whether the names of archives may be those of classes."""
    return _are_classes({name_of_archive(path) for path in sketch.all_ending(*ARCHIVE_ENDINGS)})


def _are_classes(names: Collection[str]) -> bool:
    """Returns whether names of archives, or of folders around them, may be those of classes."""
    is_nothing = are_unlikely_classes(names) or explain_unlikely(names) is not None
    return not is_nothing and not all(map(says_nothing, names)) and not _are_counted(names)


def _are_counted(names: Collection[str]) -> bool:
    """Returns whether names are those of parts: `1`, `2`, or `flowers_1`, `flowers_2`."""
    if all(map(str.isdigit, names)):
        return True
    parts = [re.fullmatch(r"(.*?)([0-9]+)([^0-9]*)", name) for name in names]
    numbers = [int(each[2]) for each in parts if each]
    is_one_form = len({(each[1], each[3]) for each in parts if each}) == 1
    return is_one_form and all(parts) and max(numbers) - min(numbers) <= 2 * len(numbers)


def _find_levels(sketch: FolderSketch, inside: _Unwrapped) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields settings for each level of folders that may name classes, and an example.

    Folders are around all of them. The last folder is not offered if it would make one class of
    folders of one name, nor if all of these say nothing.
    """
    paths = [folder for folder, names in inside.inner.names.items() if names.images and folder]
    first, strip = paths[0], {"strip_folders": inside.depth}
    last = Counter(map(posixpath.basename, paths))
    if all("/" in path for path in paths) and all(map(says_nothing, last)):
        yield {"class_from": "first_folder", **strip}, first.partition("/")[0]
        return
    yield {"class_from": "path", **strip}, first
    if max(last.values()) == 1:
        yield {"class_from": "last_folder"}, posixpath.basename(first)
    if len({path.partition("/")[0] for path in paths}) > 1 and any("/" in path for path in paths):
        yield {"class_from": "first_folder", **strip}, first.partition("/")[0]
    if _are_several(sketch):
        yield {"class_from": "first_folder"}, "the folder around everything"


def _any_of(splits: Mapping[str, Any]) -> str:
    """Returns a pattern for the words that settings map to splits.

    If a word is the beginning of another, both are of one split.
    """
    return f"(?P<split>{'|'.join(splits['splits']['from_source'])})"


def _find_annotations(inside: FolderSketch) -> dict[str, str]:
    """Files and folders of annotations, which class folders do not have, with patterns of all."""
    found: dict[str, str] = {}
    for folder, names in inside.names.items():
        for name in ("data.yaml", "_annotations.coco.json"):
            if name in names.files:
                found.setdefault(name, posixpath.join(folder, name))
        for ending in (".xml", ".json", ".txt"):
            if beside := names.beside_images(ending):
                found.setdefault(f"*{ending}", posixpath.join(folder, beside[0]))
        base = posixpath.basename(folder)
        if base.lower() in ("annotations", "annots", "labels") and not names.images:
            found.setdefault(f"**/{base}/**", folder)
    return found


def _with_annotations(found: Recognized, name: str, annotations: Mapping[str, str]) -> Recognized:
    """Asks about annotations in an archive, which are not read."""
    members = orjson.dumps(["*", *(f"!{pattern}" for pattern in annotations)]).decode()
    (example, *_) = annotations.values()
    needs = (
        f"{name} holds annotations ({example}), which are not read from archives: unpack it, or "
        f"leave them out with --set {shlex.quote(f'source.members={members}')}"
    )
    questions = ((found.needs, found.needed_keys),) if found.needs else ()
    return replace(found, needs=needs, needed_keys=("source.members",), questions=questions)
