"""The members of a tar archive: from header to header, over the contents without reading them."""

import tarfile
from collections.abc import Iterator
from typing import Any

from recordmill.schemas.packing import Packing
from recordmill.transforms.inputs.archives.member import BoundedStream, Limits, Member, bad_archive

_BLOCK = 512
_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}
_DAMAGES = (tarfile.TarError, ValueError, OverflowError, RecursionError)
"""What `tarfile` is known to raise on headers that say nonsense; chained long names nest."""


def tar_members(
    stream: Any, size: int, limits: Limits, packing: Packing | None = None, fault: str = ""
) -> Iterator[Member]:
    """Yields the members of a tar archive, in its order; folders are none.

    Args:
        stream: the archive, not packed.
        size: bytes of it.
        limits: members that are over them are refused.
        packing: what members' `packing` says.
        fault: why the stream ends where it does, if that is not the archive's end.

    Raises:
        Rejected: what follows cannot be read; after the members before it.
    """
    bounded: Any = BoundedStream(stream)
    last = -1
    try:
        tar = tarfile.TarFile(fileobj=bounded, mode="r", encoding="utf-8", errors="surrogateescape")
    except _DAMAGES as error:
        raise bad_archive(fault or f"it is not a tar archive ({error})") from None
    while (info := _next(tar, fault)) is not None:
        vars(tar)["members"] = []  # it would keep every header
        if info.offset <= last:
            raise bad_archive(f"the header at byte {info.offset} leads back")
        last = info.offset
        if info.isdir():
            continue
        if info.offset_data + info.size > size and info.isreg():
            raise bad_archive(fault or f"the archive ends inside {info.name!r:.200}")
        yield _member(info, limits, packing)
    if fault:
        raise bad_archive(fault)
    _check_end(tar, bounded)


def _next(tar: tarfile.TarFile, fault: str) -> tarfile.TarInfo | None:
    try:
        return tar.next()
    except _DAMAGES as error:
        detail = str(error) or type(error).__name__
        raise bad_archive(fault or f"the header at byte {tar.offset} cannot be read ({detail})") from None


def _check_end(tar: tarfile.TarFile, stream: BoundedStream) -> None:
    """`tarfile` takes anything but a header for the end; only zeros are one."""
    stream.seek(tar.offset)
    block = stream.read(_BLOCK)
    if not block:
        raise bad_archive("it has no end mark: it may have been cut after its last member")
    if block.strip(b"\0"):
        raise bad_archive(f"the header at byte {tar.offset} is damaged")


def _member(info: tarfile.TarInfo, limits: Limits, packing: Packing | None) -> Member:
    kind = _KINDS.get(info.type, "" if info.isreg() else "of an unknown kind")
    if info.issparse():
        kind = "a sparse file"
    if fault := f"it is {kind}" if kind else limits.refuse_large(info.size):
        return Member(info.name, reason="bad_member", detail=fault)
    return Member(info.name, info.offset_data, info.size, packing)
