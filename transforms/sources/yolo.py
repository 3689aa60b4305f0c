"""YOLO: beside each image a text file, one box a line: class number, middle, width and height in parts of the image."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import orjson
import yaml

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.converting.boxes import boxes_of
from recordmill.transforms.listing.inside_root import root_of, spelled_path
from recordmill.transforms.listing.read_beside import NoFileError, read_beside, rejected_ref
from recordmill.transforms.rejection import RejectedImage
from recordmill.transforms.sources.source import Source, announce_classes

NAMES_FILES = ("data.yaml", "classes.txt")
"""Files directly in the input that name the classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yolo(Source):
    """The source `yolo`.

    Images lie below a folder `images`, their text files at the same place below `labels` (`train/images/1.jpg` and
    `train/labels/1.txt`, or `images/train/1.jpg` and `labels/train/1.txt`). An image without a text file has no boxes.
    The folder beside or below `images` is the word that `splits.from_source` may use.

    Attributes:
        names: the classes in the order of their numbers; empty: those of `data.yaml` or `classes.txt` in the input.
    """

    names: tuple[str, ...] = ()

    files: ClassVar[tuple[str, ...]] = ("images/", *(f"/{name}" for name in NAMES_FILES))
    other_files: ClassVar[str] = "read_only_with_images"
    shared_files: ClassVar[tuple[str, ...]] = NAMES_FILES

    def annotations(self) -> Mapping[str, str]:
        """Boxes."""
        return {"boxes": ""}

    def refer(self, path: str, file: ImageRef) -> Iterator[ImageRef]:
        """One image a file, with its boxes; or the classes."""
        if path in NAMES_FILES:
            yield from self._announce(path, file)
            return
        folders = path.split("/")
        if "images" not in folders[:-1]:
            detail = "the file lies below no folder called images"
            yield file.but(status="rejected", reason="no_class", detail=detail)
            return
        at = len(folders) - 1 - folders[::-1].index("images")
        word = folders[at + 1] if at + 2 < len(folders) else folders[at - 1] if at else ""
        beside = _labels_path(spelled_path(file.uri, path), at)
        try:
            fields = read_boxes(read_beside(f"{root_of(file.uri, path)}/{beside}").decode())
        except NoFileError:
            fields = read_boxes("")
        except RejectedImage as rejected:
            yield rejected_ref(file, rejected)
            return
        except ValueError as error:
            why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
            detail = f"{_labels_path(path, at)}: {why}"
            yield file.but(status="rejected", reason="bad_annotations", detail=detail)
            return
        yield file.but(split=word, features=orjson.dumps(fields).decode())

    def classes(self) -> Mapping[str, int]:
        """Those of `names`."""
        return {name: number for number, name in enumerate(self.names)}

    def _announce(self, path: str, file: ImageRef) -> Iterator[ImageRef]:
        try:
            names = read_names(path, read_beside(file.uri).decode())
        except (RejectedImage, ValueError) as error:
            why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error
            yield file.but(status="fatal", reason="bad_annotations", detail=f"it names no classes: {why}")
            return
        if not self.names:
            yield announce_classes(file, names)
        yield file.but(status="ignored", reason="class_names")


def _labels_path(path: str, at: int) -> str:
    """Where the boxes of an image are, whose folder of that number is `images`."""
    folders = path.split("/")
    return posixpath.splitext("/".join((*folders[:at], "labels", *folders[at + 1 :])))[0] + ".txt"


def read_names(path: str, text: str) -> dict[str, int]:
    """The classes by name, from `data.yaml` (`names:` as a list, or by number) or from lines.

    Raises:
        ValueError: there are none, or two have one name.
    """
    if not path.endswith(".yaml"):
        names: Any = [line.strip() for line in text.splitlines() if line.strip()]
    else:
        try:
            data = yaml.safe_load(text)
        except (yaml.YAMLError, RecursionError) as error:
            raise ValueError(" ".join(str(error).split())) from None
        names = data.get("names") if isinstance(data, dict) else None
    if not isinstance(names, list | dict | None):
        raise ValueError(f"`names` is no list: {names!r:.60}")
    numbered = names if isinstance(names, dict) else dict(enumerate(names or ()))
    for number, name in numbered.items():  # aliases can make of a few lines a list of any size, that must not be shown
        if not isinstance(number, int) or not isinstance(name, str | int | float) or name == "":
            raise ValueError(f"class {number!r:.60} of `names` is no text under a number")
    classes = {str(name): number for number, name in numbered.items()}
    if not classes or len(classes) < len(numbered):
        raise ValueError("two classes have one name" if classes else "`names` is missing or empty")
    return classes


def read_boxes(text: str) -> dict[str, Any]:
    """The boxes of one text file, as `transforms.converting.boxes.boxes_of` gives them.

    Raises:
        ValueError: a line has not five numbers; the message names it.
    """
    boxes, labels = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words:
            continue
        if len(words) != 5 or not re.fullmatch("[0-9]+", words[0]):
            raise ValueError(f"line {number} is not a class number and four numbers")
        try:
            x, y, width, height = map(float, words[1:])
        except ValueError:
            raise ValueError(f"line {number} is not a class number and four numbers") from None
        boxes.append((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
        labels.append(int(words[0]))
    return boxes_of(boxes, labels, fractions=True)


SOURCE = Yolo
