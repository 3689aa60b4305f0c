"""Recognises archives by their members' names: class folders, samples of several files, or another layout.

Samples are those of WebDataset: consecutive members that differ only in their extension, which follows the first dot of
the base name: `000/07.seg.png` is the part `seg.png` of `000/07` (webdataset's `base_plus_ext`).
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, ClassVar

import orjson

from recordmill.schemas.features import Kind
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.archives.members import Member
from recordmill.transforms.inputs.listing.class_names import LONGEST_NAME
from recordmill.transforms.inputs.listing.folder_sketch import (
    IMAGE_ENDINGS,
    FolderSketch,
    Recognised,
    given_splits,
    split_of,
)
from recordmill.transforms.inputs.manifests.columns import FeatureFrom, feature_value

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
    has_label, has_caption, has_json = map(inside.top.beside_images, (".cls", ".txt", ".json"))
    if not has_label:
        source["label_part"] = ""
    if has_caption:
        source["features_from"] = {"image/caption": {"part": "txt", "default": ""}}
    if splits := given_splits("from_source", sketch.archive_words()):
        ending = r"\.t(?:ar|gz)" if sketch.all_ending(".tgz") else r"\.tar"
        source["split"] = f"{_any_of(splits)}[^/]*{ending}"
    label = sketch.heads.get(f"{name}/.cls", b"").strip()
    ids = {"labels": {"ids": "integers"}} if label.lstrip(b"-").isdigit() else {}
    needs = ""
    if has_json and not has_label and not has_caption:
        needs = "its .json files are not read: add --set source.label_part=json.KEY, or '' for images without labels"
    settings = {"source": source, **splits, **ids}
    return Recognised(settings, f"WebDataset's samples in {name}", needs=needs, needed_keys=("source.label_part",))


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


MAX_PART_BYTES = 2**20
"""The longest label, caption or JSON that is read."""

bad_sample = partial(Rejected, "list", "bad_sample")
"""A file next to an image cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFeature(FeatureFrom):
    """An additional feature from a member next to an image: the YAML keys below its name, with those of `FeatureFrom`.

    Attributes:
        part: the extension of a text file, such as `txt`; or `json.KEY` for the value of a key in the `.json`.
    """

    part: str

    where: ClassVar[str] = "part"
    hint: ClassVar[str] = "give an extension such as txt, or json.KEY"
    described: ClassVar[str] = "`{}` beside the image"  # part of plan ids: these words stay

    def value_of(self, value: Any) -> Any:
        """The feature's value or values.

        Raises:
            Rejected: it is of another type, or missing.
        """
        if self.many:
            if not isinstance(value, list | None):
                raise bad_sample(f"{self.part} is not a list")
            return [_convert(each, self.type, self.part) for each in value or ()]
        if value is None:
            if self.default is None:
                raise bad_sample(f"{self.part} is missing")
            return self.default_value()
        return _convert(value, self.type, self.part)


def _convert(value: Any, kind: Kind, part: str) -> Any:
    """A value as stored in references, by the rules for cells of manifests; but captions may hold any character."""
    if kind == "bytes" and isinstance(value, str):
        return value
    try:
        return feature_value(value, kind, part)
    except Rejected:
        raise bad_sample(f"{part}: {value!r:.60} is not {'text' if kind == 'bytes' else f'of type {kind}'}") from None


@dataclass(slots=True)
class Sample:
    """An image and the members next to it.

    Attributes:
        name: the members' common name.
        parts: members by extension.
        image: the extension of the image; empty if there is none.
        may_lack: whether the archive cannot be read after these members, and further parts may be lost.
    """

    name: str
    parts: dict[str, Member]
    image: str = ""
    may_lack: bool = False


def value_of(part: str, contents: Mapping[str, bytes]) -> Any:
    """The value of a part: a file's text without surrounding white space, or a value in `.json`; None if missing.

    Args:
        part: as in `PartFeature.part`.
        contents: the contents of the members that are needed, by extension.

    Raises:
        Rejected: it is not UTF-8, or not JSON.
    """
    extension, _, key = part.partition(".") if part.startswith("json.") else (part, "", "")
    if extension not in contents:
        return None
    if key:
        return _parse(contents[extension]).get(key)
    try:
        return contents[extension].decode().strip()
    except UnicodeDecodeError:
        raise bad_sample(f"{extension} is not UTF-8") from None


def class_of(label: Any, part: str, names: Sequence[str]) -> str:
    """The class for a label next to an image.

    Args:
        label: a name, or a number.
        part: the part that contains it, for messages.
        names: the classes' names, if labels are numbers from 0; empty: the label itself is the name.

    Raises:
        Rejected: it is missing, is neither text nor integer, or has no class.
    """
    if label is None or label == "":
        raise bad_sample(f"{part} is missing or empty")
    if isinstance(label, str) and len(label) > LONGEST_NAME:
        raise bad_sample(f"{part} has {len(label):,} characters, but a name has at most {LONGEST_NAME:,}")
    if not names and isinstance(label, int | str) and not isinstance(label, bool):
        return str(label)
    number = _convert(label, "int64", part)
    if not 0 <= number < len(names):
        raise bad_sample(f"{part} is {label}, where source.class_names has {len(names)} classes, from 0")
    return names[number]


def extensions_of(parts: Iterable[str]) -> frozenset[str]:
    """The extensions of the files that contain these parts."""
    return frozenset("json" if part.startswith("json.") else part for part in parts if part)


def group_samples(members: Iterable[Member], image_parts: tuple[str, ...]) -> Iterator[Sample]:
    """Groups the members of an archive into samples; each member is a part of one.

    Args:
        members: in the archive's order.
        image_parts: extensions of images; the first that a sample has is used.

    Raises:
        Rejected: as `members`, after the sample before it.
    """
    damage: list[Rejected] = []
    for name, together in groupby(_until_damage(members, damage), key=lambda member: _split(member.name)[0]):
        parts = {_split(member.name)[1]: member for member in together}
        yield Sample(name, parts, next((each for each in image_parts if each in parts), ""), bool(damage))
    if damage:
        raise damage[0]


def _until_damage(members: Iterable[Member], damage: list[Rejected]) -> Iterator[Member]:
    try:
        yield from members
    except Rejected as error:
        damage.append(error)


def _split(name: str) -> tuple[str, str]:
    folder, slash, base = name.rpartition("/")
    stem, _, extension = base.partition(".")
    return folder + slash + stem, extension.lower()


def _parse(data: bytes) -> Mapping[str, Any]:
    try:
        parsed = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise bad_sample(f"json cannot be read: {error}") from None
    if not isinstance(parsed, dict):
        raise bad_sample("json is not an object")
    return parsed
