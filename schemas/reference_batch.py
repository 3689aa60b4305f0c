"""Carries references through Beam with their hashes, as JSON and columns of bytes.

References travel in batches, since runners have a cost per element. They are decoded to their own
class in any process.
"""

import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise, repeat, starmap
from operator import attrgetter
from typing import Any

import orjson
from apache_beam import coders

from recordmill.schemas.digests import ReferenceHashes, add_digests
from recordmill.schemas.image_ref import (
    Annotations,
    ClassNames,
    ImageRef,
    Listed,
    Notice,
    SourceFile,
)

_NAMES = {each: [field.name for field in fields(each)] for each in (ImageRef, Notice, ClassNames)}
_FIELDS = {each: [*map(attrgetter, names)] for each, names in _NAMES.items()}
_FILES = "files"
_ANNOTATIONS = "annotations"
"""The field of bytes: JSON has the lengths of its values, and a column after it their bytes."""


@dataclass(frozen=True, slots=True)
class ReferenceBatch:
    """A part of what was listed; the order within each type means nothing.

    Attributes:
        refs: images.
        notices: everything else that was found.
        classes: names of classes.
        hashes: the hashes of `counted`; None until they are computed.
    """

    refs: list[ImageRef] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    classes: list[ClassNames] = field(default_factory=list)
    hashes: ReferenceHashes | None = None

    @classmethod
    def of(cls, listed: Iterable[Listed]) -> "ReferenceBatch":
        """Returns a batch of what was listed."""
        batch = cls()
        lists = {ImageRef: batch.refs, Notice: batch.notices, ClassNames: batch.classes}
        for each in listed:
            lists[type(each)].append(each)  # type: ignore[attr-defined]  # a list of that type
        return batch

    @property
    def counted(self) -> list[ImageRef]:
        """Everything that a digest of the listing covers: images, and what did not become one."""
        return [*self.refs, *(each for each in self.notices if each.status in _COUNTED)]

    def hash_with(self, seed: int) -> ReferenceHashes:
        """Returns the hashes of `counted`.

        Computed here if the batch has none. `seed` is the dataset's.
        """
        return self.hashes or ReferenceHashes.of(self.counted, seed)

    def __len__(self) -> int:
        return len(self.refs) + len(self.notices) + len(self.classes)


_COUNTED = ("rejected", "left_out")


@dataclass(slots=True)
class ShardBatch:
    """References of one shard, with what was computed when they were listed.

    Attributes:
        refs: images, and notices of rejected things.
        orders: `KeyHashes.order` of each of them.
        digest: the sum of their `digest_of`, modulo 2**256.
        versions: the sum of their `version_digest_of`, modulo 2**256.
    """

    refs: list[ImageRef] = field(default_factory=list)
    orders: "array[int]" = field(default_factory=lambda: array("Q"))
    digest: int = 0
    versions: int = 0

    @classmethod
    def of(cls, refs: Iterable[ImageRef], seed: int) -> "ShardBatch":
        """Returns a batch of references whose hashes are computed here; `seed` is the dataset's."""
        batch, listed = cls(), list(refs)
        hashes = ReferenceHashes.of(listed, seed)
        for ref, keys, digest, version in zip(
            listed,
            hashes.iterate_keys(),
            hashes.iterate_digests(),
            hashes.iterate_versions(),
            strict=True,
        ):
            batch.add(ref, keys.order, digest, version)
        return batch

    @classmethod
    def join(cls, batches: Iterable["ShardBatch"]) -> "ShardBatch":
        """Returns all references of some batches."""
        whole = cls()
        for each in batches:
            whole.refs += each.refs
            whole.orders += each.orders
            whole.digest = add_digests(whole.digest, each.digest)
            whole.versions = add_digests(whole.versions, each.versions)
        return whole

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[ImageRef, int]]) -> "ShardBatch":
        """Returns a batch of references with their orders.

        Without sums, which only a whole shard needs.
        """
        batch = cls()
        for ref, order in pairs:
            batch.refs.append(ref)
            batch.orders.append(order)
        return batch

    def add(self, ref: ImageRef, order: int, digest: int, version: int) -> None:
        """Adds a reference with its order and its digests."""
        self.refs.append(ref)
        self.orders.append(order)
        self.digest = add_digests(self.digest, digest)
        self.versions = add_digests(self.versions, version)

    def sort(self) -> "ShardBatch":
        """Returns the same references in their final order, which is by hash.

        So classes are mixed, and the order of listing does not matter.
        """
        pairs = sorted(
            zip(self.orders, self.refs, strict=True),
            key=lambda pair: (pair[0], pair[1].key, pair[1].offset),
        )
        refs, orders = [ref for _, ref in pairs], array("Q", (order for order, _ in pairs))
        return ShardBatch(refs, orders, self.digest, self.versions)

    def __len__(self) -> int:
        return len(self.refs)


class _BatchCoder(coders.Coder):
    """Encodes a batch as JSON, which has references as columns, and columns of bytes after it.

    A column of equal values is written as one value.
    """

    def is_deterministic(self) -> bool:
        """Returns True: equal batches always give the same bytes."""
        return True

    def estimate_size(self, value: ReferenceBatch | ShardBatch) -> int:
        """Returns the approximate size in bytes.

        Otherwise Beam would encode a batch to estimate it.
        """
        return 100 * len(value)


