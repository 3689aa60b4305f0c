"""How an image's bytes are stored in their file.

`ImageRef.packing` holds the text of one of these types: it is short, costs nothing while files are listed, and is part
of plan ids. It is parsed when bytes are read.
"""

from dataclasses import dataclass
from functools import lru_cache

STORED, DEFLATED = 0, 8
"""The supported methods of zip archives (APPNOTE.TXT, 4.4.5)."""


@dataclass(frozen=True, slots=True)
class Gzip:
    """The file is a gzip stream; ranges refer to its unpacked content.

    Attributes:
        has_checksums: whether the content has checksums of its own, as records of TFRecord files have: a wrong checksum
            of the whole file is ignored then.
    """

    has_checksums: bool = False

    def __str__(self) -> str:
        return "gzip_records" if self.has_checksums else "gzip"


@dataclass(frozen=True, slots=True)
class NamedMember:
    """A range of the unpacked content of a zip archive's member."""

    name: str

    def __str__(self) -> str:
        return f"member:{self.name}"


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A whole member of a zip archive, by its position.

    Attributes:
        method: `STORED` or `DEFLATED`.
        start: first byte of its data in the archive, after its header.
        packed: compressed size in bytes.
        size: unpacked size in bytes.
        crc: CRC-32 of the unpacked bytes.
    """

    method: int
    start: int
    packed: int
    size: int
    crc: int

    def __str__(self) -> str:
        return f"zip:{self.method}:{self.start}:{self.packed}:{self.size}:{self.crc:08x}"


@dataclass(frozen=True, slots=True)
class TextCell:
    """Base64 in a row of CSV or JSON lines; the range is that of the row.

    Attributes:
        kind: `csv`, `tsv` or `jsonl`.
        codec: the row's encoding.
        column: the number of the cell in its row, from 0; -1 in JSON lines.
        is_gzip: whether the range is in the unpacked content of a gzip file.
    """

    kind: str
    codec: str
    column: int = -1
    is_gzip: bool = False

    def __str__(self) -> str:
        column = f" {self.column}" if self.column >= 0 else ""
        return f"{self.kind} {self.codec}{column}{' gzip' if self.is_gzip else ''}"


@dataclass(frozen=True, slots=True)
class ParquetCell:
    """A cell of a Parquet file; `offset` is the number of its row, from 0."""

    def __str__(self) -> str:
        return "parquet"


Packing = Gzip | NamedMember | ZipMember | TextCell | ParquetCell


@lru_cache(1024)  # the rows of a table share one
def parse_packing(text: str) -> Packing:
    """The packing that has this text.

    Raises:
        ValueError: there is none.
    """
    if text.startswith("member:"):
        return NamedMember(text.removeprefix("member:"))
    match text.replace(":", " ").split(" "):
        case ["gzip" | "gzip_records" as kind]:
            return Gzip(kind == "gzip_records")
        case ["zip", method, start, packed, size, crc]:
            return ZipMember(int(method), int(start), int(packed), int(size), int(crc, 16))
        case ["csv" | "tsv" as kind, codec, column, *packed] if packed in ([], ["gzip"]):
            return TextCell(kind, codec, int(column), bool(packed))
        case ["jsonl", codec, *packed] if packed in ([], ["gzip"]):
            return TextCell("jsonl", codec, is_gzip=bool(packed))
        case ["parquet"]:
            return ParquetCell()
    raise ValueError(f"there is no packing {text!r}")
