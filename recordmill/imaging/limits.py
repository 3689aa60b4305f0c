"""Checks that are made before anything is decoded: size in bytes, format, size in pixels."""

import re

from recordmill.imaging.sniff import sniff, sniff_other
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import OPTIONAL_FORMATS, ImageSettings


def accepted_format(data: bytes, settings: ImageSettings) -> str:
    """The file's format, one of `settings.formats`.

    Raises:
        Rejected: `empty`, `too_many_bytes`, `unknown_format` or `format_not_allowed`.
    """
    if not data:
        raise Rejected("decode", "empty", "no bytes")
    if len(data) > settings.max_bytes:
        raise Rejected("decode", "too_many_bytes", f"{len(data):,} bytes; max_bytes is {settings.max_bytes:,}")
    found = sniff(data)
    if found in settings.formats:
        return found
    other = found or sniff_other(data)
    if other is None:
        text = re.match(rb"[ -~]{4,24}", data)  # a page, a table, a pointer of Git LFS
        shown = f" ({text[0].decode()!r})" if text else ""
        raise Rejected("decode", "unknown_format", f"unknown format: the file begins with {data[:8].hex(' ')}{shown}")
    remedy = f"; to accept it, add {other} to images.formats" if other in OPTIONAL_FORMATS else ""
    accepted = f"{other}; accepted are {', '.join(settings.formats)}{remedy}"
    raise Rejected("decode", "format_not_allowed", accepted)


def check_size(width: int, height: int, settings: ImageSettings) -> None:
    """Rejects images whose header announces too many pixels.

    Raises:
        Rejected: `bad_header`, `side_too_long` or `too_many_pixels`.
    """
    if width < 1 or height < 1:
        raise Rejected("decode", "bad_header", f"{width} x {height} pixels")
    if max(width, height) > settings.max_side:
        raise Rejected("decode", "side_too_long", f"{width} x {height} pixels; max_side is {settings.max_side:,}")
    if width * height > settings.max_pixels:
        raise Rejected("decode", "too_many_pixels", f"{width} x {height} pixels; max_pixels is {settings.max_pixels:,}")
