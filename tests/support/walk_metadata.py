"""Finds what `images.metadata: strip` promises to remove, by a walk that shares no code with it."""

import re

_JPEG_KEPT = {*range(0xC0, 0xD0), 0xDA, 0xDB, 0xDC, 0xDD}
_PNG_KEPT = ["IHDR", "PLTE", "IDAT", "IEND", "tRNS", "acTL", "fcTL", "fdAT"]
_PNG_KEPT += ["gAMA", "cHRM", "sRGB", "iCCP", "sBIT", "cICP", "mDCV", "mDCv", "cLLI", "cLLi"]
_WEBP_KEPT = ["VP8X", "ICCP", "ANIM", "ANMF", "ALPH", "VP8 ", "VP8L"]


def leftovers(data: bytes) -> list[str]:
    """What is left in a JPEG, PNG or WebP file besides its image and color profile."""
    if data.startswith(b"\xff\xd8"):
        return _of_jpeg(data)
    return _of_png(data) if data.startswith(b"\x89PNG") else _of_webp(data)


def _of_jpeg(data: bytes) -> list[str]:
    found, at = [], _skip_fill_bytes(data, 2)
    while data[at : at + 2] != b"\xff\xd9":
        assert data[at] == 0xFF, f"no marker at {at}"
        marker, size = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        body = data[at + 4 : at + 2 + size]
        is_jfif = marker == 0xE0 and body[:5] == b"JFIF\0" and len(body) == 14
        is_adobe = marker == 0xEE and body[:5] == b"Adobe" and len(body) == 12
        is_profile = marker == 0xE2 and body[:12] == b"ICC_PROFILE\0"
        if marker not in _JPEG_KEPT and not (is_jfif or is_adobe or is_profile):
            found.append(f"{marker:02x} {body[:12]!r}")
        at += 2 + size
        if marker == 0xDA:
            following = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]").search(data, at)
            assert following is not None, f"no marker after {at}"
            at = following.start()
        at = _skip_fill_bytes(data, at)
    return found + (["tail"] if data[at + 2 :] else [])


def _skip_fill_bytes(data: bytes, at: int) -> int:
    """Where a marker begins that may have bytes of 0xFF before it."""
    while data[at + 1] == 0xFF:
        at += 1
    return at


def _of_png(data: bytes) -> list[str]:
    found, at, kind = [], 8, ""
    while kind != "IEND":
        size, kind = (
            int.from_bytes(data[at : at + 4], "big"),
            data[at + 4 : at + 8].decode("latin-1"),
        )
        found += [] if kind in _PNG_KEPT else [kind]
        at += 12 + size
        assert at <= len(data)
    return found + (["tail"] if data[at:] else [])


def _of_webp(data: bytes) -> list[str]:
    assert int.from_bytes(data[4:8], "little") == len(data) - 8
    found, at = [], 12
    while at < len(data):
        kind, size = (
            data[at : at + 4].decode("latin-1"),
            int.from_bytes(data[at + 4 : at + 8], "little"),
        )
        found += [] if kind in _WEBP_KEPT else [kind]
        if kind == "VP8X" and data[at + 8] & 0x0C:
            found.append(f"flags {data[at + 8]:02x}")
        if kind == "ANMF":
            inner = at + 24
            while inner < at + 8 + size:
                part, length = (
                    data[inner : inner + 4].decode("latin-1"),
                    int.from_bytes(data[inner + 4 : inner + 8], "little"),
                )
                found += [] if part in _WEBP_KEPT[4:] else [part]
                inner += 8 + length + length % 2
        at += 8 + size + size % 2
    return found
