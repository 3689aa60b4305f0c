"""Checks what files are accepted: recognizes formats, limits bytes, pixels and decoding work.

The format is recognized by a file's first bytes, never by its name. Some structures make Pillow
take many small steps in Python: they are found before anything is decoded. `is_sound_png` says
whether libpng, and so TensorFlow, accepts a PNG that Pillow decodes (PNG, third edition, 5 and
11.2).
"""

import io
import re
import struct
import zlib
from collections.abc import Iterator
from itertools import islice

from PIL import Image

from recordmill.imaging.tiff_pages import reject_raw
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import FORMATS, OPTIONAL_FORMATS, ImageSettings

# Formats that can be accepted. PPM means the family: bit, gray and pixel maps, plain or binary, and
# float maps.
_ACCEPTABLE = (
    ("JPEG", re.compile(rb"\xff\xd8\xff")),
    ("PNG", re.compile(rb"\x89PNG\r\n\x1a\n")),
    ("GIF", re.compile(rb"GIF8[79]a")),
    ("WEBP", re.compile(rb"RIFF....WEBP", re.DOTALL)),
    ("BMP", re.compile(rb"BM")),
    ("TIFF", re.compile(rb"II[*+]\0|MM\0[*+]")),
    ("PPM", re.compile(rb"P[1-6f]\s|P[1-6]#")),
    # AVIF's own brand, or a general one with AVIF among the compatible brands, in the forms that
    # were seen in files.
    ("AVIF", re.compile(rb"....ftyp(?:avi[fs]|m[is]f1.{4}(?:.{4}){0,7}avi[fs])", re.DOTALL)),
    ("HEIC", re.compile(rb"....ftyp(?:hei[cfmsx]|hev[cmsx]|m[is]f1)", re.DOTALL)),
    ("JPEG2000", re.compile(rb"\0\0\0\x0cjP {2}\r\n\x87\n|\xff\x4f\xff\x51")),
)

# Formats that are never decoded and that Pillow does not recognize by their first bytes.
_OTHERS = (
    ("JPEG XL", re.compile(rb"\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n")),
    (
        "TGA",
        re.compile(rb".[\0\x01][\x01-\x03\x09-\x0b].{13}[\x01\x08\x0f\x10\x18\x20]", re.DOTALL),
    ),
    ("PDF", re.compile(rb"%PDF-")),
    ("SVG", re.compile(rb"\s*<(?:svg|\?xml)")),
    ("ZIP archive", re.compile(rb"PK\x03\x04")),
    ("gzip", re.compile(rb"\x1f\x8b")),
)
# Raw photographs in files of their own forms: see `tiff_pages` for TIFFs.
_RAW = (
    ("CR3", re.compile(rb"....ftypcrx ", re.DOTALL)),
    ("RAF", re.compile(rb"FUJIFILMCCD-RAW")),
    ("ORF", re.compile(rb"IIR[OS]|MMOR")),
    ("RW2", re.compile(rb"IIU\0")),
    ("CRW", re.compile(rb"II.{4}HEAPCCDR", re.DOTALL)),
    ("X3F", re.compile(rb"FOVb")),
    ("MRW", re.compile(rb"\0MRM")),
    ("IIQ", re.compile(rb"IIIITwaR|IIII.{0,4}waR|MMMMRaw", re.DOTALL)),
    ("ARI", re.compile(rb"ARRI[\x12\x34]")),
    ("REDCODE", re.compile(rb"....RED[12]", re.DOTALL)),
)
_UNNAMED = frozenset({*FORMATS, *OPTIONAL_FORMATS, "FLI"})
"""Those that `sniff` recognizes, and one whose two bytes are in many damaged files."""


def sniff(data: bytes) -> str | None:
    """Returns the format that the first bytes announce, or None.

    It is one of `settings.FORMATS` or `OPTIONAL_FORMATS`. The rest of the file may be anything.
    """
    for name, pattern in _ACCEPTABLE:  # for every image: a generator would take twice as long
        if pattern.match(data):
            return name
    return None


def sniff_other(data: bytes) -> str | None:
    """Returns the name of a well-known format that is never accepted, or None. For messages."""
    for name, pattern in _OTHERS:
        if pattern.match(data):
            return name
    Image.init()  # it imports the plugins of all formats, once
    start = data[:16].ljust(16, b"\0")  # as many as `Image.open` looks at
    for name, (_, recognizes) in Image.OPEN.items():
        if name not in _UNNAMED and recognizes and recognizes(start):
            return name
    return None


def sniff_raw(data: bytes) -> str | None:
    """Returns the name of a kind of raw photographs that `sniff` does not know, or None."""
    return next((name for name, pattern in _RAW if pattern.match(data)), None)


