"""Arrays in files: .npy and IDX files, plain or gzipped, and members of .npz archives. Nothing is ever unpickled."""

import io
import math
import posixpath
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from tokenize import TokenError
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.packing import Gzip, NamedMember, Packing
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_packed_range, read_packed_start
from recordmill.transforms.inputs.archives.members import data_start
from recordmill.transforms.inputs.listing.named_files import DataFile, explain_os_error, locate

LONGEST_HEADER = 12_000
"""The most bytes of a header: numpy accepts longer ones only with `max_header_size` or `allow_pickle`."""

IDX_UNSIGNED_BYTES = 8

_NPY_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}

bad_array = partial(Rejected, "list", "bad_array")
_bad_packing = partial(Rejected, "list", "bad_packing")


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


ParseHeader = Callable[[bytes], ArrayHeader]


def parse_idx_header(data: bytes) -> ArrayHeader:
    """Parses the header of an IDX file, the format of MNIST (http://yann.lecun.com/exdb/mnist/).

    It has two zero bytes, the type of the values (8: unsigned bytes), the number of dimensions, and each dimension as a
    big-endian 32-bit number. The values follow in row-major order.

    Args:
        data: the file's first `LONGEST_HEADER` bytes, or all of them.

    Raises:
        Rejected: `bad_array`: it is not an IDX file of unsigned bytes.
    """
    if len(data) < 4 or data[:2] != b"\0\0":
        raise bad_array(f"no IDX file begins with {data[:4].hex(' ') or 'nothing'}")
    if data[2] != IDX_UNSIGNED_BYTES:
        raise bad_array(f"its values are of type {data[2]:#04x}, not unsigned bytes (0x08)")
    header = 4 + 4 * data[3]
    if len(data) < header:
        raise bad_array("it ends inside its header")
    return ArrayHeader(struct.unpack_from(f">{data[3]}I", data, 4), np.dtype(np.uint8), header)


def parse_npy_header(data: bytes) -> ArrayHeader:
    """Parses the header of a .npy file, with the same arguments and errors.

    Also rejects pickled objects, and arrays that are not in row-major order.
    """
    stream = io.BytesIO(data)
    try:
        version = npy.read_magic(stream)
        if version not in _NPY_READERS:
            raise ValueError(f"version {version[0]}.{version[1]} is not known")
        shape, fortran_order, dtype = _NPY_READERS[version](stream)
    except (ValueError, TypeError, SyntaxError, TokenError, RecursionError, MemoryError) as error:
        # numpy's messages may contain memory addresses, but rejections must be the same on every machine
        why = re.sub(r" at 0x[0-9a-f]+", "", " ".join(str(error).split()))[:200]
        raise bad_array(f"not a .npy header: {why}") from None
    if dtype.hasobject:
        raise bad_array("it holds pickled Python objects, which are never loaded")
    if fortran_order and len(shape) > 1:
        raise bad_array("it is stored column by column: save numpy.ascontiguousarray of it")
    return ArrayHeader(shape, dtype, stream.tell())


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an array and its header: bytes that can be read by range.

    Attributes:
        uri: the file.
        packing: how the bytes are stored in the file; None if not compressed.
        offset: where they begin, in the file or in the unpacked data.
        size: their number; -1 if it is unknown before unpacking.
        version: the version of the file.
    """

    uri: str
    packing: Packing | None = None
    offset: int = 0
    size: int = -1
    version: str = ""

    def read(self, offset: int, length: int, expected: int | None = None) -> bytes:
        """Reads a range of the place; fewer bytes if it ends before.

        Args:
            offset: the first byte, from the start of the place.
            length: the number of bytes.
            expected: bytes of the whole place, and the most to unpack; None: only those asked for.

        Raises:
            Rejected: `bad_packing`, `vanished` or `unreadable`.
        """
        begin = self.offset + offset
        if self.size >= 0:
            length = min(length, max(self.size - offset, 0))
        try:
            if not self.packing:
                return storage.read_range(self.uri, begin, length)
            if expected is None:
                return read_packed_start(self.uri, self.packing, begin + length)[begin:]
            return read_packed_range(self.uri, self.packing, begin, length, self.version, self.offset + expected)
        except FileNotFoundError:
            raise Rejected("list", "vanished", "the file was listed, and was gone when its header was read") from None
        except PermissionError as error:
            raise Rejected("list", "unreadable", explain_os_error(error)) from None

    def read_header(self, parse: ParseHeader) -> ArrayHeader:
        """Reads the array's header; raises as `read` and `parse` do."""
        return parse(self.read(0, LONGEST_HEADER))

    def check_size(self, header: ArrayHeader, values: str) -> None:
        """Raises Rejected, `wrong_length`, unless the number of bytes fits the header.

        Args:
            header: the array's header.
            values: a description of its values, for the message.
        """
        expected = header.total_bytes
        if self.size >= 0:
            found, wrong = f"{self.size:,}", self.size != expected
        else:  # the last byte must exist, and none after it
            wrong = len(self.read(expected - 1, 2, expected)) != 1
            found = "fewer"
        if wrong:
            described = f"{header.bytes:,} of header and {values} are {expected:,} bytes"
            raise Rejected("list", "wrong_length", f"{described}, and the file has {found}")


