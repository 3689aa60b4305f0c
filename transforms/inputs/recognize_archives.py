"""Recognizes an input of archives by the names of their first members."""

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.transforms.inputs.archive_samples import SampleSketch, SeveralImagesError
from recordmill.transforms.inputs.folder_sketch import (
    ARCHIVE_ENDINGS,
    FolderSketch,
    Recognized,
    given_splits,
)
from recordmill.transforms.inputs.unlikely_classes import (
    are_unlikely_classes,
    explain_unlikely,
    says_nothing,
)

_ENDING = re.compile(r"(?<=.)\.(tar|tar\.gz|tgz|zip)$", re.IGNORECASE)


def name_of_archive(path: str) -> str:
    """An archive's own name, without its extension."""
    return _ENDING.sub("", posixpath.basename(path))


def recognize_archives(sketch: FolderSketch, image_parts: Sequence[str]) -> Iterator[Recognized]:
    """Recognizes an input that consists of archives.

    Args:
        sketch: the input.
        image_parts: the usual extensions of images in samples.
    """
    seen = sketch.archives.items()
    archives = {name: inside for name, inside in seen if inside.names and not name.endswith(".npz")}
    if not archives:
        return
    for name, inside in archives.items():
        samples = SampleSketch.of(inside)
        if samples.images:  # whatever the folders, labels are next to images
            yield _as_samples(sketch, name, inside, samples, image_parts)
            return
    name, whole = next(iter(archives.items()))
    inside = unwrap(whole)
    is_wrapped = inside is not whole
    if _are_beside(inside):
        yield _as_samples(sketch, name, inside, SampleSketch.of(inside), image_parts)
        return
    annotations = _find_annotations(inside)
    if annotations:
        found = _as_folders(sketch, list(archives), inside, is_wrapped)
        yield from (_with_annotations(each, name, annotations) for each in found)
    elif inside.has_images:
        yield from _as_folders(sketch, list(archives), inside, is_wrapped)


def _as_samples(
    sketch: FolderSketch,
    name: str,
    inside: FolderSketch,
    samples: SampleSketch,
    image_parts: Sequence[str],
) -> Recognized:
    source: dict[str, Any] = {"kind": "archives", "labels": "beside"}
    has_label, has_caption, has_json = map(samples.has, ("cls", "txt", "json"))
    needs, keys = "", ("source.label_part",)
    if not has_label:
        source["label_part"] = ""
    if has_caption:
        source["features_from"] = {"image/caption": {"part": "txt", "default": ""}}
    splits = sketch.archive_splits
    if splits:
        ending = r"\.t(?:ar|gz)" if sketch.all_ending(".tgz") else r"\.tar"
        source["split"] = f"{_any_of(splits)}[^/]*{ending}"
    elif splits := _splits_of_folders(samples):
        source["split"] = f"/{_any_of(splits)}/"
    try:
        if own := samples.image_parts(image_parts):
            source["image_parts"] = own
    except SeveralImagesError as several:
        (parts,) = several.args
        needs = (
            f"its samples have several images ({', '.join(parts)}), and one can be stored: add "
            f"--set 'source.image_parts=[{parts[0]}]'"
        )
        keys = ("source.image_parts",)
    label = sketch.heads.get(f"{name}/.cls", b"").strip()
    ids = {"labels": {"ids": "integers"}} if label.lstrip(b"-").isdigit() else {}
    if has_json and not has_label and not has_caption:
        needs = (
            "its .json files are not read: add --set source.label_part=json.KEY, or '' for "
            "images without labels"
        )
    settings = {"source": source, **splits, **ids}
    return Recognized(settings, f"WebDataset's samples in {name}", needs=needs, needed_keys=keys)


def _splits_of_folders(samples: SampleSketch) -> dict[str, Any]:
    """The settings that take splits from folders of samples, if all are named after splits."""
    words = {folder.rpartition("/")[2] for folder in samples.folders}
    return given_splits("from_source", words) if words <= SPLIT_NAMES.keys() else {}