def accepted_format(data: bytes, settings: ImageSettings) -> str:
    """Returns the file's format, one of `settings.formats`.

    Raises:
        Rejected: `empty`, `too_many_bytes`, `unknown_format`, `format_not_allowed` or
            `raw_photograph`.
    """
    if not data:
        raise Rejected("decode", "empty", "no bytes")
    if len(data) > settings.max_bytes:
        raise Rejected(
            "decode", "too_many_bytes", f"{len(data):,} bytes; max_bytes is {settings.max_bytes:,}"
        )
    found = sniff(data)
    if found in settings.formats:
        return found
    if found is None and (raw := sniff_raw(data)):
        raise reject_raw(raw, "it holds the data of a camera's sensor")
    other = found or sniff_other(data)
    if other is None:
        text = re.match(rb"[ -~]{4,24}", data)  # a page, a table, a pointer of Git LFS
        shown = f" ({text[0].decode()!r})" if text else ""
        raise Rejected(
            "decode",
            "unknown_format",
            f"unknown format: the file begins with {data[:8].hex(' ')}{shown}",
        )
    remedy = ""
    if other in OPTIONAL_FORMATS:
        remedy = f"; to accept it, add {other} to images.formats"
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
        raise Rejected(
            "decode",
            "side_too_long",
            f"{width} x {height} pixels; max_side is {settings.max_side:,}",
        )
    if width * height > settings.max_pixels:
        raise Rejected(
            "decode",
            "too_many_pixels",
            f"{width} x {height} pixels; max_pixels is {settings.max_pixels:,}",
        )


# The number of reads that Pillow may make: it needs a few for each chunk of a PNG, strip of a TIFF
# or byte of a PPM's header. GIFs may have fewer, since each read of a comment copies what was read
# of it before. BMPs need one per run.
_MAX_READS = {"GIF": 2**15, "BMP": 2**22}
_MAX_READS_ELSEWHERE = 2**19

_MAX_PROFILES = 1_000  # in a PNG, which should have one; each may unpack to a megabyte
_MAX_EMPTY_BYTES = 2**24  # of a PNG's packed pixels, beyond twice what they unpack to
_MAX_PNG_PIXEL_BYTES = 8  # four channels of 16 bits
_MAX_RUN_LENGTH_PIXELS = 2**25  # of a run-length encoded BMP, which is filled pixel by pixel

# A TIFF has at most 65,500 rows in four planes, so this is also the largest number of strips.
_MAX_VALUES = 2**18
_MAX_ENTRIES = 2**16
_MAX_SHARED_BYTES = 2**26
DIRECTORIES = (34665, 34853, 40965)
"""The tags of Exif, GPS and interoperability directories."""

# By type.
_VALUE_BYTES = {
    1: 1,
    2: 1,
    3: 2,
    4: 4,
    5: 8,
    6: 1,
    7: 1,
    8: 2,
    9: 4,
    10: 8,
    11: 4,
    12: 8,
    13: 4,
    16: 8,
}


class CountedReads(io.BytesIO):
    """A file that may be read a limited number of times.

    Further reads raise Rejected `too_much_work`.
    """

    def __init__(self, data: bytes, file_format: str) -> None:
        super().__init__(data)
        self._format = file_format
        self._reads = 0
        self._max_reads = _MAX_READS.get(file_format, _MAX_READS_ELSEWHERE)

    def read(self, size: int | None = -1, /) -> bytes:
        """Reads like any file, and counts."""
        self._reads += 1
        if self._reads > self._max_reads:
            raise Rejected(
                "decode", "too_much_work", f"{self._format}: more than {self._max_reads:,} pieces"
            )
        return super().read(size)


def check_structure(data: bytes, file_format: str) -> None:
    """Rejects files that cause much work with few reads, as `too_much_work`.

    This is checked before Pillow opens them.
    """
    if file_format == "TIFF":
        check_directories(data, below=False)
    elif (
        file_format == "PNG"
        and len(data) > 2**20
        and (profiles := data.count(b"iCCP")) > _MAX_PROFILES
    ):
        raise Rejected("decode", "too_much_work", f"PNG: {profiles:,} profiles")


def check_runs(width: int, height: int) -> None:
    """Rejects a run-length encoded BMP that is too large, as `too_much_work`.

    Such images are filled pixel by pixel.
    """
    if width * height > _MAX_RUN_LENGTH_PIXELS:
        raise Rejected(
            "decode", "too_much_work", f"BMP: {width} x {height} pixels, run-length encoded"
        )


def check_packed_pixels(data: bytes, width: int, height: int) -> None:
    """Rejects a PNG whose compressed pixels are far larger than its pixels.

    Empty blocks (RFC 1951) make that possible.

    Raises:
        Rejected: `too_much_work`.
    """
    chunks = islice(find_chunks(data), _MAX_READS_ELSEWHERE)
    packed = sum(min(end, len(data)) - begin - 12 for kind, begin, end in chunks if kind == b"IDAT")
    if packed > _MAX_EMPTY_BYTES + 2 * _MAX_PNG_PIXEL_BYTES * width * height:
        raise Rejected(
            "decode", "too_much_work", f"PNG: {packed:,} bytes of {width} x {height} pixels"
        )


