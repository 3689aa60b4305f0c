"""Names of classes that data know by number: from settings, or from a file with one name a line."""

import posixpath
from collections.abc import Mapping, Sequence

from recordmill import storage
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.listing.named_files import DataFile, explain_os_error

MAX_TEXT_BYTES = 16 * 2**20
"""The longest file of names that is read."""

MOST_CLASSES = 1_000_000
"""This many may be counted instead of named."""

LONGEST_NAME = 4096
"""Letters of a class, a key, a group or a path: anything longer is a text in the wrong column."""


class ClassNamesError(ValueError):
    """A file names no classes; one sentence."""


class NoClassNamesError(ClassNamesError):
    """There is no such file."""


def number_classes(classes: Sequence[str] | int) -> dict[str, int]:
    """The number of each class by its name.

    Args:
        classes: names in the order of their numbers, or how many there are, which are called 0, 1, ...

    Raises:
        ValueError: two have one name, or there are too many.
    """
    if isinstance(classes, int) and classes > MOST_CLASSES:
        raise ValueError(f"{classes:,} are more than the {MOST_CLASSES:,} that are supported here")
    names = [str(number) for number in range(classes)] if isinstance(classes, int) else classes
    numbers = {name: number for number, name in enumerate(names)}
    if len(numbers) < len(names):
        twice = next(name for number, name in enumerate(names) if numbers[name] != number)
        raise ValueError(f"two classes are named {twice!r}")
    return numbers


def read_class_names(file: DataFile, name: str) -> dict[str, int]:
    """The classes that a text file names, one a line; empty lines count for nothing.

    Args:
        file: a file of data.
        name: of the text file, relative to that file's folder.

    Raises:
        NoClassNamesError: there is no such file.
        ClassNamesError: it names no classes.
    """
    try:
        data = read_names_file(file.resolve(posixpath.join(file.folder, name)))
        classes = number_classes([line.strip() for line in data.decode().splitlines() if line.strip()])
    except FileNotFoundError:
        raise NoClassNamesError(f"there is no {name} next to it to name the classes") from None
    except (OSError, Rejected, ValueError) as error:
        raise ClassNamesError(f"{name} names no classes: {why_unread(error)}") from None
    if not classes:
        raise ClassNamesError(f"{name} names no classes: it is empty")
    return classes


def read_names_file(uri: str) -> bytes:
    """The bytes of a text file that names classes.

    Raises:
        OSError: it cannot be read.
        ValueError: it is too long.
    """
    data = storage.read_range(uri, 0, MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise ValueError(f"it has more than {MAX_TEXT_BYTES:,} bytes")
    return data


def why_unread(error: OSError | ValueError | Rejected) -> str:
    """Why a file of names cannot be used, without the path that the error may name: the sentence names the file."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8, from byte {error.start} on"
    if isinstance(error, OSError):
        return explain_os_error(error)
    return " ".join((error.detail if isinstance(error, Rejected) else str(error)).split())


def state_classes(names: Sequence[str] | int) -> Mapping[str, int]:
    """The classes that `source.class_names` states, by their numbers; none where it is empty.

    Raises:
        ValueError: they cannot be.
    """
    if isinstance(names, int) and names < 0:
        raise ValueError(f"source.class_names is {names}: give names, or how many there are")
    try:
        return number_classes(names)
    except ValueError as error:
        raise ValueError(f"source.class_names: {error}") from None
