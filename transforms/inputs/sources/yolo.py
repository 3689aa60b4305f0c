"""YOLO: one text file per image, one box per line: class number, center and size as fractions.

The center and the size, width and height, are fractions of the image's width and height.
"""

import posixpath
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

import yaml

from recordmill.annotations.annotation import pack_annotations
from recordmill.schemas.errors import SettingError
from recordmill.schemas.formatting import format_count
from recordmill.schemas.image_ref import ClassNames, ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.yaml_core import load_yaml_1_1, write_yaml_line
from recordmill.transforms.inputs.class_names import number_classes, why_unread
from recordmill.transforms.inputs.described_objects import OtherShapes
from recordmill.transforms.inputs.file_roles import YOLO_TEXT
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Recognized,
    given_splits,
    split_for_word,
)
from recordmill.transforms.inputs.image_names import names_in
from recordmill.transforms.inputs.image_suffixes import IMAGE_PATTERNS
from recordmill.transforms.inputs.named_files import (
    DataFile,
    NoFileError,
    read_sibling,
)
from recordmill.transforms.inputs.patterns import escape_glob
from recordmill.transforms.inputs.sources.source import AnnotationSource
from recordmill.transforms.inputs.yolo_lines import LineForms, YoloLines, YoloObjects, YoloTask
from recordmill.transforms.inputs.yolo_names import YAML_ENDINGS, read_names

NAMES_FILES = ("data.yaml", "classes.txt")
"""Files at the top of the input that name the classes. Other YAML files may too, such as
Ultralytics' `coco8.yaml`."""

_TEXTS = "*.[tT][xX][tT]"

NAMES_BESIDE = (*NAMES_FILES, "obj.names", "_darknet.labels")
"""Files that name the classes if text files are next to images, as in Darknet."""

