"""YOLO: one text file per image, one box per line: class number, centre, width and height as fractions of the image."""

import math
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import orjson
import yaml

from recordmill.imaging.geometry import Box
from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed, boxes_of
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.setting_fields import added_setting
from recordmill.transforms.inputs.class_names import number_class_names, split_names, why_unread
from recordmill.transforms.inputs.folder_sketch import (
    IMAGE_ENDINGS,
    IMAGE_PATTERNS,
    FolderSketch,
    Recognised,
    given_splits,
    split_of,
)
from recordmill.transforms.inputs.named_files import DataFile, NoFileError, bad_annotations, parse_sibling, read_sibling
from recordmill.transforms.inputs.sources.source import Source

NAMES_FILES = ("data.yaml", "classes.txt")
"""Files at the top of the input that name the classes. Other YAML files may too, such as Ultralytics' `coco8.yaml`."""

_YAML = (".yaml", ".yml")

NAMES_BESIDE = (*NAMES_FILES, "obj.names", "_darknet.labels")
"""Files that name the classes if text files are next to images, as in Darknet."""

_IMAGES = re.compile(r"(?:([^/\s'\"\[,]+)/+)?images(?:/+([^/\s'\"\],]+))?")
"""A path in data.yaml: the folders above and below `images`."""

_BOX = re.compile(rb"(?:\xef\xbb\xbf)?[0-9]+( +-?[0-9.]+(e-?[0-9]+)?){4,}\s*", re.IGNORECASE)
_CLASS = re.compile(r"[0-9]{1,9}(\.0*)?")
_FLAGS = {0.0, 1.0, 2.0}  # of a key point: not labelled, hidden, visible


