"""The members of a zip archive: from its directory, each checked against its own header."""

import stat
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

from recordmill.schemas.packing import DEFLATED, STORED, ZipMember
from recordmill.storage.unpacking import PIECE_BYTES
from recordmill.transforms.inputs.archives.member import BoundedStream, Limits, Member, bad_archive

_LOCAL_HEADER = struct.Struct("<4s2xHH16xHH")  # signature, flags, method, lengths of name and extra field
_ENCRYPTED = 0x1
_UTF8_NAME = 0x800
_DAMAGES = (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError)
"""What `zipfile` is known to raise on directories that say nonsense, or need more than it knows."""


def zip_members(stream: Any, limits: Limits) -> Iterator[Member]:
    """Yields the members of a zip archive, sorted by name; folders are none.

    Where no name has a `/`, a backslash separates folders, as old writers on Windows have it.

    Args:
        stream: the archive.
        limits: members that are over them are refused.

    Raises:
        Rejected: the directory cannot be read, and so no member.
    """
    bounded = BoundedStream(stream)
    try:
        archive = zipfile.ZipFile(bounded)
    except _DAMAGES as error:
        raise bad_archive(f"it is not a zip archive, or its end is missing ({error})") from None
    infos, end, members = archive.infolist(), archive.start_dir, []
    separator = "/" if any("/" in info.orig_filename for info in infos) else "\\"
    for info in sorted(infos, key=lambda info: -info.header_offset):  # from the end: each ends where the next begins
        name = _name_of(info).replace(separator, "/")
        if not name.endswith("/"):
            members.append(_member(name, info, bounded, end, limits))
        end = min(end, info.header_offset)
    yield from sorted(members, key=lambda member: member.name)


def _member(name: str, info: zipfile.ZipInfo, stream: BoundedStream, end: int, limits: Limits) -> Member:
    if detail := _refusal(info, limits):
        return Member(name, reason="bad_member", detail=detail)
    start = data_start(info, stream)
    if start < 0 or start + info.compress_size > end:
        detail = "its header is damaged" if start < 0 else "it does not end before the next begins"
        return Member(name, reason="bad_member", detail=detail)
    packing = ZipMember(info.compress_type, start, info.compress_size, info.file_size, info.CRC)
    return Member(name, 0, info.file_size, packing)


def _name_of(info: zipfile.ZipInfo) -> str:
    """The name as its bytes read in UTF-8, flagged or not; what is not UTF-8 keeps its bytes as surrogates."""
    name = info.orig_filename
    if info.flag_bits & _UTF8_NAME or name.isascii():
        return name
    return name.encode("cp437").decode("utf-8", "surrogateescape")


def _refusal(info: zipfile.ZipInfo, limits: Limits) -> str:
    if info.flag_bits & _ENCRYPTED:
        return "it is encrypted"
    mode = stat.S_IFMT(info.external_attr >> 16)
    if mode and mode != stat.S_IFREG:
        return "it is a symbolic link" if mode == stat.S_IFLNK else "it is a device or another special file"
    if info.compress_type not in (STORED, DEFLATED):
        return f"it is packed by method {info.compress_type}, and only stored and deflated members are read"
    if large := limits.refuse_large(info.file_size):
        return large
    if info.file_size > PIECE_BYTES and info.file_size > limits.ratio * info.compress_size:
        return f"it would unpack to more than {limits.ratio} times its size, the limit of source.max_ratio"
    if info.compress_size > 2 * info.file_size + PIECE_BYTES:
        return "it is larger packed than unpacked"
    return ""


def data_start(info: zipfile.ZipInfo, stream: Any) -> int:
    """Where a member's data begin, after its own header; -1 where that is not what the directory says."""
    if info.header_offset < 0:
        return -1
    stream.seek(info.header_offset)
    header = stream.read(_LOCAL_HEADER.size)
    if len(header) < _LOCAL_HEADER.size:
        return -1
    signature, _, method, name_length, extra_length = _LOCAL_HEADER.unpack(header)
    if signature != b"PK\x03\x04" or method != info.compress_type:
        return -1
    return info.header_offset + _LOCAL_HEADER.size + int(name_length) + int(extra_length)
