"""Labels stored apart from their images, one per image: numbers or names, and what the numbers mean."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.npy_header import LONGEST_HEADER, NpyHeader, parse_npy_header
from recordmill.transforms.inputs.arrays.place import Place

Labels = list[int] | list[str]

LONGEST_LABEL = 4096
"""Bytes of a label; numpy gives each text of an array as many as the longest has."""


def read_label_array(place: Place, name: str, count: int) -> Labels:
    """The labels of images, of an array of shape (N) or (N, 1).

    Args:
        place: of the array with its header.
        name: the array's, for messages.
        count: how many images there are; an array of another length is not read.

    Raises:
        Rejected: `bad_labels`: it holds no such labels; or `bad_packing`, `vanished`, `unreadable`.
    """
    try:
        header = parse_npy_header(place.read(0, LONGEST_HEADER))
        _check_shape(header, count)
        size = count * header.dtype.itemsize
        place.check_size(header.bytes + size, f"{header.bytes} of header and {count:,} labels")
        data = place.read(header.bytes, size, header.bytes + size)
    except Rejected as error:
        raise Rejected("list", "bad_labels", f"{name}: {error.detail}") from None
    values = np.frombuffer(data, header.dtype)
    labels: Labels = [str(value) for value in values] if header.dtype.kind == "U" else values.astype(object).tolist()
    return labels


def _check_shape(header: NpyHeader, count: int) -> None:
    if header.dtype.kind not in "iuU":
        raise Rejected("list", "bad_labels", f"values of type {header.dtype} are not labels: store integers or texts")
    if header.dtype.itemsize > LONGEST_LABEL:
        raise Rejected("list", "bad_labels", f"texts of up to {header.dtype.itemsize:,} bytes are too long for labels")
    if header.shape not in ((count,), (count, 1)):
        shown = " x ".join(map(str, header.shape)) or "a single value"
        raise Rejected("list", "bad_labels", f"an array of {shown} has no label for each of {count:,} images")


def name_labels(labels: Sequence[int] | Sequence[str], classes: Mapping[str, int]) -> tuple[list[str], set[int]]:
    """The class of each label.

    Args:
        labels: numbers or names.
        classes: numbers by class name; empty where each number is a class of its own, called as it is written.

    Returns:
        The classes' names, where an unknown number stays a number without a class;
        and the numbers that are classes of their own.
    """
    names = {number: name for name, number in classes.items()}
    numbers = {label for label in set(labels) if isinstance(label, int)}
    written = {number: names.get(number) or str(number) for number in numbers}
    return [written[label] if isinstance(label, int) else label for label in labels], set() if classes else numbers


def announce_numbers(file: ImageRef, numbers: set[int]) -> Iterator[ClassNames]:
    """What a source yields so that classes called 0, 1, ..., 10 have that order; nothing where there are none such."""
    if numbers:
        yield ClassNames.of(file, {str(number): number for number in sorted(numbers)})