class BadNameError(ValueError):
    """A file has `names`, but one of them is not a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yolo(Source):
    """The source `yolo`.

    Images are below a folder `images`, their text files at the same place below `labels` (`train/images/1.jpg` and
    `train/labels/1.txt`, or `images/train/1.jpg` and `labels/train/1.txt`). An image without a text file has no boxes.
    The folder above or below `images` is the word that `splits.from_source` may use.

    Attributes:
        text_files: where the text files are: `labels`, in a folder `labels` that mirrors `images`; or `beside`, next to
            images in any folder. Then the first folder is the word for `splits.from_source`, and `obj.names` and
            `_darknet.labels` name classes too.
        names: class names in the order of their numbers; empty: those in `data.yaml`, another YAML file or
            `classes.txt` in the input.
        other_shapes: what to do with polygons (`class x y x y x y ...`): `enclose` uses the box around them, `drop`
            leaves them out, `reject` rejects the image.
        lines: what the numbers after a class are. `auto`: four are a box, which a confidence may follow; key points are
            recognised by `kpt_shape` in data.yaml or by their flags; pairs are a polygon. `boxes`: the first four are a
            box, and the rest is ignored.
    """

    names: tuple[str, ...] = ()
    other_shapes: Literal["enclose", "drop", "reject"] = added_setting("enclose")
    lines: Literal["auto", "boxes"] = added_setting("auto")
    text_files: Literal["labels", "beside"] = added_setting("labels")

    gives_words: ClassVar[bool] = True
    other_files: ClassVar[str] = "read_only_with_images"
    is_about_boxes: ClassVar[bool] = True
    classes_from: ClassVar[str] = "data.yaml or source.names"
    shared_files: ClassVar[tuple[str, ...]] = NAMES_BESIDE

    def __post_init__(self) -> None:
        """Raises ValueError if the settings name a class twice."""
        self.classes()

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]  # depends on the settings
        """Images, and the files that name the classes."""
        if self.text_files == "beside":
            return *IMAGE_PATTERNS, *NAMES_BESIDE
        return "images/", "/classes.txt", *(f"/*{ending}" for ending in _YAML)

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterator[Recognised]:
        """Recognises folders `images` and `labels`, or text files with boxes next to images."""
        for source, words, why in (*_recognise_folders(sketch), *_recognise_beside(sketch)):
            files = {name for folder, each in sketch.names.items() for name in each.files if source or not folder}
            named = any(_may_name_classes(name) or (source and name in NAMES_BESIDE) for name in files)
            needs = "" if named else "no data.yaml or classes.txt names the classes: add --set 'source.names=[...]'"
            splits = given_splits("from_source", words, _splits_of_subsets(words) | _splits_of_data_yaml(sketch))
            settings = {"source": {"kind": "yolo", **source}, **splits, "convention": "tf_object_detection"}
            key = "source.names"
            if not needs and not splits and len(lists := _lists_of_splits(sketch)) > 1:
                key, needs = "splits", f"{', '.join(lists)} list the images of splits, and such lists are not read: "
                needs += "add --set 'splits.fractions={train: 0.9, test: 0.1}' to split the images otherwise"
            yield Recognised(settings, why, needs=needs, needed_keys=(key,))

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields an image with its boxes, or the named classes."""
        beside = self.text_files == "beside"
        if posixpath.basename(path) in NAMES_BESIDE if beside else _may_name_classes(path):
            yield from self._announce(path, file)
            return
        image = DataFile(path, file)
        text_file = self._text_file(image.spelled)
        if not text_file:
            raise Rejected("list", "no_class", "the file is not below a folder called images")
        word = path.rpartition("/")[0].partition("/")[0] if beside else _word_around_images(path)
        lacks_file, key_points = False, 0
        try:
            fields, key_points = self._read_boxes(read_sibling(f"{image.root}/{text_file}"), image)
        except NoFileError:
            fields, lacks_file = boxes_of([], [], fractions=True), True
        if key_points:
            yield file.notice("not_stored", "key points", count=key_points)
        yield file.replace(split=word, features=orjson.dumps(fields).decode(), lacks_file=lacks_file)

    def _text_file(self, path: str) -> str:
        """The path of an image's text file; empty for an image that is not below `images`."""
        stem = posixpath.splitext(path)[0]
        if self.text_files == "labels":
            above, images, below = f"/{stem}".rpartition("/images/")
            stem = f"{above}/labels/{below}"[1:] if images else ""
        return stem and f"{stem}.txt"

    def _read_boxes(self, data: bytes, image: DataFile) -> tuple[dict[str, Any], int]:
        """The boxes of a text file, and the number of lines with key points after the box."""
        try:
            text = data.decode("utf-8-sig")  # some editors write a byte order mark
            longer = sum(len(line.split()) > 6 for line in text.splitlines()) if self.lines == "auto" else 0
            key_points = _find_key_points(image) if longer else None
            fields = self.read_lines(text, key_points)
            return fields, max(0, longer - sum(fields.get("boxes_shapes", {}).values()))
        except (Rejected, UnicodeDecodeError) as error:
            reason = error.reason if isinstance(error, Rejected) else "bad_annotations"
            raise Rejected("list", reason, f"{self._text_file(image.path)}: {why_unread(error)}") from None

    def read_lines(self, text: str, key_points: tuple[int, int] | None = None) -> dict[str, Any]:
        """The boxes of one text file, as from `schemas.image_ref.boxes_of`.

        Each line is a class number and further numbers, all fractions of the image. Their count decides what they are,
        as in Ultralytics' own loader (ultralytics/data/utils.py, `verify_image_label`), but line by line: one file may
        hold both boxes and polygons, as Roboflow exports them.

        Args:
            text: of the file.
            key_points: `kpt_shape` in data.yaml: key points per box, and numbers per key point.

        Raises:
            Rejected: a line is neither a box nor an accepted polygon.
        """
        boxes: list[Box] = []
        labels: list[int] = []
        polygons = 0
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.split()
            if not words:
                continue
            values = _numbers(words[1:])
            if len(values) < 4 or not _CLASS.fullmatch(words[0]):
                raise bad_annotations(f"line {number} is not a class number and four numbers or more")
            if self.lines == "boxes" or _begins_with_box(values, key_points, number):
                x, y, width, height = values[:4]
                boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
            elif self.other_shapes == "reject":
                detail = f"line {number} is a polygon, and source.other_shapes is reject"
                raise Rejected("list", "refused_shape", detail)
            else:
                polygons += 1
                if self.other_shapes == "drop":
                    continue
                boxes.append((min(values[0::2]), min(values[1::2]), max(values[0::2]), max(values[1::2])))
            labels.append(int(words[0].partition(".")[0]))
        shapes = {"other_shape" if self.other_shapes == "drop" else "enclosed": polygons}
        return boxes_of(boxes, labels, fractions=True, shapes=shapes)

    def uses(self, ref: ImageRef) -> Iterable[str]:
        """The image, and the text file with its boxes."""
        text_file = "" if ref.lacks_file else self._text_file(ref.uri)
        return (ref.uri, text_file) if text_file else (ref.uri,)

    def classes(self) -> Mapping[str, int]:
        """The classes in `names`."""
        return number_class_names(self.names, "source.names")

    def _announce(self, path: str, file: ImageRef) -> Iterator[Listed]:
        try:
            names = read_names(path, read_sibling(file.uri).decode("utf-8-sig"))
        except (Rejected, ValueError) as error:
            if posixpath.basename(path) in NAMES_BESIDE or isinstance(error, BadNameError):
                yield file.notice("fatal", "bad_annotations", f"it names no classes: {why_unread(error)}")
            else:
                yield file.notice("ignored", self.other_files)
            return
        if not self.names:
            yield ClassNames.of(file, names)
        yield file.notice("ignored", "class_names")