_SPLITS = re.compile(rb"^(?:train|val|test) *:", re.MULTILINE)
_BOX = re.compile(rb"(?:\xef\xbb\xbf)?[0-9]+( +-?[0-9.]+(e-?[0-9]+)?){4,}\s*", re.IGNORECASE)
_LINE = re.compile(r"\s*[0-9]{1,9}(\.0*)?(\s+[-+]?[0-9.]+(e[-+]?[0-9]+)?){4}", re.IGNORECASE)
_KEY_POINTS = re.compile(r"^kpt_shape *:[\s\[-]*([0-9]+)[\s,-]+([0-9]+)", re.MULTILINE)
_ORIENTED = re.compile(r"""^['"]?task['"]? *: *['"]?obb\b""", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Yolo(AnnotationSource):
    """The source `yolo`.

    Images are below a folder `images`, their text files at the same place below `labels`
    (`train/images/1.jpg` and `train/labels/1.txt`, or `images/train/1.jpg` and
    `labels/train/1.txt`). An image without a text file has no boxes. The folder above or below
    `images` is the word that `splits.from_source` may use.

    Attributes:
        text_files: `labels`: in a folder `labels` that mirrors `images`; `beside`: next to images
            in any folder. The first folder is then the word for `splits.from_source`, and
            `obj.names` and `_darknet.labels` name classes, too.
        names: class names in the order of their numbers; empty: those in `data.yaml`, another YAML
            file or `classes.txt`.
        other_shapes: polygons: `enclose` uses the box around them, `drop` leaves them out, `reject`
            rejects the image.
        lines: the numbers after a class. `auto`: four are a box, which a confidence may follow; key
            points are recognized by their flags; pairs are a polygon. `boxes`: the first four are a
            box, the rest is skipped.
        kpt_shape: as in data.yaml, such as `[17, 3]`: a line is a box, which a confidence or these
            key points may follow; others are rejected.
        kpt_names: names of the key points, as in data.yaml; empty: they are numbered from 1.
        task: `obb` for oriented boxes, whose lines have four corners; `auto` for all others.
    """

    names: tuple[str, ...] = ()
    other_shapes: OtherShapes = "enclose"
    lines: LineForms = "auto"
    kpt_shape: tuple[int, ...] = ()
    kpt_names: tuple[str, ...] = ()
    task: YoloTask = "auto"
    text_files: Literal["labels", "beside"] = "labels"

    takes_all_images: ClassVar[bool] = True
    gives_words: ClassVar[bool] = True
    other_files: ClassVar[str] = "read_only_with_images"
    classes_from: ClassVar[str] = "data.yaml or source.names"
    shared_files: ClassVar[tuple[str, ...]] = NAMES_BESIDE
    annotation_endings: ClassVar[tuple[str, ...]] = (".txt", ".TXT")

    def __post_init__(self) -> None:
        """Raises ValueError if the settings name a class twice, or key points do not fit."""
        self.classes()
        shape, names = self.kpt_shape, self.kpt_names
        if shape and (len(shape) != 2 or shape[0] < 1 or shape[1] not in (2, 3)):
            why = "must be the number of key points, and 2 or 3 numbers a point, such as [17, 3]"
            raise SettingError("source.kpt_shape", f"is {list(shape)}: it {why}")
        if shape and self.task == "obb":
            raise SettingError(
                "source.task", "is obb, and source.kpt_shape is set: oriented boxes have no points"
            )
        if names and (not shape or len(names) != shape[0] or len({*names}) < len(names)):
            why = "give each of the points in source.kpt_shape a name of its own"
            raise SettingError("source.kpt_names", f"has {format_count(len(names), 'name')}: {why}")

    @property
    def files(self) -> tuple[str, ...]:  # type: ignore[override]  # depends on the settings
        """Images, text files that may have none, and the files that name the classes."""
        if self.text_files == "beside":
            return *IMAGE_PATTERNS, _TEXTS, *NAMES_BESIDE
        names = (f"/*{ending}" for ending in YAML_ENDINGS)
        return "images/", f"**/labels/**/{_TEXTS}", "/classes.txt", *names

    @property
    def annotation_format(self) -> str | None:
        """The texts of YOLO if they are next to images: a folder of their own claims the others."""
        if self.text_files == "beside":
            return YOLO_TEXT
        return None

    @property
    def remedies(self) -> Mapping[str, str]:
        """For text files without an image."""
        return {
            "no_image": "add the images, correct their names, or name such text files in ignore"
        }

    def remedy_for(self, not_stored: Collection[str]) -> str | None:
        """Returns how to store key points."""
        if "key points" not in not_stored or self.lines == "boxes":
            return None
        return "source.kpt_shape, as in data.yaml, stores key points"

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes folders `images` and `labels`, or text files with boxes next to images."""
        lists = [
            name
            for name in sketch.top.ending(".txt")
            if split_for_word(posixpath.splitext(name)[0])
        ]
        for source, words, why in _recognize_places(sketch):
            files = set(sketch.top.files)
            if source:
                files.update(*(each.files for each in sketch.names.values()))
            named = any(
                _may_name_classes(name) or (source and name in NAMES_BESIDE) for name in files
            )
            needs = None
            if not named:
                needs = (
                    "no data.yaml or classes.txt names the classes: write their names into "
                    "classes.txt in the input, one in each line, in the order of their numbers"
                )
            splits = given_splits("from_source", words)
            data_yaml = sketch.first_head("", *YAML_ENDINGS)
            settings = {
                "source": {"kind": "yolo", **source, **_find_task(data_yaml)},
                **splits,
                "convention": "tf_object_detection",
            }
            key = "source.names"
            are_others = not all(map(split_for_word, words)) and len(_SPLITS.findall(data_yaml)) > 1
            if not needs and (are_others or (not splits and len(lists) > 1)):
                key, needs = "splits", _ask_for_splits(sketch, words, lists)
            yield Recognized(settings, why, needs=needs, needed_keys=(key,))

    @property
    def siblings(self) -> Mapping[str, str]:
        """The other files of Ultralytics, Darknet, CVAT, Label Studio and Roboflow.

        Text files in their place are read with their images.
        """
        lists = dict.fromkeys(
            (f"{word}.txt" for word in ("train", "val", "valid", "test", "trainval")), "split lists"
        )
        in_place = dict[str, str]()
        if self.text_files == "labels":
            in_place = {"labels/**.txt": ""}
        named = dict.fromkeys((*NAMES_BESIDE, "predefined_classes.txt"), "")
        return {
            **in_place,
            **lists,
            **named,
            "*.cache": "caches",
            "notes.json": "notes",
            "obj.data": "",
        }

    def annotations(self) -> Mapping[str, str]:
        """Returns boxes, masks or corners, and key points if settings say that there are some."""
        found = {"boxes": ""}
        if self.task == "obb":
            found["corners"] = "source.task"
        else:
            found["masks"] = ""
        if self._point_names:
            found["keypoints"] = "source.kpt_shape"
        return found

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields an image with its boxes, or the named classes."""
        return self._list(path, file, with_outlines=False)

    def list_with_outlines(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields an image with its boxes and outlines, or the named classes."""
        return self._list(path, file, with_outlines=True)

    @property
    def _point_names(self) -> Sequence[str]:
        """The names of the key points that are read; none if these are not read."""
        if not self.kpt_shape or self.lines == "boxes":
            return ()
        return self.kpt_names or [str(number + 1) for number in range(self.kpt_shape[0])]

    def _list(self, path: str, file: ImageRef, with_outlines: bool) -> Iterator[Listed]:
        if self._may_name_classes(path):
            yield from self._announce(path, file)
            return
        image = DataFile(path, file)
        if path.lower().endswith(".txt") and self._image_folder(image.spelled) is not None:
            yield from self._list_text(image, with_outlines)
            return
        text_file = self._text_file(image.spelled)
        if not text_file:
            raise Rejected("list", "no_class", "the file is not below a folder called images")
        try:
            spelled, objects = self._read_text(image, text_file)
        except (Rejected, UnicodeDecodeError) as error:
            reason = error.reason if isinstance(error, Rejected) else "bad_annotations"
            raise Rejected(
                "list", reason, f"{self._text_file(path)}: {why_unread(error)}"
            ) from None
        if spelled not in (None, text_file):
            yield file.notice("respelled", "", f"{spelled} for {path}")
        unstored = {"key points": objects.skipped}
        if not with_outlines:
            unstored["masks"] = objects.polygons
        for kind, count in unstored.items():
            if count:
                yield file.notice("not_stored", kind, count=count)
        annotations = pack_annotations(objects.annotate(self._point_names, with_outlines))
        split = self._split_word_in(path)
        yield file.replace(split=split, lacks_file=spelled is None, annotations=annotations)

    def _may_name_classes(self, path: str) -> bool:
        """Returns whether a file may name the classes, by its path below the input."""
        if self.text_files == "beside":
            return posixpath.basename(path) in NAMES_BESIDE
        return _may_name_classes(path)

    def _split_word_in(self, path: str) -> str:
        """Returns the folder that may be that of an image's split; empty: there is none."""
        if self.text_files == "beside":
            return posixpath.dirname(path).partition("/")[0]
        return _word_around_images(path)

    def _read_text(self, image: DataFile, text_file: str) -> tuple[str | None, YoloObjects]:
        """Returns the path of an image's text file, None if there is none, and the objects in it.

        Raises:
            Rejected: the file cannot be read, or a line is wrong.
            UnicodeDecodeError: it is not UTF-8.
        """
        try:
            data = read_sibling(f"{image.root}/{text_file}")
        except NoFileError:
            other = self._find_other_text(image, text_file)
            if not other:
                return None, YoloObjects()
            text_file = other
            data = read_sibling(f"{image.root}/{text_file}")
        # Some editors write a byte order mark.
        return text_file, self.read_lines(data.decode("utf-8-sig"))

    def _text_file(self, path: str) -> str | None:
        """Returns the path of an image's text file; None for one that is not below `images`."""
        stem = posixpath.splitext(path)[0]
        if self.text_files == "beside":
            return f"{stem}.txt"
        above, images, below = f"/{stem}".rpartition("/images/")
        if not images:
            return None
        return f"{above}/labels/{below}.txt"[1:]

    def _image_folder(self, text_file: str) -> str | None:
        """Returns the folder of the images of a text file.

        Returns None if it is not where text files are.
        """
        folder = posixpath.dirname(text_file)
        if self.text_files == "beside":
            return folder
        above, labels, below = f"/{folder}/".rpartition("/labels/")
        if not labels:
            return None
        return f"{above}/images/{below}".strip("/")

    def _find_other_text(self, image: DataFile, text_file: str) -> str | None:
        """Returns the text file of an image without one of its own name, if only one can be meant.

        Its name may differ in Unicode's form, URL's escapes or case.
        """
        folder, name = posixpath.split(text_file)
        texts = names_in(f"{image.root}/{folder}".rstrip("/"), are_texts=True)
        images = names_in(f"{image.root}/{image.folder}".rstrip("/"))
        found = images.find_pair(posixpath.splitext(name)[0], texts)
        if found is None:
            return None
        return posixpath.join(folder, texts.by_stem[found][0])

    def _list_text(self, text: DataFile, with_outlines: bool) -> Iterator[Listed]:
        """Yields notices on a text file: its boxes are rejected if there is no image for them."""
        if posixpath.basename(text.path) == "classes.txt":  # it must not contradict others
            yield from self._announce(text.path, text.ref)
            return
        folder, stem = posixpath.split(posixpath.splitext(text.spelled)[0])
        image_folder = self._image_folder(text.spelled) or ""
        images = names_in(f"{text.root}/{image_folder}".rstrip("/"))
        if images.by_stem.get(stem):
            yield text.ref.notice("ignored", self.other_files)
            return
        texts = names_in(f"{text.root}/{folder}".rstrip("/"), are_texts=True)
        if texts.find_pair(stem, images):  # the image counts for both
            yield text.ref.notice("names_images", "names_images", count=0)
            return
        try:
            content = read_sibling(text.ref.uri).decode("utf-8-sig")
        except UnicodeDecodeError:
            content = ""
        if not _LINE.match(content):
            yield text.ref.notice("ignored", self.other_files)
            return
        objects = self.read_lines(content)
        count = format_count(len(objects.labels), "box")
        detail = f"it has {count}, and there is no image {posixpath.join(image_folder, stem)}.*"
        given = objects.annotate(self._point_names, with_outlines)
        lost = text.ref.replace(annotations=pack_annotations(given))
        yield lost.notice("rejected", "no_image", detail)

    def read_lines(self, text: str) -> YoloObjects:
        """Returns the objects of one text file.

        Raises:
            Rejected: a line is neither a box nor an accepted polygon, or all boxes are in pixels.
        """
        reader = YoloLines(
            lines=self.lines,
            kpt_shape=self.kpt_shape,
            task=self.task,
            other_shapes=self.other_shapes,
        )
        return reader.read(text)

    def uses(self, ref: ImageRef) -> Iterable[str]:
        """Returns the image, and the text file with its boxes."""
        text_file = self._text_file(ref.uri)
        if ref.lacks_file or text_file is None:
            return (ref.uri,)
        return ref.uri, text_file

    def classes(self) -> Mapping[str, int]:
        """Returns the classes in `names`."""
        return number_classes(self.names, "source.names")

    def _announce(self, path: str, file: ImageRef) -> Iterator[Listed]:
        try:
            text = read_sibling(file.uri).decode("utf-8-sig")
            names = read_names(path, text)
            if not names and posixpath.basename(path) in NAMES_BESIDE:
                raise ValueError("`names` is missing or empty")
        except (Rejected, ValueError) as error:
            detail = f"it names no classes: {why_unread(error)}"
            if posixpath.basename(path) not in NAMES_BESIDE:
                detail += f"; if it is not about this dataset, add --set 'ignore=[\"/{path}\"]'"
            yield file.notice("fatal", "bad_annotations", detail)
            return
        shape, points = list[int](), list[str]()
        if path.endswith(YAML_ENDINGS):
            shape, points = _find_kpt_shape(text), _find_kpt_names(text, self.kpt_shape)
        if shape and not self.kpt_shape and self.lines == "auto":
            add = f"add --set 'source.kpt_shape={shape}' to read the boxes before them"
            yield file.notice(
                "fatal", "bad_annotations", f"its kpt_shape announces key points: {add}"
            )
        if points and self._point_names and not self.kpt_names:
            yield file.notice("not_stored", "names of key points", count=len(points))
        if names and not self.names:
            yield ClassNames.of(file, names)
        yield file.notice("ignored", "class_names" if names else self.other_files)


def _may_name_classes(path: str) -> bool:
    """Returns whether a file may name the classes, by its path below the input."""
    return path in NAMES_FILES or ("/" not in path and path.endswith(YAML_ENDINGS))


def _find_kpt_shape(text: str) -> list[int]:
    """Returns the key points per box, and the numbers per key point, that a data.yaml announces.

    The list is empty if it does not announce any.
    """
    found = _KEY_POINTS.search(text)
    return [int(found[1]), int(found[2])] if found else []


def _find_kpt_names(text: str, shape: Sequence[int]) -> list[str]:
    """Returns the names of the key points in a data.yaml, which has those of each class.

    The list is empty if it has none, or those of another number of points, or those of classes
    differ.

    Args:
        text: the file, or its begin.
        shape: the number of key points first; empty if there are none.
    """
    try:
        data = load_yaml_1_1(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return []
    if not isinstance(data, dict):
        return []
    found: Any = data.get("kpt_names")
    of_classes = list(found.values()) if isinstance(found, dict) else [found]
    first = next(iter(of_classes), None)
    if not isinstance(first, list) or any(names != first for names in of_classes):
        return []
    if not all(isinstance(name, str) for name in first) or len({*first}) < len(first):
        return []
    if [len(first)] != [*shape[:1]]:
        return []
    return first


def _find_task(data_yaml: bytes) -> dict[str, Any]:
    """Returns the settings that a data.yaml gives for the numbers in text files."""
    text = data_yaml.decode(errors="replace")
    if _ORIENTED.search(text):
        return {"task": "obb"}
    shape = _find_kpt_shape(text)
    settings: dict[str, Any] = {}
    if shape:
        settings["kpt_shape"] = shape
    if names := _find_kpt_names(text, shape):
        settings["kpt_names"] = names
    return settings


def _word_around_images(path: str) -> str:
    """Returns the folder below `images`, or else the one above it."""
    above, _, below = f"/{path}".rpartition("/images/")
    return below.partition("/")[0] if "/" in below else above.rpartition("/")[2]


def _recognize_places(
    sketch: FolderSketch,
) -> Iterator[tuple[dict[str, str], Collection[str], str]]:
    """Source settings, split words and a reason for each place where text files with boxes are."""
    if {"images", "labels"} <= set(sketch.top.folders):
        words = sketch.at("images").folders
        if _holds_boxes(sketch, ["labels", *(f"labels/{word}" for word in words)]):
            where = "images/*, labels/*" if words else "images, labels"
            if sketch.at("images").images:
                words = ()
            yield {}, words, f"YOLO's folders {where}"
    splits = [
        each for each in sketch.top.folders if {"images", "labels"} <= set(sketch.at(each).folders)
    ]
    is_known = any(map(split_for_word, splits)) or any(map(_may_name_classes, sketch.top.files))
    if is_known and _holds_boxes(sketch, [f"{each}/labels" for each in splits]):
        yield {}, splits, f"YOLO's folders {splits[0]}/images, {splits[0]}/labels"
    beside = [
        folder for folder in ("", *sketch.top.folders) if sketch.at(folder).beside_images(".txt")
    ]
    if _holds_boxes(sketch, beside):
        example = sketch.at(beside[0]).beside_images(".txt")[0]
        yield (
            {"text_files": "beside"},
            beside,
            f"YOLO's text files next to images, such as {example}",
        )


_LISTED_SPLIT = re.compile(r"^(train|val|test) *:(.*(?:\n[ \t-].*)*)", re.MULTILINE)
_PARTS = re.compile(r"[^\s,\[\]'\"/\\]+")


def _ask_for_splits(sketch: FolderSketch, words: Collection[str], lists: Sequence[str]) -> str:
    """Asks for the splits of folders that are not named after those of data.yaml or of lists."""
    data_yaml = sketch.first_head("", *YAML_ENDINGS).decode(errors="replace")
    texts = {match[1]: match[2] for match in _LISTED_SPLIT.finditer(data_yaml)}
    for name in lists:
        texts[posixpath.splitext(name)[0]] = sketch.heads.get(name, b"").decode(errors="replace")
    named: dict[str, str] = {}
    for word in sorted(words):
        found = {split_for_word(key) for key, text in texts.items() if word in _PARTS.findall(text)}
        if split := split_for_word(word) or (found.pop() if len(found) == 1 else ""):
            named[word] = split
    what = f"the splits of {', '.join(lists) or 'data.yaml'} are not those of folders: "
    others = [word for word in sorted(words) if word not in named]
    ways = []
    if named and not others:
        ways.append(f"add {_set('splits.from_source', named)}")
    elif named:
        shown = ", ".join(others)
        top = "{}/" if "images" not in sketch.top.folders else "images/{}/ labels/{}/"
        ignored = [
            f"/{form.format(escape_glob(word))}" for word, form in product(others, top.split())
        ]
        without = _set("ignore", [*sketch.ignored, *ignored])
        own = {**named, **{word: re.sub(r"[^\w.-]", "_", word) for word in others}}
        ways.append(f"to leave out {shown}, add {_set('splits.from_source', named)} {without}")
        ways.append(f"if it is a split of its own, add {_set('splits.from_source', own)}")
    fractions = _set("splits.fractions", {"train": 0.9, "test": 0.1})
    return what + "; ".join((*ways, f"to split otherwise, add {fractions}"))


def _set(key: str, value: Any) -> str:
    return f"--set {shlex.quote(f'{key}={write_yaml_line(value)}')}"


def _holds_boxes(sketch: FolderSketch, folders: Collection[str]) -> bool:
    """Tells whether any text file that was looked into contains a box.

    If all are blank, tells whether there are some.
    """
    texts = {path: head for path, head in sketch.heads.items() if path.endswith(".txt")}
    heads = [head for path, head in texts.items() if posixpath.dirname(path) in folders]
    lines = [head.strip().splitlines()[0] for head in heads if head.strip()]
    if not lines:
        return bool(heads)
    return any(map(_BOX.fullmatch, lines))


SOURCE = Yolo
