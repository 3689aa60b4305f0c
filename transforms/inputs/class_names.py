"""Names of classes that are numbers in the data, from settings or from a file.

A text file has one name per line. Writers of TFRecords leave one of these next to them:
`labels.txt`, with one name per line, or `id:name` as TF-Slim writes it; TensorFlow Datasets'
`FEATURE.labels.txt`; or `label_map.pbtxt`, the Object Detection API's.
"""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from recordmill import storage
from recordmill.schemas.conventions import Convention
from recordmill.schemas.errors import SettingError
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.label_map_file import parse_label_map
from recordmill.transforms.inputs.named_files import (
    DataFile,
    NoFileError,
    read_sibling,
    resolve_inside,
)

MOST_CLASSES = 1_000_000
"""The most classes that settings may count instead of naming."""

NO_CLASS_NUMBER = -1
"""The number that stands for no class where classes are numbered, as in Hugging Face's
`ClassLabel` and TensorFlow Datasets."""

LONGEST_NAME = 4096
"""Characters of a class, a key, a group or a path: anything longer comes from the wrong column."""

_NUMBERED = re.compile(r"(-?[0-9]{1,18}):(.*)")


class ClassNamesError(ValueError):
    """A file names no classes; the message is one sentence."""


class NoClassNamesError(ClassNamesError):
    """There is no such file."""


def number_classes(classes: Sequence[str] | int, key: str = "") -> dict[str, int]:
    """Maps the name of each class to its number.

    Args:
        classes: names in the order of their numbers, or the number of classes, named 0, 1, ...
        key: the YAML key that they were written under, for the message.

    Raises:
        SettingError: two classes have one name, or the number is negative or above `MOST_CLASSES`.
    """
    if isinstance(classes, int) and not 0 <= classes <= MOST_CLASSES:
        raise SettingError(
            key,
            f": there cannot be {classes:,} classes: give names, or a number up to "
            f"{MOST_CLASSES:,}",
        )
    names = [str(number) for number in range(classes)] if isinstance(classes, int) else classes
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        twice = next(name for number, name in enumerate(names) if numbers[name] != number)
        raise SettingError(key, f": two classes are named {twice!r}")
    return numbers


def read_class_names(file: DataFile, folder: str, name: str, first: int = 0) -> dict[int, str]:
    """Reads the names of classes by number from a text file.

    Args:
        file: a file of data.
        folder: a folder of the input.
        name: the name of the text file in that folder, or its full path or URL.
        first: the number of the first class, if the file has no numbers.

    Raises:
        NoClassNamesError: there is no such file.
        ClassNamesError: it names no classes.
    """
    is_whole = not storage.is_local(name) or posixpath.isabs(name)
    try:
        uri = name if is_whole else resolve_inside(file.root, posixpath.join(folder, name))
        text = read_sibling(uri).decode("utf-8-sig")
        if not name.endswith(".pbtxt"):
            return parse_class_names(text, first)
        names = parse_label_map(text)
        number_classes([*names.values()])  # raises if two classes have one name
        return names
    except NoFileError:
        raise NoClassNamesError(
            f"there is no {name} to name the classes (source.class_names_file)"
        ) from None
    except (Rejected, ValueError) as error:
        raise ClassNamesError(f"{name} names no classes: {why_unread(error)}") from None


def parse_class_names(text: str, first: int) -> dict[int, str]:
    """Returns class names by number from a text of lines that are all `name` or all `id:name`.

    Raises:
        ValueError: there are no names, one is empty, or a number or a name is there twice.
    """
    lines = split_names(text)
    matches = [match for line in lines if (match := _NUMBERED.fullmatch(line))]
    if len(matches) < len(lines):
        matches = []
    names = {int(match[1]): match[2].strip() for match in matches} or dict(enumerate(lines, first))
    if "" in names.values() or not len(lines) == len(names) > 0:
        raise ValueError("it has no names, or a class without a name, or a number twice")
    number_classes([*names.values()])  # raises if two classes have one name
    return names


def split_names(text: str) -> list[str]:
    """Returns the class names in a text, one per line; blank lines at the end are ignored.

    Raises:
        ValueError: a name follows a blank line, and a class's number is that of its line.
    """
    names = [line.strip() for line in text.rstrip().splitlines()]
    if "" in names:
        raise ValueError(
            f"line {names.index('') + 1} is blank, and a name follows: remove the line, or name "
            "the class"
        )
    return names


def why_unread(error: ValueError | Rejected) -> str:
    """Returns why a file cannot be used, on one line: the caller's sentence names the file."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8, from byte {error.start} on"
    return " ".join((error.detail if isinstance(error, Rejected) else str(error)).split())


@dataclass(slots=True)
class LabelFiles:
    """The names of the numbered classes in one file of Examples.

    Attributes:
        file: the file of Examples.
        name: the file of names: a path relative to that file's folder, or a full path or URL;
            `auto`: a known name next to the Examples, or in a folder above them in the input;
            empty: none.
        listed: the names themselves; no file is searched for then.
    """

    file: DataFile
    name: str = "auto"
    listed: Sequence[str] = ()
    _found: dict[tuple[tuple[str, ...], int], tuple[str, Mapping[int, str]]] = field(
        default_factory=dict
    )

    def names_for(self, convention: Convention, first: int) -> tuple[str, Mapping[int, str]]:
        """Returns where names were found, and the names by number; both empty if there are none.

        Args:
            convention: the Examples' convention, whose label features TensorFlow Datasets names its
                file after.
            first: the number of the first class, if the file has no numbers.

        Raises:
            ClassNamesError: the file exists, or a setting names it, but it names no classes.
        """
        names: tuple[str, ...] = (self.name,)
        if self.name == "auto" and not self.listed:
            keys = (
                each.key
                for each in convention.example_features
                if each.field in ("label", "box_labels")
            )
            names = (
                "labels.txt",
                "label_map.pbtxt",
                *(f"{key.replace('/', '.')}.labels.txt" for key in keys),
            )
        if (names, first) not in self._found:  # this is called for each Example
            self._found[names, first] = self._read(names, first)
        return self._found[names, first]

    def _read(self, names: Sequence[str], first: int) -> tuple[str, Mapping[int, str]]:
        if self.listed or not self.name:
            return "source.class_names", dict(enumerate(self.listed, first))
        folders = [self.file.folder]
        while self.name == "auto" and folders[-1]:
            folders.append(posixpath.dirname(folders[-1]))
        for folder, name in product(folders, names):
            try:
                return name, read_class_names(self.file, folder, name, first)
            except NoClassNamesError:
                if self.name != "auto":
                    raise
        return "", {}