def _may_name_classes(path: str) -> bool:
    """Whether a file may name the classes, by its path below the input."""
    return path in NAMES_FILES or ("/" not in path and path.endswith(_YAML))


def _word_around_images(path: str) -> str:
    """The folder below `images`, or else the one above it."""
    above, _, below = f"/{path}".rpartition("/images/")
    return below.partition("/")[0] if "/" in below else above.rpartition("/")[2]


def _recognise_folders(sketch: FolderSketch) -> Iterator[tuple[dict[str, str], tuple[str, ...], str]]:
    """Source settings, split words and a reason, if images are below `images` and text files below `labels`."""
    if {"images", "labels"} <= set(sketch.top.folders):
        words = sketch.at("images").folders
        labels = ["labels", *(f"labels/{word}" for word in words)]
        if any(sketch.at(folder).ending(".txt") for folder in labels) and _holds_boxes(sketch, labels):
            where = "images/*, labels/*" if words else "images, labels"
            yield {}, words if not sketch.at("images").images else (), f"YOLO's folders {where}"
    splits = [each for each in sketch.top.folders if {"images", "labels"} <= set(sketch.at(each).folders)]
    if not any(map(split_of, splits)) and not any(map(_may_name_classes, sketch.top.files)):
        return
    labels = [f"{each}/labels" for each in splits]
    if any(sketch.at(folder).ending(".txt") for folder in labels) and _holds_boxes(sketch, labels):
        yield {}, tuple(splits), f"YOLO's folders {splits[0]}/images, {splits[0]}/labels"


def _recognise_beside(sketch: FolderSketch) -> Iterator[tuple[dict[str, str], tuple[str, ...], str]]:
    """The same if text files are next to images."""
    folders = [folder for folder in ("", *sketch.top.folders) if sketch.at(folder).beside_images(".txt")]
    if folders and _holds_boxes(sketch, folders):
        example = sketch.at(folders[0]).beside_images(".txt")[0]
        yield {"text_files": "beside"}, tuple(folders), f"YOLO's text files next to images, such as {example}"


def _splits_of_data_yaml(sketch: FolderSketch) -> dict[str, str]:
    """The splits of folders around `images`, from the paths of `train`, `val` and `test` in data.yaml."""
    text = sketch.first_head("", *_YAML).decode("utf-8-sig", "replace")
    found: dict[str, str] = {}
    for key, paths in re.findall(r"^(train|val|test) *:((?:.|\n[ -])*)", text, re.MULTILINE):
        for above, below in _IMAGES.findall(paths):
            found.setdefault(below or above, split_of(key))
    return found


def _splits_of_subsets(folders: Collection[str]) -> dict[str, str]:
    """The splits of CVAT's folders, `obj_Train_data`; a single one is that of a task without subsets."""
    subsets = {each: split_of(each.removeprefix("obj_").removesuffix("_data")) for each in folders}
    return subsets if len(folders) > 1 else {}


def _lists_of_splits(sketch: FolderSketch) -> list[str]:
    """The text files in the input that are named after splits, and list images."""
    heads = {name: sketch.heads.get(name, b"").split(b"\n")[0] for name in sketch.top.ending(".txt")}
    listed = [name for name, line in heads.items() if line.decode(errors="replace").strip().endswith(IMAGE_ENDINGS)]
    return [name for name in listed if split_of(posixpath.splitext(name)[0])]


