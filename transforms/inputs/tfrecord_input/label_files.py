"""Files that name the classes that Examples only number, in the forms that writers of TFRecords leave next to them.

These are `labels.txt`, with one name per line, or `id:name` as TF-Slim writes it; `label_map.pbtxt`, the Object
Detection API's `StringIntLabelMap` (object_detection/protos/string_int_label_map.proto); and TensorFlow Datasets'
`FEATURE.labels.txt`, with one name per line.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from recordmill import storage
from recordmill.schemas.conventions import Convention
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.listing.class_names import ClassNamesError, read_names_file, why_unread
from recordmill.transforms.inputs.listing.named_files import DataFile

_NUMBERED = re.compile(r"(-?[0-9]{1,18}):(.*)")


@dataclass(slots=True)
class LabelFiles:
    """What the numbers of classes in one file of Examples mean.

    Attributes:
        file: the file of Examples.
        name: of the file of names: relative to that file's folder, or a whole path or URL; `auto`: the known
            one next to it, or in a folder above it in the input; empty: none.
        listed: the names themselves, by which no file is looked for.
    """

    file: DataFile
    name: str = "auto"
    listed: Sequence[str] = ()
    _found: dict[tuple[str, ...], tuple[str, Mapping[int, str] | Sequence[str]]] = field(default_factory=dict)

    def names_for(self, convention: Convention, first: int) -> tuple[str, Mapping[int, str]]:
        """Where names were found, and they by number; the empty string and nothing where there are none.

        Args:
            convention: of an Example: after its features of labels TensorFlow Datasets calls the file.
            first: the number of the first class, where lines say none.

        Raises:
            ClassNamesError: the file is there, or was asked for, and names no classes.
        """
        if self.listed or not self.name:
            return "source.class_names", dict(enumerate(self.listed, first))
        names = tuple(self._candidates(convention))
        if names not in self._found:
            self._found[names] = self._read(names)
        where, classes = self._found[names]
        return where, classes if isinstance(classes, Mapping) else dict(enumerate(classes, first))

    def _candidates(self, convention: Convention) -> Iterator[str]:
        if self.name != "auto":
            yield self.name
            return
        yield from ("labels.txt", "label_map.pbtxt")
        for feature in convention.features:
            if feature.field in ("label", "box_labels"):
                yield f"{feature.key.replace('/', '.')}.labels.txt"

    def _read(self, names: Sequence[str]) -> tuple[str, Mapping[int, str] | Sequence[str]]:
        folders = [self.file.folder]
        while self.name == "auto" and folders[-1]:
            folders.append(posixpath.dirname(folders[-1]))
        for folder in folders:
            for name in names:
                try:
                    return name, parse_label_file(name, read_names_file(self._uri_of(folder, name)))
                except (FileNotFoundError, NotADirectoryError):
                    continue
                except (OSError, Rejected, ValueError) as error:
                    raise ClassNamesError(f"{name} names no classes: {why_unread(error)}") from None
        if self.name != "auto":
            raise ClassNamesError(f"there is no {self.name} to name the classes (source.class_names_file)")
        return "", {}

    def _uri_of(self, folder: str, name: str) -> str:
        is_whole = not storage.is_local(name) or posixpath.isabs(name)
        return name if is_whole else self.file.resolve(posixpath.join(folder, name))


def parse_label_file(name: str, data: bytes) -> Mapping[int, str] | Sequence[str]:
    """The names of classes by number; or one after the other, where the file has no numbers.

    Args:
        name: of the file, which says what form it has.
        data: its bytes.

    Raises:
        ValueError: it names no classes, one number twice, or one name twice.
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
    if len(set(names.values())) < len(names):
        found = list(names.values())
        raise ValueError(f"two classes are named {next(name for name in found if found.count(name) > 1)!r}")
    return names


def _parse_label_map(text: str) -> list[tuple[int, str]]:
    """The numbers and names of a `StringIntLabelMap`; of a name and a display name the one for people."""
    try:
        items = text_format.Parse(text, _label_map_class()(), allow_unknown_field=True).item
    except text_format.ParseError as error:
        raise ValueError(f"it is not a label map: {error!s:.200}") from None
    return [(item.id, item.display_name or item.name) for item in items]


@cache
def _label_map_class() -> Any:
    field_type = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="recordmill/label_map.proto", package="recordmill", syntax="proto2")
    item = file.message_type.add(name="Item")
    for number, name in ((1, "name"), (2, "id"), (3, "display_name")):
        kind = field_type.TYPE_INT32 if name == "id" else field_type.TYPE_STRING
        item.field.add(name=name, number=number, label=field_type.LABEL_OPTIONAL, type=kind)
    file.message_type.add(name="LabelMap").field.add(
        name="item",
        number=1,
        label=field_type.LABEL_REPEATED,
        type=field_type.TYPE_MESSAGE,
        type_name=".recordmill.Item",
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("recordmill.LabelMap"))
