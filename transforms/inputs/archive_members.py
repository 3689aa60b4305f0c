"""The members of tar and zip archives: where each is, and whether it may be read.

In a tar archive, they are found from header to header, without reading the contents between them;
in a zip archive, in its directory, and each is checked against its own header.
"""

import re
import stat
import struct
import tarfile
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

from recordmill import storage
from recordmill.schemas.image_ref import DEFLATED, STORED, Gzip, ImageRef, Packing, ZipMember
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import PIECE_BYTES, unpack
from recordmill.transforms.inputs.member_names import decode_names, explain_names
from recordmill.transforms.inputs.patterns import escape_path, normal_path

MAX_RECORD_BYTES = 256 * 2**20
"""The longest piece that is read while members are listed: a zip's whole directory."""

_ABSOLUTE = re.compile(r"/|[A-Za-z]:[/\\]|\\\\")
_BAD_NAME = "its name is empty, absolute or repeated, or has .. or a zero byte in it"
_SPECIAL_FILE = "it is a link, a device, a sparse file or another special file"

bad_archive = partial(Rejected, "list", "bad_archive")
"""The archive, or the rest of it, cannot be read."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive.

    Attributes:
        name: its path in the archive, `/`-separated, NFC.
        offset: the first byte of its contents, in the archive or in what `packing` unpacks.
        length: bytes of its contents.
        packing: how the contents are stored in the archive; None if unchanged.
        reason: why it is not read, as in `schemas.rejection.REASONS`; empty if it is.
        detail: the same in words.
    """

    name: str
    offset: int = 0
    length: int = 0
    packing: Packing | None = None
    reason: str = ""
    detail: str = ""

    def place_in(self, archive: ImageRef) -> ImageRef:
        """Returns a reference to its contents, made from a reference to the archive."""
        return archive.replace(
            offset=self.offset, length=self.length, packing=str(self.packing or "")
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """Upper limits for an archive.

    Attributes:
        member_bytes: bytes of a member, unpacked.
        members: members that are read.
        ratio: unpacked bytes per packed byte.
    """

    member_bytes: int
    members: int
    ratio: int

    def refuse_large(self, length: int) -> str | None:
        """Returns why a member of this length is refused; None if it is not."""
        if length <= self.member_bytes:
            return None
        return f"it has {length} bytes, where source.max_member_bytes allows {self.member_bytes}"


def check_member_names(members: Iterable[Member]) -> Iterator[Member]:
    """Normalizes members' names, from which keys are made, and refuses members with invalid names.

    Names are only compared and printed, never opened. Those that lead out of the folder are refused
    all the same: they are malicious.
    """
    seen: set[int] = set()
    for number, member in enumerate(members, start=1):
        shown = escape_path(member.name)
        if shown != member.name:
            yield Member(shown, reason="bad_name", detail="the member's name is not UTF-8")
            continue
        parts = [
            part for part in unicodedata.normalize("NFC", shown).split("/") if part not in ("", ".")
        ]
        name = "/".join(parts)
        is_bad = not parts or ".." in parts or "\0" in name or bool(_ABSOLUTE.match(shown))
        if hash(name) in seen:
            is_bad = True
            name = f"{name} (member {number})"  # rejected under its own key
        seen.add(hash(name))
        if is_bad and not member.reason:
            yield Member(name, reason="bad_member", detail=_BAD_NAME)
        else:
            yield member if member.name == name else replace(member, name=name)


class BoundedStream:
    """A stream that reads at most `MAX_RECORD_BYTES` at once, whatever the archive claims."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.seek = stream.seek
        self.tell = stream.tell

    def read(self, count: int = -1) -> bytes:
        """Returns the next bytes; fewer only at the end.

        Raises:
            Rejected: there are more than any header needs.
        """
        data = self._stream.read(count if 0 <= count <= MAX_RECORD_BYTES else MAX_RECORD_BYTES + 1)
        if len(data) > MAX_RECORD_BYTES:
            raise bad_archive(f"a header claims more than {MAX_RECORD_BYTES:,} bytes")
        return data


_BLOCK = 512
_TAR_DAMAGES = (tarfile.TarError, ValueError, OverflowError, RecursionError)
"""Errors that `tarfile` is known to raise on invalid headers; chained long names recurse."""


def tar_members(
    stream: Any,
    size: int,
    limits: Limits,
    packing: Packing | None = None,
    names_encoding: str = "",
) -> Iterator[Member]:
    """Yields the members of a tar archive in its order, without folders.

    Args:
        stream: the archive, unpacked.
        size: its number of bytes.
        limits: members that exceed them are refused.
        packing: the members' `packing`.
        names_encoding: the encoding of names outside pax headers; empty: UTF-8.

    Raises:
        Rejected: the rest cannot be read; raised after the members before it.
    """
    bounded: Any = BoundedStream(stream)
    last = -1
    try:
        encoding = names_encoding or "utf-8"
        tar = tarfile.TarFile(
            fileobj=bounded, mode="r", encoding=encoding, errors="surrogateescape"
        )
        while (info := tar.next()) is not None:
            vars(tar)["members"] = []  # otherwise it keeps every header
            if info.offset <= last:
                raise bad_archive(f"the header at byte {info.offset} points backwards")
            last = info.offset
            if info.isreg() and info.offset_data + info.size > size:
                raise bad_archive(f"the archive ends inside {info.name!r:.200}")
            if info.isdir():
                continue
            is_special = info.issparse() or not info.isreg()
            if fault := _SPECIAL_FILE if is_special else limits.refuse_large(info.size):
                yield Member(info.name, reason="bad_member", detail=fault)
            else:
                yield Member(info.name, info.offset_data, info.size, packing)
        bounded.seek(tar.offset)  # `tarfile` accepts anything but a header there
        end = bounded.read(_BLOCK)
    except _TAR_DAMAGES as error:
        where = (
            f"the header after byte {last} cannot be read"
            if last >= 0
            else "it is not a tar archive"
        )
        raise bad_archive(f"{where} ({error})") from None
    if not end:
        raise bad_archive("it has no end mark: it may have been cut after its last member")
    if end.strip(b"\0"):
        raise bad_archive(f"the header at byte {tar.offset} is damaged")


_LOCAL_HEADER = struct.Struct("<4s4xH16xHH")  # signature, method, lengths of name and extra field
_ENCRYPTED = 0x1
_ZIP_DAMAGES = (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError)
"""Errors that `zipfile` is known to raise on invalid directories, or unsupported features."""


def zip_members(stream: Any, limits: Limits, names_encoding: str = "") -> Iterator[Member]:
    """Yields the members of a zip archive, sorted by name, without folders.

    If no name has a `/`, backslashes separate folders, as in archives from old Windows programs.

    Args:
        stream: the archive.
        limits: members that exceed them are refused.
        names_encoding: as for `decode_names`.

    Raises:
        Rejected: the directory, and therefore any member, cannot be read.
    """
    bounded = BoundedStream(stream)
    try:
        archive = zipfile.ZipFile(bounded)
    except _ZIP_DAMAGES as error:
        raise bad_archive(f"it is not a zip archive, or its end is missing ({error})") from None
    infos, end, members = archive.infolist(), archive.start_dir, []
    names = decode_names(infos, names_encoding)
    separator = "/" if any("/" in name for name in names) else "\\"
    # Backwards: each must end before the next begins.
    for info, decoded in sorted(
        zip(infos, names, strict=True), key=lambda pair: -pair[0].header_offset
    ):
        name = decoded.replace(separator, "/")
        if not name.endswith("/"):
            members.append(_zip_member(name, info, bounded, end, limits))
        end = min(end, info.header_offset)
    yield from sorted(members, key=lambda member: member.name)


def _zip_member(
    name: str, info: zipfile.ZipInfo, stream: BoundedStream, end: int, limits: Limits
) -> Member:
    if detail := _refusal(info, limits):
        return Member(name, reason="bad_member", detail=detail)
    start = _data_start(info, stream) if 0 <= info.header_offset < end else -1
    if start < 0 or start + info.compress_size > end:
        detail = "its header is damaged, or it does not end before the next begins"
        return Member(name, reason="bad_member", detail=detail)
    packing = ZipMember(info.compress_type, start, info.compress_size, info.file_size, info.CRC)
    return Member(name, 0, info.file_size, packing)


def _refusal(info: zipfile.ZipInfo, limits: Limits) -> str | None:
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        return _SPECIAL_FILE
    if info.flag_bits & _ENCRYPTED or info.compress_type not in (STORED, DEFLATED):
        return "it is encrypted, or packed by another method than stored and deflated"
    if info.file_size > PIECE_BYTES and info.file_size > limits.ratio * info.compress_size:
        return (
            f"it would unpack to more than {limits.ratio} times its size, the limit of "
            "source.max_ratio"
        )
    return limits.refuse_large(max(info.file_size, info.compress_size))


def _data_start(info: zipfile.ZipInfo, stream: Any) -> int:
    """Returns where a member's data begin, or -1 if its header contradicts the directory.

    The data follow the member's own header.
    """
    stream.seek(info.header_offset)
    header = stream.read(_LOCAL_HEADER.size)
    if len(header) == _LOCAL_HEADER.size:
        signature, method, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        if (signature, method) == (b"PK\x03\x04", info.compress_type):
            return info.header_offset + _LOCAL_HEADER.size + int(name_length) + int(extra_length)
    return -1


class UnknownNamesError(Rejected):
    """Names of members are in another encoding."""


def list_members(file: ImageRef, limits: Limits, names_encoding: str = "") -> Iterator[Member]:
    """Yields an archive's members without folders, reading only headers unless a tar is packed.

    A packed tar is unpacked once in this process, because nothing in it can be found otherwise.

    Args:
        file: the archive.
        limits: on its contents.
        names_encoding: the encoding of names that are not marked as UTF-8; see `decode_names`.

    Raises:
        UnknownNamesError: some names are in another encoding; raised after all members.
        Rejected: it, or the rest of it, cannot be read.
        OSError: the store does not return it.
    """
    unknown: list[str] = []
    members = check_member_names(_note_unknown(_members(file, limits, names_encoding), unknown))
    yield from islice(members, limits.members)
    if next(members, None) is not None:
        raise bad_archive(f"it has more members than source.max_members allows ({limits.members})")
    if unknown:
        detail = explain_names(len(unknown), min(unknown), names_encoding)
        raise UnknownNamesError("list", "bad_archive", detail)


def _note_unknown(members: Iterable[Member], unknown: list[str]) -> Iterator[Member]:
    """Yields the members, and appends names that could not be decoded."""
    for member in members:
        if normal_path(member.name) is None:
            unknown.append(member.name)
        yield member


def _members(file: ImageRef, limits: Limits, names_encoding: str) -> Iterator[Member]:
    start = storage.read_range(file.uri, 0, 4)
    if start.startswith(b"\x1f\x8b"):
        unpacked = unpack(file.uri, Gzip(), file.version, limits.ratio)
        if unpacked.fault and unpacked.is_doubtful:  # it is unknown which member is affected
            raise bad_archive(unpacked.fault)
        with open(unpacked.path, "rb") as stream:
            try:
                yield from tar_members(stream, unpacked.size, limits, Gzip(), names_encoding)
            except Rejected as damage:  # after the end of a complete tar, nothing is lost
                raise bad_archive(unpacked.fault or damage.detail) from None
        return
    with storage.open_to_read(file.uri) as stream:
        if start.startswith(b"PK") or file.uri.lower().endswith(".zip"):
            yield from zip_members(stream, limits, names_encoding)
        else:
            yield from tar_members(stream, file.size, limits, None, names_encoding)