def _holds_boxes(sketch: FolderSketch, folders: Iterable[str]) -> bool:
    """Whether any text file that was looked into holds a box; if all are blank, whether there are some."""
    texts = {path: head for path, head in sketch.heads.items() if path.endswith(".txt")}
    heads = [head for path, head in texts.items() if posixpath.dirname(path) in {*folders}]
    lines = [head.splitlines()[0] for head in heads if head.strip() and not head.startswith(b"\n")]
    return any(_BOX.fullmatch(line) for line in lines) if lines else bool(heads)


def _numbers(words: list[str]) -> list[float]:
    try:
        return [float(word) for word in words]
    except ValueError:
        return []


def _begins_with_box(values: list[float], key_points: tuple[int, int] | None, number: int) -> bool:
    """Whether the first four numbers of a line are a box; otherwise all of them are the points of a polygon.

    Raises:
        Rejected: the numbers fit neither.
    """
    count, further = len(values), values[4:]
    found = f"line {number} has {count} numbers after its class"
    if count <= 5:  # a box, or one with a confidence
        return True
    if key_points:
        wanted = 4 + math.prod(key_points)
        if count != wanted:
            raise bad_annotations(f"{found}, not {wanted} by kpt_shape: {list(key_points)}")
        return True
    flagged = count >= 13 and len(further) % 3 == 0 and _FLAGS.issuperset(further[2::3])
    if flagged:  # three key points or more, each with a flag
        return True
    in_image = all(-1 < value < 2 for value in values)
    if count % 2 == 0 and in_image:
        return False
    if count % 2 and (not in_image or all(value.is_integer() for value in further)):  # attributes
        return True
    neither = "which are neither a box nor the points of a polygon"
    raise bad_annotations(f"{found}, {neither}: if the first four are a box, set source.lines=boxes")


def read_names(path: str, text: str) -> dict[str, int]:
    """Class numbers by name, from YAML (`names:` as a list, or by number) or lines of text.

    Raises:
        ValueError: there are no names, two are the same, or one is invalid.
    """
    names: Any = _load_yaml(text).get("names") if path.endswith(_YAML) else split_names(text)
    if not isinstance(names, list | dict | None):
        raise ValueError(f"`names` is not a list: {names!r:.60}")
    numbered = names if isinstance(names, dict) else dict(enumerate(names or ()))
    for number, name in numbered.items():  # aliases can make the list huge: never show it whole
        if type(number) is not int or not isinstance(name, str | int | float) or name == "":
            raise BadNameError(f"class {number!r:.60} of `names` is not a text under a number")
        if isinstance(name, bool):
            why = "yes, no, on and off are booleans in YAML"
            raise BadNameError(f"class {number} of `names` is {name}: write it in quotes, as text ({why})")
    classes = {str(name): number for number, name in numbered.items()}
    if not classes or len(classes) < len(numbered):
        raise ValueError("two classes have one name" if classes else "`names` is missing or empty")
    return classes


def _load_yaml(text: str | bytes) -> dict[Any, Any]:
    """A YAML mapping; empty if the YAML is not a mapping.

    Raises:
        ValueError: it is not YAML.
    """
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    return data if isinstance(data, dict) else {}


def _find_key_points(image: DataFile) -> tuple[int, int] | None:
    root = image.root
    # If the first folder gives the split, it is not in `path`, and data.yaml is next to that folder.
    for folder in (root, root.rpartition("/")[0]) if image.ref.key != image.path else (root,):
        with suppress(Rejected):  # `list_references` reports it
            if shape := parse_sibling(f"{folder}/data.yaml", _key_points):
                return shape
    return None


def _key_points(data: bytes) -> tuple[int, int] | None:
    """`kpt_shape` in a data.yaml; None if it has none, or is not YAML, as `list_references` reports."""
    with suppress(ValueError):
        shape = _load_yaml(data).get("kpt_shape")
        if isinstance(shape, list) and len(shape) == 2 and all(type(each) is int and each > 0 for each in shape):
            return shape[0], shape[1]
    return None


SOURCE = Yolo
