"""Images as arrays in files: .npy and IDX files, plain or gzipped, and members of .npz archives.

The files' headers alone locate the images: stacks of images of one size, and their labels. Nothing
is ever unpickled.
"""

import io
import math
import posixpath
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
import orjson
from numpy.lib import format as npy

from recordmill import storage
from recordmill.schemas.image_ref import (
    STORED,
    ClassNames,
    Gzip,
    ImageRef,
    Listed,
    NamedMember,
    Packing,
    Pixels,
    ZipMember,
)
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_image, read_packed_range
from recordmill.transforms.inputs.archive_members import Limits, zip_members
from recordmill.transforms.inputs.named_files import DataFile, explain_os_error, locate

LONGEST_HEADER = 12_000
"""The most bytes of a header: numpy accepts longer ones only with `max_header_size` or
`allow_pickle`."""

_NPY_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}

bad_array = partial(Rejected, "list", "bad_array")
_bad_packing = partial(Rejected, "list", "bad_packing")

_NO_LIMITS = Limits(sys.maxsize, sys.maxsize, sys.maxsize)
"""Arrays may have any size: their headers say how much to unpack."""


@dataclass(frozen=True, slots=True)
class ArrayHeader:
    """The header of an array.

    Attributes:
        shape: the array's shape.
        dtype: the type of its values; never objects.
        bytes: the length of the header: where the values begin.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bytes: int

    @property
    def total_bytes(self) -> int:
        """Bytes of the header and the values."""
        return self.bytes + math.prod(self.shape) * self.dtype.itemsize

    @property
    def described(self) -> str:
        """The shape, for people."""
        return " x ".join(map(str, self.shape)) or "a single value"


def parse_header(data: bytes) -> ArrayHeader:
    """Parses the header of a .npy file, or of an IDX file, the format of MNIST (http://yann.lecun.com/exdb/mnist/).

    An IDX file has two zero bytes, the type of the values (8: unsigned bytes), the number of
    dimensions, and each dimension as a big-endian 32-bit number. The values follow in row-major
    order.

    Args:
        data: the file's first `LONGEST_HEADER` bytes, or all of them.

    Raises:
        Rejected: `bad_array`: it is neither, or holds what is not read.
    """
    if data.startswith(npy.MAGIC_PREFIX):
        return _parse_npy_header(data)
    if len(data) < 4 or data[:3] != b"\0\0\x08" or len(data) < (header := 4 + 4 * data[3]):
        begins = data[:4].hex(" ") or "it is empty"
        raise bad_array(
            f"it does not begin like a .npy file, or an IDX file of unsigned bytes: {begins}"
        )
    return ArrayHeader(struct.unpack_from(f">{data[3]}I", data, 4), np.dtype(np.uint8), header)


def _parse_npy_header(data: bytes) -> ArrayHeader:
    """Parses the header of a .npy file.

    It rejects pickled objects, and arrays that are not in row-major order.
    """
    stream = io.BytesIO(data)
    try:
        shape, fortran_order, dtype = _NPY_READERS[npy.read_magic(stream)](stream)
    except (
        LookupError,
        ValueError,
        TypeError,
        SyntaxError,
        TokenError,
        RecursionError,
        MemoryError,
    ):
        raise bad_array(
            "its .npy header is damaged, or not of version 1.0 or 2.0: save it again"
        ) from None
    if dtype.hasobject:
        raise bad_array("it holds pickled Python objects, which are never loaded")
    if fortran_order and len(shape) > 1:
        raise bad_array("it is stored column by column: save numpy.ascontiguousarray of it")
    return ArrayHeader(shape, dtype, stream.tell())


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """The place of an array and its header: bytes that can be read by range.

    Attributes:
        uri: the file.
        packing: how the bytes are stored in the file; None if not compressed.
        offset: where they begin, in the file or in the unpacked data.
        size: their number; -1 if it is unknown before unpacking.
        version: the version of the file.
        name: the array's name, for messages.
    """

    uri: str
    packing: Packing | None = None
    offset: int = 0
    size: int = -1
    version: str = ""
    name: str = ""

    def read(self, offset: int, length: int) -> bytes:
        """Reads a range, from the start of the place; fewer bytes if it ends before.

        Raises:
            Rejected: `bad_packing`, `vanished` or `unreadable`.
        """
        begin = self.offset + offset
        if self.size >= 0:
            length = min(length, max(self.size - offset, 0))
        try:
            if not self.packing:
                return storage.read_range(self.uri, begin, length)
            return read_packed_range(self.uri, self.packing, begin, length, self.version)
        except FileNotFoundError:
            raise Rejected(
                "list", "vanished", "the file was listed, and was gone when its header was read"
            ) from None
        except PermissionError as error:
            raise Rejected("list", "unreadable", explain_os_error(error)) from None

    def read_header(self) -> ArrayHeader:
        """Reads the array's header; raises as `read` and `parse_header` do."""
        return parse_header(self.read(0, LONGEST_HEADER))

    def check_size(self, header: ArrayHeader, values: str) -> None:
        """Raises Rejected, `wrong_length`, unless the number of bytes fits the header.

        Args:
            header: the array's header.
            values: a description of its values, for the message.
        """
        expected = header.total_bytes
        found = f"{self.size:,}" if self.size >= 0 else "more or fewer"
        # If the size is not known, the last byte must exist, and none after it.
        if self.size != expected and (self.size >= 0 or len(self.read(expected - 1, 2)) != 1):
            described = f"{header.bytes:,} of header and {values} are {expected:,} bytes"
            raise Rejected("list", "wrong_length", f"{described}, and the file has {found}")


def place_of(file: ImageRef) -> ArrayPlace:
    """Returns a whole file, unpacked if its name ends in `.gz`."""
    name = file.uri.rpartition("/")[2]
    if name.endswith(".gz"):
        return ArrayPlace(file.uri, Gzip(), version=file.version, name=name)
    return ArrayPlace(file.uri, size=file.size, version=file.version, name=name)


def find_labels(file: DataFile, name: str) -> ArrayPlace | None:
    """Finds a label file, plain or gzipped, in the folder of a file of images.

    Returns None if there is none.

    Args:
        file: the file of images.
        name: the name of the label file, with or without `.gz`.

    Raises:
        Rejected: `bad_labels`: it is a link that points outside the input, not a file, or cannot be
            read.
    """
    plain = posixpath.join(file.folder, name.removesuffix(".gz"))
    for candidate in (plain, f"{plain}.gz"):
        try:
            place = place_of(ImageRef("", *locate(file.root, candidate)))
            place.read(0, 1)
            return place
        except Rejected as error:
            if error.reason != "vanished":
                raise Rejected(
                    "list", "bad_labels", f"{posixpath.basename(candidate)}: {error.detail}"
                ) from None
    return None


def find_members(file: ImageRef) -> dict[str, ArrayPlace]:
    """Returns the place of each array in a .npz file, by its name without `.npy`.

    The names in the archive end in `.npy`. An array that is not compressed is in the archive
    itself.

    Raises:
        Rejected: `bad_packing`: it, or one of its arrays, cannot be read.
    """
    places = {}
    try:
        with storage.open_to_read(file.uri) as stream:
            members = list(zip_members(stream, _NO_LIMITS))
    except Rejected as error:
        raise _bad_packing(error.detail) from None
    for member in members:
        name = member.name.removesuffix(".npy")
        if name == member.name:
            continue
        if not isinstance(member.packing, ZipMember):
            raise _bad_packing(f"{member.name}: {member.detail}")
        is_stored = member.packing.method == STORED
        packing, offset = (
            (None, member.packing.start) if is_stored else (NamedMember(member.name), 0)
        )
        places[name] = ArrayPlace(file.uri, packing, offset, member.length, file.version, name)
    return places


Order = Literal["interleaved", "planar"]

SHAPE_FIELD = "array_shape"
"""The field of `ImageRef.features` with the image's shape, for `read_stacked_image`; it is not a
feature."""

LONGEST_LABEL = 4096
"""The most bytes of a label; numpy stores every text of an array with the length of the longest."""


def list_stack(
    file: ImageRef,
    key: str,
    images: ArrayPlace,
    labels: ArrayPlace | None,
    word: str,
    order: Order,
    classes: Mapping[str, int],
) -> Iterator[Listed]:
    """Yields a reference for each image of an array, after the classes that the labels number.

    Args:
        file: the file that contains the images.
        key: the array's name in the dataset; the images' keys are `key#0`, `key#1`, ...
        images: the place of the images.
        labels: the place of their labels; None if there are none.
        word: the source's split word.
        order: the place of the channels.
        classes: numbers by class name; empty if each number is its own class.

    Raises:
        Rejected: `bad_array`, `wrong_length`, `bad_packing` or `bad_labels`.
    """
    header = images.read_header()
    check_images(header, order)
    images.check_size(header, header.described)
    count, *shape = header.shape
    names = None
    if labels is not None:
        found = read_label_array(labels, count)
        names = name_labels(found, classes)
        # Classes named 0, 1, ..., 10 keep that order.
        if not classes and found and isinstance(found[0], int):
            yield ClassNames.of(file, {str(number): number for number in sorted(set(found))})
    features = orjson.dumps({SHAPE_FIELD: shape}).decode()
    common = {
        "packing": str(images.packing or ""),
        "split": file.split or word,
        "features": features,
    }
    yield from list_ranges(
        file, key, images.offset + header.bytes, math.prod(shape), count, names, **common
    )


def check_images(header: ArrayHeader, order: Order) -> None:
    """Raises Rejected, `bad_array`, unless an array contains images.

    The shape is N x height x width, or has 1 or 3 channels too: last, or with `planar` before the
    height.
    """
    shape = header.shape
    at, where = -1, "height x width x channels"
    if order == "planar":
        at, where = 1, "channels x height x width"
    has_images = len(shape) == 3 or (len(shape) == 4 and shape[at] in (1, 3))
    if header.dtype != np.uint8 or not has_images or min(shape) < 1:
        usual = f"uint8, N x height x width, or N x {where} (1 or 3)"
        raise bad_array(f"{header.dtype}, {header.described} is not an array of images: {usual}")


def list_ranges(
    file: ImageRef,
    key: str,
    begin: int,
    length: int,
    count: int,
    labels: Sequence[str] | None = None,
    **common: Any,
) -> Iterator[ImageRef]:
    """Yields a reference for each of `count` consecutive ranges of one length, from `begin` on."""
    refer = partial(
        ImageRef, uri=file.uri, size=file.size, version=file.version, length=length, **common
    )
    for index in range(count):
        yield refer(
            key=f"{key}#{index}",
            offset=begin + index * length,
            label="" if labels is None else labels[index],
        )


def read_label_array(place: ArrayPlace, count: int) -> list[int] | list[str]:
    """Reads the labels of `count` images from an array of shape (N) or (N, 1).

    Raises:
        Rejected: `bad_labels`: its type or shape is wrong, or it cannot be read.
    """
    try:
        header = place.read_header()
        is_label = header.dtype.kind in "iuU" and header.dtype.itemsize <= LONGEST_LABEL
        if not is_label or header.shape not in ((count,), (count, 1)):
            wanted = (
                f"an integer, or a text of at most {LONGEST_LABEL:,} bytes, for each of "
                f"{count:,} images"
            )
            raise bad_array(
                f"{header.dtype}, {header.described} is not an array of labels: {wanted}"
            )
        place.check_size(header, f"{count:,} labels")
        data = place.read(header.bytes, header.total_bytes - header.bytes)
    except Rejected as error:
        raise Rejected("list", "bad_labels", f"{place.name}: {error.detail}") from None
    labels: list[int] | list[str] = np.frombuffer(data, header.dtype).tolist()
    return labels


def name_labels(labels: list[int] | list[str], classes: Mapping[str, int]) -> list[str]:
    """Maps labels to the names of their classes; a number without a class stays a number.

    Args:
        labels: numbers or names.
        classes: numbers by class name; empty if each number is its own class, named as it is
            written.
    """
    names: dict[int | str, str] = {number: name for name, number in classes.items()}
    names |= {label: str(label) for label in labels if label not in names}
    return [names[label] for label in labels]


def read_stacked_image(ref: ImageRef, max_bytes: int, order: Order) -> tuple[bytes, Pixels]:
    """Reads one image: its bytes, and its pixels as height, width, channels.

    Raises:
        Rejected: see `read_image`.
    """
    data = read_image(ref, max_bytes)
    shape = orjson.loads(ref.features)[SHAPE_FIELD]
    if order == "planar" and len(shape) == 3:
        channels, height, width = shape
        return data, np.ndarray((height, width, channels), np.uint8, interleave(data, channels))
    return data, np.ndarray(shape if len(shape) == 3 else (*shape, 1), np.uint8, data)


def interleave(planes: bytes, channels: int) -> bytes | bytearray:
    """Reorders consecutive planes so that each pixel's channels are together.

    For 32 x 32 x 3, it takes half the time of copying numpy's transposed view: 3.4 of 6.4 us,
    including the array.
    """
    if channels == 1:
        return planes
    length = len(planes) // channels
    pixels = bytearray(len(planes))
    for channel in range(channels):
        pixels[channel::channels] = planes[channel * length : (channel + 1) * length]
    return pixels