def check_directories(data: bytes, below: bool = True) -> None:
    """Rejects directories (TIFF 6.0, section 2) whose values share bytes.

    Such values can add up to far more than the file. A directory of Exif ends at a value outside
    the data.

    Args:
        data: a TIFF, or Exif without its prefix.
        below: whether the directories of Exif and GPS are read, too.

    Raises:
        Rejected: `too_much_work`. Damage is left to Pillow.
    """
    order = "<" if data[:2] == b"II" else ">"
    forms, place = ("I", "H", "HHII"), 4
    if b"+" in data[2:4]:
        forms, place = ("Q", "Q", "HHQQ"), 8
    start, count, entry = (struct.Struct(order + form) for form in forms)
    try:
        waiting = [start.unpack_from(data, place)[0]]
    except struct.error:
        return
    seen: set[int] = set()
    shared = entries = 0
    while waiting:
        position = waiting.pop()
        if position in seen or position + count.size > len(data):
            continue
        seen.add(position)
        first = position + count.size
        last = min(
            first + count.unpack_from(data, position)[0] * entry.size, len(data) - entry.size + 1
        )
        for place in range(first, last, entry.size):
            tag, kind, values, value = entry.unpack_from(data, place)
            size = values * _VALUE_BYTES.get(kind, 0)
            if below and size > start.size and value + size > len(data):
                break  # Pillow reads no further
            entries += 1
            shared += max(0, min(size, len(data) - value)) if size > start.size else 0
            if entries > _MAX_ENTRIES or shared > 2 * len(data) + _MAX_SHARED_BYTES:
                raise Rejected(
                    "decode", "too_much_work", "directories (TIFF, Exif) of more values than bytes"
                )
            if values > _MAX_VALUES and _VALUE_BYTES.get(kind, 1) > 1:
                raise Rejected(
                    "decode",
                    "too_much_work",
                    f"directories (TIFF, Exif): {values:,} values of tag {tag}",
                )
            if below and tag in DIRECTORIES:
                waiting.append(value)


_PNG_CHUNK = struct.Struct(">I4s")
# Width, height, depth, color type, compression, filter, interlace.
_PNG_HEADER = struct.Struct(">IIBBBBB")
_PNG_ORDER = re.compile(
    rb"IHDR(?:[^A-Z]...)*(?:PLTE(?:[^A-Z]...)*)?(?:IDAT)+(?:[^A-Z]...)*IEND", re.DOTALL
)
_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by color type
_PIECE = 2**20
_ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)


def is_sound_png(data: bytes) -> bool:
    """Tells if checksums, the chunks' order, the header and the length of the pixels are right.

    Pillow ignores such errors as long as it can go on, and leaves missing rows black.
    """
    chunks = _read_chunks(data)
    are_ordered = _PNG_ORDER.fullmatch(b"".join([kind for kind, _ in chunks]))
    if not are_ordered or len(chunks[0][1]) != _PNG_HEADER.size:
        return False
    width, height, depth, color, compression, filtering, interlace = _PNG_HEADER.unpack(
        chunks[0][1]
    )
    if compression or filtering or interlace > 1 or color not in _PNG_CHANNELS:
        return False
    unpacked = _unpacked_size([body for kind, body in chunks if kind == b"IDAT"])
    return unpacked == _size_of_rows(width, height, depth * _PNG_CHANNELS[color], bool(interlace))


def _unpacked_size(parts: list[memoryview]) -> int:
    """Returns the number of bytes that the parts unpack to; -1 if they are damaged or end early.

    They are unpacked piece by piece to save memory.
    """
    unpacking, size = zlib.decompressobj(), 0
    try:
        for part in (*parts, memoryview(b"")):
            rest, piece = bytes(part), b"."
            while (rest or piece) and not unpacking.eof:
                piece = unpacking.decompress(rest, _PIECE)
                rest, size = unpacking.unconsumed_tail, size + len(piece)
    except zlib.error:
        return -1
    if unpacking.eof:
        return size
    return -1


def find_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yields the kind of each chunk, and where it begins and ends.

    The last one may end after the data.
    """
    position = 8
    while position + _PNG_CHUNK.size <= len(data):
        length, kind = _PNG_CHUNK.unpack_from(data, position)
        begin, position = position, position + 12 + length
        yield kind, begin, position


def _read_chunks(data: bytes) -> list[tuple[bytes, memoryview]]:
    """Returns kinds and bodies of all chunks.

    Nothing if a checksum is wrong or the end is missing.
    """
    chunks: list[tuple[bytes, memoryview]] = []
    view = memoryview(data)
    for kind, begin, end in find_chunks(data):
        if view[end - 4 : end] != zlib.crc32(view[begin + 4 : end - 4]).to_bytes(4, "big"):
            break
        chunks.append((kind, view[begin + 8 : end - 4]))
        if kind == b"IEND":
            return chunks
    return []


def _size_of_rows(width: int, height: int, bits: int, interlaced: bool) -> int:
    """Returns bytes of all rows, each with its filter byte."""
    size = 0
    passes: tuple[tuple[int, int, int, int], ...] = ((0, 0, 1, 1),)
    if interlaced:
        passes = _ADAM7
    for left, top, across, down in passes:
        columns, rows = -(-max(width - left, 0) // across), -(-max(height - top, 0) // down)
        if columns:
            size += rows * (1 + (columns * bits + 7) // 8)
    return size