class ReferenceBatchCoder(_BatchCoder):
    """Encodes a `ReferenceBatch`."""

    def to_type_hint(self) -> type:
        """Returns the class of what it encodes."""
        return ReferenceBatch

    def encode(self, value: ReferenceBatch) -> bytes:
        """Encodes a batch."""
        parts, packed = _as_columns([value.refs, value.notices, value.classes])
        hashes = value.hashes
        columns = (hashes.keys, hashes.digests, hashes.versions) if hashes else ()
        return _join(parts, (packed, *columns))

    def decode(self, encoded: bytes) -> ReferenceBatch:
        """Decodes a batch."""
        parts, (packed, *columns) = _part(encoded)
        refs, notices, found = _from_columns(parts, packed)
        # JSON has no tuples.
        classes = [
            ClassNames(
                each.uri,
                tuple(each.names),
                tuple(each.numbers),
                tuple((start, end) for start, end in each.skeleton),
            )
            for each in found
        ]
        hashes = ReferenceHashes(*columns) if columns else None
        return ReferenceBatch(refs, notices, classes, hashes)


class ShardBatchCoder(_BatchCoder):
    """Encodes a `ShardBatch`: images first, then notices."""

    def to_type_hint(self) -> type:
        """Returns the class of what it encodes."""
        return ShardBatch

    def encode(self, value: ShardBatch) -> bytes:
        """Encodes a batch."""
        refs, notices, order_of_refs, order_of_notices = [], [], array("Q"), array("Q")
        for ref, order in zip(value.refs, value.orders, strict=True):
            if isinstance(ref, Notice):
                notices.append(ref)
                order_of_notices.append(order)
            else:
                refs.append(ref)
                order_of_refs.append(order)
        orders = order_of_refs + order_of_notices
        if sys.byteorder == "big":
            orders.byteswap()
        sums = value.digest.to_bytes(32) + value.versions.to_bytes(32)
        parts, packed = _as_columns([refs, notices, []])
        return _join(parts, (packed, orders.tobytes(), sums))

    def decode(self, encoded: bytes) -> ShardBatch:
        """Decodes a batch."""
        parts, (packed, packed_orders, sums) = _part(encoded)
        refs, notices, _ = _from_columns(parts, packed)
        orders = array("Q", packed_orders)
        if sys.byteorder == "big":
            orders.byteswap()
        digest, versions = int.from_bytes(sums[:32]), int.from_bytes(sums[32:])
        return ShardBatch([*refs, *notices], orders, digest, versions)


def _as_columns(lists: list[Any]) -> tuple[list[Any], bytes]:
    """The columns of images, notices and class names, each after their number, and all bytes."""
    parts: list[Any] = []
    packed = bytearray()
    for kind, items in zip(_FIELDS, lists, strict=True):
        count, columns = len(items), []
        for name, get in zip(_NAMES[kind], _FIELDS[kind], strict=True) if items else ():
            column = list(map(get, items))
            is_same = column.count(column[0]) == count
            if name == _FILES:
                column = [[*map(list, files)] for files in column]
            elif name == _ANNOTATIONS:
                column, is_same = _pack_annotations(column, packed), not any(column)
            columns.append(column[:1] if is_same else column)
        parts += (count, columns)
    return parts, bytes(packed)


def _pack_annotations(column: list[Annotations], packed: bytearray) -> list[Any]:
    """Adds the bytes of a column of annotations; returns the kinds and lengths of each value."""
    if not any(column):
        return [[]]
    sizes = []
    for annotations in column:
        sizes.append([[kind, len(each)] for kind, each in annotations])
        for _, each in annotations:
            packed += each
    return sizes


def _from_columns(parts: list[Any], packed: bytes) -> list[Any]:
    """Returns the lists of images, notices and class names."""
    lists: list[Any] = []
    start = 0
    for kind, count, columns in zip(_FIELDS, parts[::2], parts[1::2], strict=True):
        values: list[Iterable[Any]] = []
        for name, column in zip(_NAMES[kind], columns, strict=False):  # no columns for no items
            if name == _FILES:
                column = [tuple(starmap(SourceFile, files)) for files in column]
            elif name == _ANNOTATIONS:
                column, start = _unpack_annotations(column, packed, start)
            values.append(repeat(column[0], count) if len(column) == 1 else column)
        lists.append(list(map(kind, *values)) if count else [])
    return lists


def _unpack_annotations(
    column: list[Any], packed: bytes, start: int
) -> tuple[list[Annotations], int]:
    """The annotations of each item, from their bytes at `start`, and where the next ones begin."""
    found: list[Annotations] = []
    for sizes in column:
        annotations = []
        for kind, size in sizes:
            annotations.append((kind, packed[start : start + size]))
            start += size
        found.append(tuple(annotations))
    return found, start


def _join(parts: list[Any], columns: Sequence[bytes]) -> bytes:
    """The length of the JSON, the JSON, which ends with the columns' lengths, and the columns."""
    text = orjson.dumps([*parts, [len(column) for column in columns]])
    return b"".join((len(text).to_bytes(4), text, *columns))


def _part(encoded: bytes) -> tuple[list[Any], list[bytes]]:
    """Returns the parts of JSON, and the columns after it."""
    at = 4 + int.from_bytes(encoded[:4])
    *parts, lengths = orjson.loads(encoded[4:at])
    ends = [*accumulate(lengths, initial=at)]
    return parts, [encoded[start:end] for start, end in pairwise(ends)]


# Beam's own coder for dataclasses knows their class only in the process that built the pipeline:
# workers elsewhere get tuples. Registered here, because the modules of these classes are imported
# without Beam.
coders.registry.register_coder(ImageRef, coders.PickleCoder)
coders.registry.register_coder(ReferenceBatch, ReferenceBatchCoder)
coders.registry.register_coder(ShardBatch, ShardBatchCoder)
