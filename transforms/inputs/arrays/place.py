"""Where an array is: a file, or what unpacking makes of it, from some byte on."""

import posixpath
from dataclasses import dataclass

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.packing import Gzip, Packing
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_packed_range, read_packed_start
from recordmill.transforms.inputs.listing.named_files import DataFile, NotAFileError, size_and_version


@dataclass(frozen=True, slots=True)
class Place:
    """Bytes that can be read by range.

    Attributes:
        uri: the file.
        packing: how they are stored in the file; None if it is not compressed.
        offset: where they begin in the file, or in what unpacking gives.
        size: how many there are; -1 where that is only known once they are unpacked.
        version: of the file.
    """

    uri: str
    packing: Packing | None = None
    offset: int = 0
    size: int = -1
    version: str = ""

    def read(self, offset: int, length: int, expected: int | None = None) -> bytes:
        """A range, from here on; fewer bytes where there are no more.

        Args:
            offset: of the first byte.
            length: bytes.
            expected: how many there should be in all: no more are unpacked; None: no more than are asked for.

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
            raise Rejected("list", "unreadable", (error.strerror or "permission denied").lower()) from None

    def check_size(self, expected: int, described: str) -> None:
        """Raises Rejected, `wrong_length`, unless there are as many bytes as expected.

        Args:
            expected: bytes.
            described: what they are, for the message.
        """
        if self.size >= 0:
            found, wrong = f"{self.size:,}", self.size != expected
        else:  # the last byte is there, and none after it
            wrong = len(self.read(expected - 1, 2, expected)) != 1
            found = "fewer"
        if wrong:
            raise Rejected("list", "wrong_length", f"{described} are {expected:,} bytes, and the file has {found}")


def place_of(file: ImageRef) -> Place:
    """A whole file: what is in it, if its name ends in `.gz`."""
    packed = file.uri.endswith(".gz")
    return Place(file.uri, Gzip() if packed else None, size=-1 if packed else file.size, version=file.version)


def find_beside(file: DataFile, name: str) -> Place:
    """The file of that name in a file's folder, plain or gzipped.

    Args:
        file: the file.
        name: of the other one, with or without `.gz`.

    Raises:
        FileNotFoundError: it is not there; its message is the name.
        Rejected: `outside_root`, it is a link that leads out of the input; `not_a_file`; or `unreadable`.
    """
    plain = posixpath.join(file.folder, name.removesuffix(".gz"))
    for candidate in (plain, f"{plain}.gz"):
        try:
            uri = file.resolve(candidate)
            size, version = size_and_version(uri)
            place = place_of(ImageRef("", uri, size, version))
            place.read(0, 1)
        except NotAFileError as error:
            raise Rejected("list", "not_a_file", f"{posixpath.basename(candidate)}: {error.strerror}") from None
        except FileNotFoundError:
            continue
        except Rejected as error:
            if error.reason != "vanished":
                raise
        else:
            return place
    raise FileNotFoundError(name)