def class_folders_in(sketch: FolderSketch) -> Iterator[tuple[str, FolderSketch]]:
    """Yields archives whose folders may be classes, with what is in the folder around them."""
    for name, whole in sketch.archives.items():
        inside = unwrap(whole)
        are_samples = SampleSketch.of(whole).images or _are_beside(inside)
        if inside.has_images and not are_samples and not _find_annotations(inside):
            yield name, inside


def _are_beside(inside: FolderSketch) -> bool:
    """Whether labels are next to images, outside any folder."""
    return any(map(inside.top.beside_images, (".cls", ".json", ".txt")))


def unwrap(inside: FolderSketch) -> FolderSketch:
    """What is in the only folder of an archive, if that is around all folders of images."""
    top = inside.top
    is_wrapped = len(top.folders) == 1 and not top.images and not inside.at(top.folders[0]).images
    return inside.below(top.folders[0]) if is_wrapped else inside


def _as_folders(
    sketch: FolderSketch, names: list[str], inside: FolderSketch, is_wrapped: bool
) -> Iterator[Recognized]:
    """Recognizes archives by the folders in the first of them.

    A folder around everything does not count.
    """
    source: dict[str, Any] = {"kind": "archives"}
    where = f"in {', '.join(names)}"
    if inside.split_folders and not inside.image_folders:
        splits = given_splits("from_source", inside.split_folders)
        folders = {each for split in inside.split_folders for each in inside.at(split).folders}
        has_classes = len(folders) > 1 or not all(map(says_nothing, folders))
        source |= {
            "class_from": "last_folder" if has_classes else "none",
            "split": f"/{_any_of(splits)}/",
        }
        what = "class folders" if has_classes else "images without labels"
        below = ", ".join(inside.split_folders)
        yield Recognized({"source": source, **splits}, f"{what} below {below} {where}")
        return
    what = "class folders"
    splits = sketch.archive_splits if len(names) > 1 else {}
    holding = [each for each in inside.top.folders if inside.holds_images(each)]
    if inside.top.images and not inside.top.folders:
        is_class = len(names) > 1 and not splits and _name_classes(sketch)
        source["class_from"] = "archive" if is_class else "none"
        what = "archives that are classes" if is_class else "images without labels"
    elif len(holding) == 1 and says_nothing(holding[0]) and inside.at(holding[0]).images:
        source["class_from"] = "none"
        what = "images without labels"
    elif is_wrapped:
        is_deep = any(inside.at(folder).folders for folder in inside.top.folders)
        are_unclear = len(names) > 1 and not splits
        if is_deep or inside.top.folders != inside.image_folders or are_unclear:
            for given, classes in _find_levels(inside, len(names) > 1):
                settings = {"source": {**source, **given}, **splits}
                yield Recognized(settings, f"classes such as {classes} {where}")
            return
        source["class_from"] = "last_folder"
    if splits:
        source["split"] = f"^[^/]*?{_any_of(splits)}"
        what = "archives for splits,"
    yield Recognized({"source": source, **splits}, f"{what} {where}")


def _name_classes(sketch: FolderSketch) -> bool:
    """Whether the names of archives may be those of classes."""
    names = [name_of_archive(path) for path in sketch.all_ending(*ARCHIVE_ENDINGS)]
    is_nothing = are_unlikely_classes(names) or explain_unlikely(names) is not None
    return not is_nothing and not all(map(says_nothing, names))


def _find_levels(inside: FolderSketch, are_several: bool) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields settings for each level of folders that may name classes, and an example.

    A folder is around all of them. The last folder is not offered if it would make one class of
    folders of one name.
    """
    paths = [folder for folder, names in inside.names.items() if names.images and folder]
    first = paths[0]
    last = Counter(map(posixpath.basename, paths))
    yield {"class_from": "path", "strip_folders": 1}, first
    if max(last.values()) == 1:
        yield {"class_from": "last_folder"}, posixpath.basename(first)
    if len({path.partition("/")[0] for path in paths}) > 1 and any("/" in path for path in paths):
        yield {"class_from": "first_folder", "strip_folders": 1}, first.partition("/")[0]
    if are_several:
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
    questions = ((found.needs, found.needed_keys),)
    return replace(found, needs=needs, needed_keys=("source.members",), questions=questions)
