"""A member of an archive, and whether it may be read."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

from recordmill.schemas.packing import Packing
from recordmill.schemas.rejection import Rejected

MAX_RECORD_BYTES = 256 * 2**20
"""The longest piece of an archive that is read while its members are listed: a zip's whole directory."""

_DRIVE = re.compile(r"[A-Za-z]:[/\\]|\\\\")


bad_archive = partial(Rejected, "list", "bad_archive")
"""The archive, or what follows in it, cannot be read."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive.

    Attributes:
        name: its path there, `/`-separated, NFC.
        offset: first byte of its contents in the archive, or in what `packing` makes of it.
        length: bytes of its contents.
        packing: how they are stored in the archive; None if as they are.
        reason: why it is not read, as in `schemas.rejection.REASONS`; the empty string if it is.
        detail: the same for people.
    """

    name: str
    offset: int = 0
    length: int = 0
    packing: Packing | None = None
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an archive may hold.

    Attributes:
        member_bytes: bytes of a member, unpacked.
        members: how many are read.
        ratio: how many times its size what is packed may become.
    """

    member_bytes: int
    members: int
    ratio: int

    def refuse_large(self, length: int) -> str:
        """Why a member of this length is refused; the empty string if it is not."""
        if length <= self.member_bytes:
            return ""
        return f"it has {length} bytes, where source.max_member_bytes allows {self.member_bytes}"


def check_names(members: Iterable[Member]) -> Iterator[Member]:
    """Gives members the names that keys are made of, and refuses those whose names cannot be.

    A name is only compared and printed, never opened. Names that leave the folder are refused all the same: their
    author means harm.
    """
    seen: set[int] = set()
    for number, member in enumerate(members, start=1):
        shown = member.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        if shown != member.name:
            yield Member(shown, reason="bad_name", detail="the member's name is not UTF-8")
            continue
        parts = [part for part in unicodedata.normalize("NFC", shown).split("/") if part not in ("", ".")]
        name, fault = "/".join(parts), _fault_of(shown, parts)
        if hash(name) in seen:
            fault = fault or "the archive holds this name twice"
            name = f"{name} (member {number})"  # rejected under a key of its own
        seen.add(hash(name))
        if member.reason or not fault:
            yield member if member.name == name else replace(member, name=name)
        else:
            yield Member(name, reason="bad_member", detail=fault)


def _fault_of(name: str, parts: list[str]) -> str:
    if not parts:
        return "it has no name"
    if name.startswith("/") or _DRIVE.match(name):
        return "its name is absolute"
    if ".." in parts:
        return "its name has .. in it"
    return "its name has a zero byte in it" if "\0" in name else ""


class BoundedStream:
    """A stream that reads at most `MAX_RECORD_BYTES` at once, whatever an archive's header claims."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, count: int = -1) -> bytes:
        """The next bytes; fewer only at the end.

        Raises:
            Rejected: more are asked for than any header needs.
        """
        if count > MAX_RECORD_BYTES:
            raise bad_archive(f"a header claims {count} bytes")
        data = self._stream.read(MAX_RECORD_BYTES + 1 if count < 0 else count)
        if len(data) > MAX_RECORD_BYTES:
            raise bad_archive("a header claims the whole file")
        return data

    def seek(self, place: int, whence: int = 0) -> int:
        """Goes to a place.

        Raises:
            Rejected: there is no such place.
        """
        try:
            self._stream.seek(place, whence)
        except (ValueError, OverflowError) as error:
            raise bad_archive(f"a header names an impossible place ({error})") from None
        return self._stream.tell()

    def tell(self) -> int:
        """Where it is."""
        return self._stream.tell()
