"""Names of classes that are numbers in the data, from settings or from a file.

A text file has one name per line. Writers of TFRecords leave one of these next to them: `labels.txt`, with one name per
line, or `id:name` as TF-Slim writes it; `label_map.pbtxt`, the Object Detection API's `StringIntLabelMap`
(object_detection/protos/string_int_label_map.proto); or TensorFlow Datasets' `FEATURE.labels.txt`.
"""

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from typing import Any, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from recordmill import storage
from recordmill.schemas.conventions import Convention
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.named_files import DataFile, explain_os_error

MAX_TEXT_BYTES = 16 * 2**20
"""The longest file of names that is read."""

MOST_CLASSES = 1_000_000
"""The most classes that settings may count instead of naming."""

LONGEST_NAME = 4096
"""Characters of a class, a key, a group or a path: anything longer comes from the wrong column."""

T = TypeVar("T")

_NUMBERED = re.compile(r"(-?[0-9]{1,18}):(.*)")


class ClassNamesError(ValueError):
    """A file names no classes; the message is one sentence."""


class NoClassNamesError(ClassNamesError):
    """There is no such file."""


def number_classes(classes: Sequence[str] | int) -> dict[str, int]:
    """Maps the name of each class to its number.

    Args:
        classes: names in the order of their numbers, or the number of classes, named 0, 1, ...

    Raises:
        ValueError: two classes have one name, or the number is negative or above `MOST_CLASSES`.
    """
    if isinstance(classes, int) and not 0 <= classes <= MOST_CLASSES:
        raise ValueError(f"there cannot be {classes:,} classes: give names, or a number up to {MOST_CLASSES:,}")
    names = [str(number) for number in range(classes)] if isinstance(classes, int) else classes
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        twice = next(name for number, name in enumerate(names) if numbers[name] != number)
        raise ValueError(f"two classes are named {twice!r}")
    return numbers


def read_class_names(file: DataFile, name: str) -> dict[str, int]:
    """Reads the classes from a text file with one name per line; blank lines at the end are ignored.

    Args:
        file: a file of data.
        name: the name of the text file, in the same folder.

    Raises:
        NoClassNamesError: there is no such file.
        ClassNamesError: it names no classes.
    """
    return _parse_names_file(file, file.folder, name, _number_lines)


def _number_lines(data: bytes) -> dict[str, int]:
    names = split_names(data.decode("utf-8-sig"))
    if not names:
        raise ValueError("it is empty")
    return number_classes(names)


def split_names(text: str) -> list[str]:
    """The class names in a text, one per line; blank lines at the end are ignored.

    Raises:
        ValueError: a name follows a blank line, and a class's number is that of its line.
    """
    names = [line.strip() for line in text.rstrip().splitlines()]
    if "" in names:
        raise ValueError(f"line {names.index('') + 1} is blank, and a name follows: remove the line, or name the class")
    return names


def _parse_names_file(file: DataFile, folder: str, name: str, parse: Callable[[bytes], T]) -> T:
    """Parses a file of class names, given by its full path or URL, or by its name in a folder of the input.

    Raises:
        NoClassNamesError: there is no such file.
        ClassNamesError: it cannot be read, is too long, or `parse` raises ValueError.
    """
    is_whole = not storage.is_local(name) or posixpath.isabs(name)
    try:
        uri = name if is_whole else file.resolve(posixpath.join(folder, name))
        data = storage.read_range(uri, 0, MAX_TEXT_BYTES + 1)
        if len(data) > MAX_TEXT_BYTES:
            raise ValueError(f"it has more than {MAX_TEXT_BYTES:,} bytes")
        return parse(data)
    except (FileNotFoundError, NotADirectoryError):
        raise NoClassNamesError(f"there is no {name} to name the classes (source.class_names_file)") from None
    except (OSError, Rejected, ValueError) as error:
        raise ClassNamesError(f"{name} names no classes: {why_unread(error)}") from None