def place_of(file: ImageRef) -> Place:
    """A whole file, unpacked if its name ends in `.gz`."""
    packed = file.uri.endswith(".gz")
    return Place(file.uri, Gzip() if packed else None, size=-1 if packed else file.size, version=file.version)


def find_labels(file: DataFile, name: str) -> Place:
    """Finds a label file in the folder of a file of images, plain or gzipped.

    Args:
        file: the file of images.
        name: the name of the label file, with or without `.gz`.

    Raises:
        FileNotFoundError: it does not exist; the message is the name.
        Rejected: `bad_labels`: it is a link that leads out of the input, not a file, or cannot be read.
    """
    plain = posixpath.join(file.folder, name.removesuffix(".gz"))
    for candidate in (plain, f"{plain}.gz"):
        try:
            place = place_of(ImageRef("", *locate(file.root, candidate)))
            place.read(0, 1)
        except Rejected as error:
            if error.reason == "vanished":
                continue
            raise Rejected("list", "bad_labels", f"{posixpath.basename(candidate)}: {error.detail}") from None
        return place
    raise FileNotFoundError(name)


def find_members(file: ImageRef) -> dict[str, Place]:
    """Finds the place of each array in a .npz file, by its name without the `.npy` that it has in the archive.

    Raises:
        Rejected: `bad_packing`: it is not a readable archive.
    """
    try:
        with storage.open_to_read(file.uri) as stream, zipfile.ZipFile(stream) as archive:
            found = [member for member in archive.infolist() if member.filename.endswith(".npy")]
            return {member.filename.removesuffix(".npy"): _place_of_member(member, file, stream) for member in found}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise _bad_packing(f"not a zip archive, as .npz files are: {error}") from None


def _place_of_member(member: zipfile.ZipInfo, file: ImageRef, stream: BinaryIO) -> Place:
    """The place of a member; in the archive itself if it is not compressed."""
    if member.flag_bits & 1:
        raise _bad_packing(f"{member.filename} is encrypted")
    if member.header_offset < 0:  # the archive's start is missing
        raise _bad_packing(f"{member.filename} begins before the archive does")
    if member.compress_type != zipfile.ZIP_STORED:
        return Place(file.uri, NamedMember(member.filename), 0, member.file_size, file.version)
    begin = data_start(member, stream)
    if begin < 0:
        raise _bad_packing(f"{member.filename} is not where the archive says that it is")
    if begin + member.file_size > file.size:
        raise _bad_packing(f"{member.filename} ends after the end of the archive")
    return Place(file.uri, None, begin, member.file_size, file.version)
