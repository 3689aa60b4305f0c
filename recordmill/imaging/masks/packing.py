"""Packs the outlines of an image's objects for its reference, and unpacks them.

The same outlines give the same bytes, and come back exactly as they were. Coordinates with few
decimals are stored as integers: the differences between the corners of a polygon, in
variable-length numbers, take a third of their text.
"""

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from recordmill.imaging.masks.outline import (
    Bitmap,
    FaultyOutline,
    FileIds,
    FileOutline,
    Joined,
    MaskFile,
    NumberedObject,
    Outline,
    OutlineFault,
    Polygons,
    Runs,
)

_HEADER = struct.Struct("<III")  # the bytes of the structure, of the corners and of the runs


class _OutlineForm(IntEnum):
    """The number that stands for each form of an outline."""

    NOTHING = 0
    PIXELS = 1
    FRACTIONS = 2
    RUNS = 3
    BITMAP = 4
    FILE = 5
    FAULTY = 6
    JOINED = 7
    NUMBERED = 8


_FAULTS: tuple[OutlineFault, ...] = get_args(OutlineFault)

_MOST_DECIMALS = 9
_AS_WRITTEN = _MOST_DECIMALS + 1
"""The number of decimals of coordinates that have more: they are stored as they are in memory."""

_MOST_INTEGER = 2.0**53
"""Integers up to here are exact in a float."""

_BITS = 7
_MOST_BYTES = 10
"""The bytes of the longest number, which has 64 bits."""

Integers = NDArray[np.int64]


@dataclass(slots=True)
class _PackedOutlines:
    """The parts of a packed list of outlines, before they are encoded.

    Attributes:
        structure: what each outline is, and the lengths of its parts.
        corners: x, y, x, y, ... of all polygons.
        runs: the lengths of the runs of all masks.
        blobs: texts and encoded images.
    """

    structure: list[int] = field(default_factory=list)
    corners: list[float] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)

    def add_blob(self, blob: bytes) -> None:
        self.structure.append(len(blob))
        self.blobs.append(blob)

    def add_file(self, file: MaskFile) -> None:
        self.structure.append(file.size)
        for text in (file.key, file.uri, file.version):
            self.add_blob(text.encode())

    def add_parts(self, parts: Sequence[Sequence[float]]) -> None:
        self.structure.append(len(parts))
        for part in parts:
            self.structure.append(len(part))
            self.corners += part

    def add(self, outline: Outline | None, files: dict[MaskFile, int]) -> None:
        match outline:
            case None:
                self.structure.append(_OutlineForm.NOTHING)
            case Polygons(parts, fractions):
                self.structure.append(_OutlineForm.PIXELS + fractions)
                self.add_parts(parts)
            case Runs((width, height), counts):
                self.structure += _OutlineForm.RUNS, width, height, len(counts)
                self.runs += counts
            case Bitmap(left, top, data):
                self.structure += _OutlineForm.BITMAP, left, top
                self.add_blob(data)
            case FileIds(file, ids):
                self.structure += _OutlineForm.FILE, files[file], len(ids), *ids
            case NumberedObject(file, number, objects):
                self.structure += _OutlineForm.NUMBERED, files[file], number, objects
            case Joined(shapes):
                self.structure += _OutlineForm.JOINED, len(shapes)
                for shape in shapes:
                    self.add(shape, files)
            case FaultyOutline(reason, detail):
                self.structure += _OutlineForm.FAULTY, _FAULTS.index(reason)
                self.add_blob(detail.encode())


def pack_outlines(outlines: Sequence[Outline | None]) -> bytes:
    """Returns the bytes that a reference carries.

    Args:
        outlines: that of each object, in their order; None for an object without one. Their
            integers fit in 64 bits.
    """
    packed = _PackedOutlines()
    files = {each.file: 0 for each in outlines if isinstance(each, FileOutline)}
    packed.structure += len(outlines), len(files)
    for number, file in enumerate(files):
        files[file] = number
        packed.add_file(file)
    for outline in outlines:
        packed.add(outline, files)
    decimals, corners = _encode_corners(packed.corners)
    packed.structure.append(decimals)
    structure = _encode(np.array(packed.structure, np.int64))
    runs = _encode(_differ(packed.runs, 2))
    header = _HEADER.pack(len(structure), len(corners), len(runs))
    return b"".join((header, structure, corners, runs, *packed.blobs))


def unpack_outlines(packed: bytes) -> tuple[Outline | None, ...]:
    """Returns the outlines that `pack_outlines` packed."""
    lengths = _HEADER.unpack_from(packed)
    ends = [*itertools.accumulate(lengths, initial=_HEADER.size)]
    structure, corners, runs = (packed[start:end] for start, end in itertools.pairwise(ends))
    numbers = _decode(structure).tolist()
    reader = _OutlineReader(
        iter(numbers),
        iter(_decode_corners(corners, numbers[-1])),
        iter(_sum_up(_decode(runs), 2)),
        packed,
        ends[-1],
    )
    count, files = reader.next(), [reader.read_file() for _ in range(reader.next())]
    return tuple(reader.read(files) for _ in range(count))


