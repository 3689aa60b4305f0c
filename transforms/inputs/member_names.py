"""The names of archives' members: in which encoding they are, and what to do if that is unknown.

The names of a zip are UTF-8 if it says so. Otherwise, they are in the encoding of the machine that
made it, which the zip does not name: Windows has another one for each group of languages.
"""

import codecs
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence

from recordmill.schemas.errors import SettingError
from recordmill.schemas.formatting import say_count

SETTING = "source.names_encoding"

_UTF8_NAME = 0x800
_UNICODE_PATH = 0x7075
"""The extra field with a name in UTF-8, and the CRC-32 of the name that it stands for (APPNOTE.TXT,
4.6.9)."""

_UNIX_LIKE = frozenset({3, 19})
"""Systems that made a zip (APPNOTE.TXT, 4.4.2) and write names in UTF-8 without saying so: Unix and
macOS."""

_LIKELY = ("cp866", "cp850", "gbk", "shift_jis", "euc_kr")
"""Encodings to show a name in: Windows in Russian, in western Europe, in China, Japan and Korea."""

_MOST_SHOWN = 60


def check_encoding(name: str) -> None:
    """Checks the setting, which may be empty.

    Raises:
        ValueError: Python knows no such encoding of text, or it does not contain ASCII.
    """
    try:
        is_usable = not name or "a/1.jpg".encode(name) == b"a/1.jpg"
        if name:
            codecs.lookup(name)
    except (LookupError, ValueError):
        is_usable = False
    if not is_usable:
        raise SettingError(
            SETTING,
            f"is {name!r}: write an encoding that Python knows and that contains ASCII, such as "
            f"{', '.join(_LIKELY)} or utf-8",
        )


def decode_names(infos: Sequence[zipfile.ZipInfo], encoding: str = "") -> list[str]:
    """Returns the names of a zip's members.

    Names of an unknown encoding have surrogates in place of all bytes that are not ASCII, as
    Python's file names do. If one name is not UTF-8, no name is taken for it: some would pass, as
    other letters.

    Args:
        infos: the members.
        encoding: of names that are not marked as UTF-8; empty: they are UTF-8 if Unix or macOS
            wrote them.
    """
    found = [_marked_name(info) for info in infos]
    raw = [
        b"" if name is not None else info.orig_filename.encode("cp437")
        for name, info in zip(found, infos, strict=True)
    ]
    trusted = encoding or "utf-8"
    if not encoding and not all(
        data.isascii() or (info.create_system in _UNIX_LIKE and _can_decode(data, "utf-8"))
        for data, info in zip(raw, infos, strict=True)
    ):
        trusted = "ascii"
    return [
        name if name is not None else decode_name(data, trusted)
        for name, data in zip(found, raw, strict=True)
    ]


def decode_name(data: bytes, encoding: str) -> str:
    """Decodes a name; if that is impossible, bytes that are not ASCII become surrogates."""
    if _can_decode(data, encoding):
        return data.decode(encoding)
    return data.decode("ascii", "surrogateescape")


def _can_decode(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except ValueError:
        return False
    return True


def _marked_name(info: zipfile.ZipInfo) -> str | None:
    """Returns the name that is marked as UTF-8; None if none is."""
    if info.flag_bits & _UTF8_NAME:
        return info.orig_filename
    name = info.orig_filename.encode("cp437")
    for kind, data in _extra_fields(info.extra):
        if kind == _UNICODE_PATH and len(data) > 5 and data[0] == 1:
            (checksum,) = struct.unpack_from("<I", data, 1)
            if checksum == zlib.crc32(name) and _can_decode(data[5:], "utf-8"):
                return data[5:].decode()
    return None


def _extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<HH", extra)
        yield kind, extra[4 : 4 + length]
        extra = extra[4 + length :]


def explain_names(count: int, first: str, encoding: str) -> str:
    """Returns the sentence about names that could not be decoded.

    Args:
        count: how many.
        first: the first of them, as `decode_name` returns it.
        encoding: the setting; empty: UTF-8 was expected.
    """
    data = first.encode("utf-8", "surrogateescape")
    shown = [
        f"{text[:_MOST_SHOWN]!r} in {each}"
        for each in _LIKELY
        if each != encoding and (text := _plausible_text(data, each))
    ]
    what = f"{say_count(count, 'name', 'is')} not {encoding or 'marked as UTF-8'}"
    example = f", such as one that is {', '.join(shown)}" if shown else ""
    return f"{what}{example}: set {SETTING} to the encoding in which they are right"


def _plausible_text(data: bytes, encoding: str) -> str | None:
    """Returns the name in an encoding; None if it cannot be, or would have control characters."""
    if not _can_decode(data, encoding):
        return None
    text = data.decode(encoding)
    if any(unicodedata.category(letter) == "Cc" for letter in text):
        return None
    return text
