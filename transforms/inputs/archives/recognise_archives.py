"""Recognises archives by their members' names: class folders, samples of several files, or another layout."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recordmill.transforms.inputs.listing.folder_sketch import (
    IMAGE_ENDINGS,
    FolderSketch,
    Recognised,
    given_splits,
    split_of,
)

_PARTS = (".cls", ".json", ".txt")
"""Extensions of the files next to an image that may contain a sample's label or caption."""


def are_in_one_folder(names: Iterable[str]) -> bool:
    """Whether all images are below one folder, in several folders that are not all named after splits."""
    outer, inner = set(), set()
    for name in names:
        if posixpath.splitext(name)[1].lower() not in ("", *IMAGE_ENDINGS):
            continue
        first, _, below = name.partition("/")
        second, slash, _ = below.partition("/")
        outer.add(first)
        if not slash or len(outer) > 1:
            return False
        inner.add(second)
    return len(inner) > 1 and not all(map(split_of, inner))


def recognise_archives(sketch: FolderSketch) -> Iterator[Recognised]:
    """Recognises an input that consists of archives."""
    archives = {name: inside for name, inside in sketch.archives.items() if inside.names and not name.endswith(".npz")}
    if not archives:
        return
    name, inside = next(iter(archives.items()))
    if has_wrapper := _has_wrapper(inside):
        inside = inside.below(inside.top.folders[0])
    if any(inside.top.beside_images(ending) for ending in _PARTS):  # outside any folder
        yield _as_samples(sketch, name, inside)
    elif layout := _other_layout(inside):
        needs = f"{name} holds annotations ({layout}), which are not read from archives: unpack it"
        yield Recognised({"source": {"kind": "archives"}}, f"the archive {name}", needs=needs)
    elif inside.has_images:
        names = list(archives)
        found = _as_folders(sketch, names, inside)
        if has_wrapper and len(names) > 1 and all(map(_has_wrapper, archives.values())) and "splits" in found.settings:
            found.settings["source"]["look_through"] = True
        yield found


def _has_wrapper(inside: FolderSketch) -> bool:
    """Whether one folder contains everything that was seen."""
    top = inside.top
    return len(top.folders) == 1 and not top.images and not inside.at(top.folders[0]).images


def _as_samples(sketch: FolderSketch, name: str, inside: FolderSketch) -> Recognised:
    source: dict[str, Any] = {"kind": "archives", "labels": "beside"}
    if not inside.top.beside_images(".cls"):
        source["label_part"] = ""
    if inside.top.beside_images(".txt"):
        source["features_from"] = {"image/caption": {"part": "txt", "default": ""}}
    if splits := given_splits("from_source", sketch.archive_words()):
        ending = r"\.t(?:ar|gz)" if sketch.all_ending(".tgz") else r"\.tar"
        source["split"] = f"{_any_of(splits)}[^/]*{ending}"
    label = sketch.heads.get(f"{name}/.cls", b"").strip()
    ids = {"labels": {"ids": "integers"}} if label.lstrip(b"-").isdigit() else {}
    return Recognised({"source": source, **splits, **ids}, f"WebDataset's samples in {name}")


def _as_folders(sketch: FolderSketch, names: list[str], inside: FolderSketch) -> Recognised:
    """Recognises archives by the folders in the first of them."""
    source: dict[str, Any] = {"kind": "archives"}
    where = f"in {', '.join(names)}"
    if inside.split_folders and not inside.image_folders:
        splits = given_splits("from_source", inside.split_folders)
        source |= {"class_from": "last_folder", "split": f"/{_any_of(splits)}/"}
        folders = ", ".join(inside.split_folders)
        return Recognised({"source": source, **splits}, f"class folders below {folders} {where}")
    is_flat = bool(inside.top.images) and not inside.top.folders
    if len(names) > 1 and (splits := given_splits("from_source", sketch.archive_words())):
        source |= {"split": f"^[^/]*?{_any_of(splits)}", **({"class_from": "none"} if is_flat else {})}
        return Recognised({"source": source, **splits}, f"archives for splits, {where[3:]}")
    if is_flat:
        source["class_from"] = "archive" if len(names) > 1 else "none"
    what = {"archive": "archives that are classes", "none": "images without labels"}
    found = what.get(source.get("class_from", ""), "class folders")
    return Recognised({"source": source}, f"{found} {where}")


def _any_of(splits: Mapping[str, Any]) -> str:
    """A pattern for the words that settings map to splits; of the words for one split, the longest comes first."""
    words: Mapping[str, str] = splits["splits"]["from_source"]
    order = list(dict.fromkeys(words.values()))
    return f"(?P<split>{'|'.join(sorted(words, key=lambda word: (order.index(words[word]), -len(word))))})"


def _other_layout(inside: FolderSketch) -> str:
    """A file or folder of annotations, which class folders do not have; empty if there is none."""
    for folder, names in inside.names.items():
        beside = [file for ending in (".xml", ".json", ".txt") for file in names.beside_images(ending)]
        if beside:
            return posixpath.join(folder, beside[0])
        if folder.rpartition("/")[2].lower() in ("annotations", "annots", "labels") and not names.images:
            return folder
        if found := [file for file in names.files if file in ("data.yaml", "_annotations.coco.json")]:
            return posixpath.join(folder, found[0])
    return ""