@dataclass(slots=True)
class _OutlineReader:
    """Reads the parts of a packed list of outlines.

    Attributes:
        numbers: the structure.
        corners: x, y, x, y, ... of all polygons.
        runs: the lengths of the runs of all masks.
        packed: all bytes.
        at: where the next blob begins in them.
    """

    numbers: Iterator[int]
    corners: Iterator[float]
    runs: Iterator[int]
    packed: bytes
    at: int

    def next(self) -> int:
        return next(self.numbers)

    def read_blob(self) -> bytes:
        start = self.at
        self.at += self.next()
        return self.packed[start : self.at]

    def read_file(self) -> MaskFile:
        size = self.next()
        key, uri, version = (self.read_blob().decode() for _ in range(3))
        return MaskFile(key, uri, size, version)

    def read(self, files: Sequence[MaskFile]) -> Outline | None:
        match form := _OutlineForm(self.next()):
            case _OutlineForm.NOTHING:
                return None
            case _OutlineForm.PIXELS | _OutlineForm.FRACTIONS:
                lengths = [self.next() for _ in range(self.next())]
                parts = tuple(tuple(itertools.islice(self.corners, each)) for each in lengths)
                return Polygons(parts, form == _OutlineForm.FRACTIONS)
            case _OutlineForm.RUNS:
                size = self.next(), self.next()
                return Runs(size, tuple(itertools.islice(self.runs, self.next())))
            case _OutlineForm.BITMAP:
                return Bitmap(self.next(), self.next(), self.read_blob())
            case _OutlineForm.FILE:
                file = files[self.next()]
                return FileIds(file, tuple(self.next() for _ in range(self.next())))
            case _OutlineForm.NUMBERED:
                return NumberedObject(files[self.next()], self.next(), self.next())
            case _OutlineForm.JOINED:
                shapes = (self.read(files) for _ in range(self.next()))
                return Joined(tuple(shapes))  # type: ignore[arg-type]  # as they were packed
            case _OutlineForm.FAULTY:
                return FaultyOutline(_FAULTS[self.next()], self.read_blob().decode())


def _encode_corners(corners: Sequence[float]) -> tuple[int, bytes]:
    """Returns the number of decimals of all coordinates, and the coordinates in bytes."""
    values = np.array(corners, np.float64)
    for decimals in range(_AS_WRITTEN):
        scale = 10.0**decimals
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.rint(values * scale)
            is_exact = (np.abs(scaled) < _MOST_INTEGER) & (scaled / scale == values)
        if np.all(is_exact):
            return decimals, _encode(_differ(scaled.astype(np.int64), 2))
    return _AS_WRITTEN, values.astype("<f8").tobytes()


def _decode_corners(packed: bytes, decimals: int) -> list[float]:
    """Returns the coordinates that `_encode_corners` encoded."""
    if decimals == _AS_WRITTEN:
        return np.frombuffer(packed, "<f8").tolist()
    return (_sum_up(_decode(packed), 2) / 10.0**decimals).tolist()


def _differ(values: Iterable[int] | Integers, step: int) -> Integers:
    """Returns the difference of each number to the one that is `step` places before it."""
    numbers = np.array(values, np.int64)
    numbers[step:] -= numbers[:-step].copy()
    return numbers


def _sum_up(differences: Integers, step: int) -> Integers:
    """Returns the numbers whose differences `_differ` returns."""
    numbers = differences.copy()
    for start in range(step):
        np.cumsum(differences[start::step], out=numbers[start::step])
    return numbers


def _encode(numbers: Integers) -> bytes:
    """Encodes numbers as groups of 7 bits, lowest first; the last byte of each has no high bit.

    The sign is the lowest bit, so that small negative numbers are short, too.
    """
    rest = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    groups = np.empty((len(rest), _MOST_BYTES), np.uint8)
    is_used = np.zeros((len(rest), _MOST_BYTES), bool)
    for place in range(_MOST_BYTES):
        is_used[:, place] = (rest > 0) | (place == 0)
        groups[:, place] = rest & 0x7F
        rest = rest >> np.uint64(_BITS)
    groups[:, :-1][is_used[:, 1:]] |= 0x80
    return groups[is_used].tobytes()


def _decode(packed: bytes) -> Integers:
    """Returns the numbers that `_encode` encoded."""
    groups = np.frombuffer(packed, np.uint8)
    if not len(groups):
        return np.zeros(0, np.int64)
    starts = np.concatenate(([0], np.flatnonzero(groups < 0x80)[:-1] + 1))
    lengths = np.diff(np.append(starts, len(groups)))
    places = np.arange(len(groups)) - np.repeat(starts, lengths)
    bits = (groups & 0x7F).astype(np.uint64) << (places * _BITS).astype(np.uint64)
    numbers = np.add.reduceat(bits, starts)
    signs = (numbers & np.uint64(1)).astype(np.int64)
    return (numbers >> np.uint64(1)).astype(np.int64) ^ -signs