def why_unread(error: OSError | ValueError | Rejected) -> str:
    """Why a file of names cannot be used, without the path in the error: the caller's sentence names the file."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8, from byte {error.start} on"
    if isinstance(error, OSError):
        return explain_os_error(error)
    return " ".join((error.detail if isinstance(error, Rejected) else str(error)).split())


def number_class_names(names: Sequence[str] | int, key: str = "source.class_names") -> Mapping[str, int]:
    """Numbers the classes in a setting; errors name its key.

    Args:
        names: the setting's value; it may be empty.
        key: the YAML key that it was written under, for the message.

    Raises:
        ValueError: as `number_classes`.
    """
    try:
        return number_classes(names)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


@dataclass(slots=True)
class LabelFiles:
    """The names of the numbered classes in one file of Examples.

    Attributes:
        file: the file of Examples.
        name: the file of names: a path relative to that file's folder, or a full path or URL; `auto`: a known name next
            to the Examples, or in a folder above them in the input; empty: none.
        listed: the names themselves; no file is searched for then.
    """

    file: DataFile
    name: str = "auto"
    listed: Sequence[str] = ()
    _found: dict[tuple[tuple[str, ...], int], tuple[str, Mapping[int, str]]] = field(default_factory=dict)

    def names_for(self, convention: Convention, first: int) -> tuple[str, Mapping[int, str]]:
        """Where names were found, and the names by number; both empty if there are none.

        Args:
            convention: the Examples' convention, whose label features TensorFlow Datasets names its file after.
            first: the number of the first class, if the file has no numbers.

        Raises:
            ClassNamesError: the file exists, or a setting names it, but it names no classes.
        """
        names: tuple[str, ...] = (self.name,)
        if self.name == "auto" and not self.listed:
            keys = (each.key for each in convention.example_features if each.field in ("label", "box_labels"))
            names = "labels.txt", "label_map.pbtxt", *(f"{key.replace('/', '.')}.labels.txt" for key in keys)
        if (names, first) not in self._found:  # this is called for each Example
            where, classes = self._read(names)
            numbered = classes if isinstance(classes, Mapping) else dict(enumerate(classes, first))
            self._found[names, first] = where, numbered
        return self._found[names, first]

    def _read(self, names: Sequence[str]) -> tuple[str, Mapping[int, str] | Sequence[str]]:
        if self.listed or not self.name:
            return "source.class_names", self.listed
        folders = [self.file.folder]
        while self.name == "auto" and folders[-1]:
            folders.append(posixpath.dirname(folders[-1]))
        for folder, name in product(folders, names):
            try:
                return name, _parse_names_file(self.file, folder, name, partial(parse_label_file, name))
            except NoClassNamesError:
                if self.name != "auto":
                    raise
        return "", {}


def parse_label_file(name: str, data: bytes) -> Mapping[int, str] | Sequence[str]:
    """Parses class names: by number, or as a list if the file has no numbers.

    Args:
        name: the file's name, which decides the format.
        data: the file's bytes.

    Raises:
        ValueError: it names no classes, or has a number or a name twice.
    """
    text = data.decode("utf-8-sig")
    if name.endswith(".pbtxt"):
        return _by_number(_parse_label_map(text))
    lines = [line.strip() for line in text.rstrip().splitlines()]
    numbered = [_NUMBERED.fullmatch(line) for line in lines if line]
    if numbered and all(numbered):
        return _by_number([(int(match[1]), match[2].strip()) for match in numbered if match])
    _by_number(list(enumerate(lines, start=1)))
    return lines


def _by_number(pairs: Sequence[tuple[int, str]]) -> Mapping[int, str]:
    if not pairs:
        raise ValueError("it is empty")
    names: dict[int, str] = {}
    for number, name in pairs:
        if not name:
            raise ValueError(f"class {number} has no name")
        if number in names:
            raise ValueError(f"it names class {number} twice")
        names[number] = name
    number_classes(list(names.values()))  # raises if two classes have one name
    return names


def _parse_label_map(text: str) -> list[tuple[int, str]]:
    """The numbers and names of a `StringIntLabelMap`; a display name is preferred to a name."""
    try:
        items = text_format.Parse(text, _label_map_class()(), allow_unknown_field=True).item
    except text_format.ParseError as error:
        raise ValueError(f"it is not a label map: {error!s:.200}") from None
    return [(item.id, item.display_name or item.name) for item in items]


@cache
def _label_map_class() -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="recordmill/label_map.proto", package="recordmill", syntax="proto2")
    item, label_map = file.message_type.add(name="Item"), file.message_type.add(name="LabelMap")
    types = {"name": kinds.TYPE_STRING, "id": kinds.TYPE_INT32, "display_name": kinds.TYPE_STRING}
    for number, (name, kind) in enumerate(types.items(), start=1):
        item.field.add(name=name, number=number, label=kinds.LABEL_OPTIONAL, type=kind)
    items = {"label": kinds.LABEL_REPEATED, "type": kinds.TYPE_MESSAGE, "type_name": ".recordmill.Item"}
    label_map.field.add(name="item", number=1, **items)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("recordmill.LabelMap"))
