"""Reuses earlier datasets instead of converting.

It copies records with their rows, or stores their images in new records.

Earlier datasets and new shards are in the order of the same hashes of keys. Of an earlier dataset,
only shards with overlapping hashes are read, and their records in the order of the file.
"""

import hashlib
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, repeat
from threading import Lock
from typing import Any, NamedTuple, cast

import orjson
from google.protobuf.message import DecodeError

from recordmill import storage
from recordmill.annotations.kinds import KINDS
from recordmill.imaging import ImageSettings, PreparedImage
from recordmill.imaging.acceptance import sniff
from recordmill.imaging.prepare import holds_position
from recordmill.schemas.corrections import WITHOUT_CORRECTIONS, Corrections
from recordmill.schemas.dataset import record_index
from recordmill.schemas.dataset.compare_plans import explain_version, list_differences
from recordmill.schemas.dataset.file_names import MARKER, VERSIONS
from recordmill.schemas.dataset.json_values import hash_json, to_json
from recordmill.schemas.dataset.marker import Marker, PlanEntry, ShardEntry
from recordmill.schemas.dataset.record_index import UNKNOWN, RowOrigin
from recordmill.schemas.dataset.side_files import RejectedRow, Row, SidecarRow
from recordmill.schemas.digests import (
    describe_files,
    digest_parts,
    has_exact_files,
    join_annotations,
    order_of,
    source_digest_of,
    take_image,
)
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import ATTRIBUTE
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.label_map import LabelMap, find_class
from recordmill.schemas.reference_batch import ShardBatch
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.storage.dataset_files import MOST_SIDECAR_BYTES, parse_rows, read_marker
from recordmill.storage.tfrecord_file import GzipBytes, StoredFile, data_offset
from recordmill.transforms.planning.earlier_dataset import EarlierDataset, ReusableDataset

_PLACING = frozenset(
    (
        "attribute_ids",
        "compression",
        "corrections",
        "cuts",
        "duplicates",
        "exclude",
        "file_names",
        "ignore",
        "include",
        "index_files",
        "label_ids",
        "limit",
        "limit_per_class",
        "listing",
        "name",
        "shards",
        "split_order",
        "splits",
    )
)
"""Parts of a recipe that decide which images there are and where they go, but not their records.

`corrections` changes the records of single images, whose digests say so: see `ReferenceDigests`."""

_DECISIVE = ("images", "decode", "keep", "features", "versions")
"""Parts of a recipe that decide whether and how an image is stored, and what its row says about its
pixels."""

_BLOCK = 2**20
_MOST_HASH = 2**64 - 1


def find_decisive(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parts of a recipe that decide the contents of a record.

    Its version of zlib does not.
    """
    decisive = {key: value for key, value in recipe.items() if key not in _PLACING}
    versions = decisive.get("versions", {})
    return {
        **decisive,
        "versions": {key: value for key, value in versions.items() if key != "zlib"},
    }


class ReferenceDigests:
    """Digests of everything that decides a record and its row, except for the bytes of its source.

    Args:
        recipe: what the plan id stands for.
        layout: what the dataset and its Examples are.
        label_map: class ids.
        corrections: other classes of some images.
    """

    def __init__(
        self,
        recipe: Mapping[str, Any],
        layout: ExampleLayout,
        label_map: LabelMap,
        corrections: Corrections = WITHOUT_CORRECTIONS,
    ) -> None:
        self._corrections = corrections.by_key
        self._label_map = label_map
        self._settings = hash_json(find_decisive(recipe))
        classes: list[Any] = [label_map.ids, label_map.catch_all, label_map.numbers]
        if label_map.renamed:
            classes.append(label_map.renamed)
        if label_map.attributes:
            classes.append(label_map.attributes)
        self._classes = hash_json(classes)
        self._stores_split = not layout.fields.isdisjoint({"split", "split_upper"})

    def digest(self, ref: ImageRef, split: str) -> int:
        """Returns 64 bits.

        It is 0 for a reference that cannot become a record, and if a change of a further file might
        go unnoticed.

        With annotations, the ids of all classes count.
        """
        try:
            own = find_class(ref.label, self._label_map)
        except Rejected:
            return 0
        if isinstance(ref, Notice) or not has_exact_files(ref):
            return 0
        split = split if self._stores_split else ""
        classes = ""
        if ref.annotations:
            classes = self._classes
        text = (
            f"{self._settings}\0{split}\0{own}\0{ref.key}\0{ref.label!r}\0{ref.features}"
            f"\0{classes}\0{ref.spelling}\0{ref.sha256}\0{ref.offset}\0{ref.length}"
            f"\0{ref.packing}\0{ref.lacks_file}"
        )
        if ref.files:
            text = f"{text}\0{describe_files(ref)}"
        if (correction := self._corrections.get(ref.key)) is not None:
            text += f"\0{correction.sha256}\0{find_class(correction.class_name, self._label_map)}"
        decisive = text.encode() + join_annotations(ref)
        return int.from_bytes(hashlib.sha256(decisive).digest()[:8])


class EarlierRecord(NamedTuple):
    """An image in an earlier dataset.

    Attributes:
        row: its row in the sidecar.
        origin: what it was made from.
        is_current: whether the source is known to be unchanged without reading it.
        is_same: whether an unchanged source gives the same record and row; otherwise, only the same
            stored image.
        record: the serialized Example, checked against the row's digest; empty if the image was
            rejected.
        encoded: the stored bytes of the image; empty if records have none.
        sha256: their digest, in hex.
        is_disputed: whether another earlier dataset contradicts this one.
    """

    row: Row
    origin: RowOrigin
    is_current: bool
    is_same: bool
    record: bytes = b""
    encoded: bytes = b""
    sha256: str = ""
    is_disputed: bool = False

    def contradicts(self, other: "EarlierRecord") -> bool:
        """Returns whether both claim the same source, but their digests differ."""
        if (self.is_current, self.is_same) != (other.is_current, other.is_same):
            return False
        one, two = (
            each.row.record if isinstance(each.row, SidecarRow) else None for each in (self, other)
        )
        return self.row.sha256 != other.row.sha256 or (self.is_same and one != two)

    def replaces_source(self, ref: ImageRef) -> bool:
        """Tells whether a record can be made without the source.

        Annotations that follow the pixels of a changed image need its original size.
        """
        if not self.is_current or self.is_same:
            return self.is_current
        needs_source = any(KINDS[name].follows_pixels for name, _ in ref.annotations)
        return not (self.written.changes and needs_source)

    @property
    def written(self) -> SidecarRow:
        """The row of a record: rows of rejected images are only ever copied."""
        return cast("SidecarRow", self.row)

    def as_prepared(self, settings: ImageSettings) -> PreparedImage:
        """Returns the image as a conversion would prepare it."""
        row: Any = self.written  # of an image, so it has a size
        is_raw = settings.store == "raw"
        return PreparedImage(
            encoded=self.encoded,
            format="RAW" if is_raw else sniff(self.encoded) or "",
            height=row.height,
            width=row.width,
            channels=row.channels,
            moments=None if row.moments is None else tuple(map(tuple, row.moments)),
            changes=tuple(row.changes),
            difference_hash=None if row.difference_hash is None else int(row.difference_hash, 16),
            pixels=row.pixels,
            sha256=self.sha256,
            losses=row.losses or {},
            has_position=not is_raw and not row.changes and holds_position(self.encoded),
        )


def find_reusable(
    datasets: Iterable[EarlierDataset], plan: PlanEntry
) -> tuple[tuple[ReusableDataset, ...], tuple[str, ...]]:
    """Finds the datasets whose records or images can be reused.

    Also returns a note on each of the others.

    Args:
        datasets: earlier datasets.
        plan: the plan of the new dataset, as far as it is known before listing.
    """
    new, usable, notes = to_json(find_decisive(plan.recipe)), [], []
    for dataset in datasets:
        folder, marker = dataset.folder, dataset.marker
        old = _without_attributes(find_decisive(marker.plan.recipe))
        obstacle = _find_obstacle(marker, plan)
        if obstacle and old != new:
            notes.append(f"no image of {folder} could be reused: {obstacle}")
        else:
            same_files = all(
                marker.plan.recipe.get(key) == plan.recipe.get(key)
                for key in ("compression", "versions")
            )
            same_source = old.get("source") == new["source"]
            usable.append(ReusableDataset(dataset, same_source, not obstacle, same_files))
    return tuple(usable), tuple(notes)


def _without_attributes(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a recipe without the features that only the listing shows."""
    known = dict(recipe)
    if schema := recipe.get("feature_schema"):
        known["feature_schema"] = {
            key: entry
            for key, entry in schema.items()
            if not str(entry.get("field", "")).startswith(ATTRIBUTE)
        }
    return known


def _find_obstacle(marker: Marker, plan: PlanEntry) -> str | None:
    """Returns why a dataset's images cannot be in new records; None if they can."""
    if marker.plan.version != plan.version:
        return explain_version(marker.plan, plan)
    if any(map(plan.recipe.get, ("features", "functions", "hooks"))):
        return "the settings call functions"
    old, new = (replace(each, recipe=find_decisive(each.recipe)) for each in (marker.plan, plan))
    left_out = {*old.recipe, *new.recipe} - {*_DECISIVE}
    changed = list_differences(old, new, left_out)
    if changed:
        return ", ".join(changed)
    if not marker.images:
        return "its records have no images"
    return None


class JoinedReference(NamedTuple):
    """A reference with its record in an earlier dataset.

    Attributes:
        ref: the reference.
        origin: what its new row is made from.
        earlier: the row that fits best, from the first dataset that has one; None if none has.
        damaged: paths of files that were found damaged since the previous reference.
    """

    ref: ImageRef
    origin: RowOrigin
    earlier: EarlierRecord | None
    damaged: tuple[str, ...]


def join_earlier(
    datasets: Sequence[ReusableDataset],
    references: Iterable[tuple[ImageRef, RowOrigin]],
    orders: Iterable[int],
    seed: int,
) -> Generator[JoinedReference, None, None]:
    """Looks up references in earlier datasets.

    A sidecar is read only if it may contain the row of a reference, and a shard only if one of its
    records is used. So the same damaged files are found however references are batched.

    Args:
        datasets: from `find_reusable`.
        references: a shard's references, in its order, with the origins of their rows as far as
            known before reading.
        orders: `KeyHashes.order` of each of them.
        seed: the seed of the dataset; the earlier ones have the same.
    """
    if not datasets:
        yield from (JoinedReference(ref, origin, None, ()) for ref, origin in references)
        return
    items = list(references)
    pairs = zip(items, orders, strict=True)
    images = [(ref.key, origin, at) for (ref, origin), at in pairs if not isinstance(ref, Notice)]
    by_key = {key: origin for key, origin, _ in images}
    ascending = [at for _, _, at in images]
    found: dict[str, list[tuple[_OpenShard, EarlierRecord]]] = {}
    damaged: list[str] = []
    with ExitStack() as stack:
        for dataset in datasets if by_key else ():
            shards, unusable = _open_dataset(dataset)
            damaged += unusable
            for earlier in (each for each in shards if each.may_hold(ascending)):
                opened = stack.enter_context(closing(_OpenShard(earlier, damaged)))
                for row, before in opened.rows(ascending[0], ascending[-1], seed):
                    if (now := by_key.get(row.key)) and (one := opened.compare(row, before, now)):
                        found.setdefault(row.key, []).append((opened, one))
        for ref, origin in items:
            rows = () if isinstance(ref, Notice) else found.pop(ref.key, ())
            record = None
            if rows:
                shard, best = max(rows, key=lambda each: (each[1].is_current, each[1].is_same))
                record = shard.read(best)
                if record is not None and any(best.contradicts(each) for _, each in rows):
                    record = record._replace(is_disputed=True)
            yield JoinedReference(ref, origin, record, tuple(damaged))
            damaged.clear()


def find_untouched(
    dataset: ReusableDataset, batch: ShardBatch, seed: int, digest: Callable[[ImageRef], int]
) -> tuple[ShardEntry, list[EarlierRecord]] | None:
    """Finds the shard of a dataset that a conversion would write again unchanged.

    Also returns the rows of all its references. The shard was made from the same versions of
    exactly these references.

    Args:
        dataset: one from `find_reusable`.
        batch: a shard's references, in its order.
        seed: the seed of both datasets.
        digest: gives the digest of a reference, see `ReferenceDigests`.
    """
    refs, first, last = batch.refs, batch.orders[0], batch.orders[-1]
    for shard in (
        each for each in _open_dataset(dataset)[0] if each.first <= first and last <= each.last
    ):
        if shard.entry is None:
            continue
        found = _OpenShard(shard, []).rows(0, _MOST_HASH, seed)
        rows = []
        for ref, (row, origin) in zip(refs, found, strict=False):
            if not origin.source == source_digest_of(ref) != 0:
                break
            rows.append(EarlierRecord(row, origin, is_current=True, is_same=True))
        same = (
            each.origin.reference == digest(ref) != 0 for each, ref in zip(rows, refs, strict=False)
        )
        if len(rows) == len(refs) and next(found, None) is None and all(same):
            return shard.entry, rows
    return None


_reading = Lock()


@lru_cache(1)
def _read_known_digests(
    datasets: tuple[ReusableDataset, ...], seed: int
) -> dict[tuple[int, int], str]:
    known = dict[tuple[int, int], str]()
    same = (_open_dataset(each)[0] for each in datasets if each.same_source)
    for shard in chain.from_iterable(same):
        for row, origin in _OpenShard(shard, []).rows(0, _MOST_HASH, seed):
            if origin.source and row.sha256:
                known[origin.source, order_of(seed, row.key)] = row.sha256
    return known


def find_known_digest(
    ref: ImageRef, datasets: tuple[ReusableDataset, ...], seed: int
) -> str | None:
    """Returns the SHA-256 of a reference's source, in hex; None if the source may have changed.

    The digests in the rows of earlier datasets with this seed are read once for all threads of a
    process.
    """
    with _reading:
        known = _read_known_digests(datasets, seed)
    return known.get((source_digest_of(ref), order_of(seed, ref.key)))


class _EarlierShard(NamedTuple):
    """A shard of an earlier dataset.

    Attributes:
        reusable: the dataset.
        entry: the shard, as the marker describes it; None if it has no records.
        sidecar: the path of its sidecar below the dataset's folder.
        sidecar_sha256: the sidecar's SHA-256, in hex.
        compression: `none` or `gzip`.
        images: the features that hold the image, see `find_images`.
        first: the lowest hash of a key that may be in its sidecar.
        last: the highest.
        number: the place of its section in the versions.
    """

    reusable: ReusableDataset
    entry: ShardEntry | None
    sidecar: str
    sidecar_sha256: str
    compression: str
    images: dict[str, str]
    first: int
    last: int
    number: int

    def may_hold(self, orders: Sequence[int]) -> bool:
        """Returns whether any of these ascending hashes is in its range."""
        return self.first <= orders[-1] and bisect_left(orders, self.first) < bisect_right(
            orders, self.last
        )


@contextmanager
def _noting_damage(damaged: list[str], folder: str, name: str) -> Iterator[str]:
    """Yields the path of a file, and notes it if the block finds that file missing or damaged.

    In that case, the block ends.
    """
    path = storage.join(folder, name)
    try:
        yield path
    except (OSError, LoadError, DecodeError, ValueError, struct.error):
        damaged.append(path)


@lru_cache(4)
def _open_dataset(reusable: ReusableDataset) -> tuple[tuple[_EarlierShard, ...], tuple[str, ...]]:
    """Returns a dataset's shards, and its damaged files.

    There are no shards if another run has replaced the dataset, or its index is damaged.
    """
    dataset, marker = reusable.dataset, reusable.dataset.marker
    shards, damaged = list[_EarlierShard](), list[str]()
    entries, compression, images = (
        record_index.list_shards(marker),
        marker.plan.for_readers.compression,
        marker.images,
    )
    head, index = record_index.pack_head(entries), marker.index
    with _noting_damage(damaged, dataset.folder, index) as path, storage.open_to_read(path) as file:
        is_whole, digest, edges = file.read(len(head)) == head, hashlib.sha256(head), []
        for entry in entries:  # all places of a large dataset at once would take gigabytes
            digest.update(places := file.read(record_index.PLACE_BYTES * entry.records))
            edges.append(record_index.edges_of(places))
        is_listed = marker.run.digests.get(index) == digest.hexdigest()
        if not is_whole or file.read(1) or not is_listed:
            raise ValueError(index)
        borders = {
            entries.index(split.shards[0]) for split in marker.splits.values() if split.shards
        }
        for number, entry in enumerate(entries):
            # Hashes of rejected images may be between those of two shards' records.
            first = 0 if number in borders else edges[number - 1][1]
            last = _MOST_HASH if number + 1 in {*borders, len(entries)} else edges[number + 1][0]
            names = entry, entry.sidecar, entry.sidecar_sha256
            shards.append(_EarlierShard(reusable, *names, compression, images, first, last, number))
        shards += _open_shards_without_records(reusable, len(shards), damaged)
    return tuple(shards), _explain_damage(dataset, damaged) if damaged else ()


def _open_shards_without_records(
    reusable: ReusableDataset, first: int, damaged: list[str]
) -> Iterator[_EarlierShard]:
    """Yields the shards of a dataset whose references were all rejected or left out.

    They are not in its index, so their sidecars are read to find the hashes of their keys.

    Args:
        reusable: the dataset.
        first: the place of their first section in the versions, after those of all other shards.
        damaged: takes the paths of files that are found damaged.
    """
    marker, folder = reusable.dataset.marker, reusable.dataset.folder
    seed = marker.plan.for_readers.seed
    for number, name in enumerate(marker.sidecars_without_records, first):
        sha256, orders = marker.run.digests.get(name, ""), list[int]()
        with _noting_damage(damaged, folder, name) as path:
            rows = parse_rows(_read_lines(path, sha256))
            orders = [order_of(seed, row.key) for row in rows if row.key]
        if orders:
            edges = min(orders), max(orders)
            yield _EarlierShard(reusable, None, name, sha256, "none", {}, *edges, number)


def _explain_damage(dataset: EarlierDataset, damaged: Sequence[str]) -> tuple[str, ...]:
    """Reads the marker of a dataset again if its index is not the one that was listed.

    Returns the damaged files: none if another run has replaced the dataset.
    """
    missing = list[str]()
    with _noting_damage(missing, dataset.folder, MARKER):
        if read_marker(dataset.folder).run.id != dataset.marker.run.id:
            return ()
    return tuple(missing or damaged)


@lru_cache(4)
def _read_lines(path: str, sha256: str, *part: int) -> list[bytes]:
    """Returns the lines of a sidecar, or of a section of the versions.

    They are cached, as parts of a shard are converted one by one.

    Raises:
        OSError: they cannot be read.
        ValueError: they have another digest.
    """
    if part and part[-1] > MOST_SIDECAR_BYTES:
        raise ValueError(path)
    if part:
        content = storage.read_range(path, *part)
    else:
        content = storage.read_whole(path, MOST_SIDECAR_BYTES)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(path)
    return content.splitlines()


def _find_line(lines: Sequence[bytes], first: int, seed: int) -> int:
    """Returns the number of the first row whose key has at least this hash.

    Rows are in the order of their hashes.
    """

    def order(number: int) -> int:
        keys = (orjson.loads(lines[place])["key"] for place in range(number, len(lines)))
        key = next(filter(None, keys), "")  # excluded images have none
        return order_of(seed, key) if key else _MOST_HASH + 1

    return bisect_left(range(len(lines)), first, key=order)


class _OpenShard:
    """Reads the records of a shard in order, in blocks."""

    def __init__(self, shard: _EarlierShard, damaged: list[str]) -> None:
        self._shard = shard
        self._noting_damage = partial(_noting_damage, damaged, shard.reusable.dataset.folder)
        self._stored: StoredFile | None = None
        self._source: StoredFile | GzipBytes | None = None
        self._block, self._start = memoryview(b""), 0

    def rows(self, first: int, last: int, seed: int) -> Iterator[tuple[Row, RowOrigin]]:
        """Yields the rows of a range of hashes, with their origins.

        Yields nothing if the sidecar is damaged.
        """
        lines = list[bytes]()
        with self._noting_damage(self._shard.sidecar) as path:
            lines = _read_lines(path, self._shard.sidecar_sha256)
        start, end = (_find_line(lines, order, seed) for order in (first, last + 1))
        for row, origin in zip(parse_rows(lines[start:end]), self._origins(start), strict=False):
            if row.key:  # else it was excluded
                yield row, origin

    def _origins(self, first: int) -> Iterator[RowOrigin]:
        """Returns the origins of all rows from this number on."""
        origins: Iterator[RowOrigin] = repeat(UNKNOWN)
        place = record_index.SECTION_BYTES * self._shard.number
        with self._noting_damage(VERSIONS) as path:
            (section,) = record_index.parse_table(
                storage.read_range(path, place, record_index.SECTION_BYTES)
            )
            lines = _read_lines(path, section.sha256.hex(), section.offset, section.length)
            origins = record_index.parse_origins(lines[first:])
        return origins

    def compare(self, row: Row, origin: RowOrigin, now: RowOrigin) -> EarlierRecord | None:
        """Returns what a reference can reuse of a row.

        Returns None if nothing, even with an unchanged source.
        """
        dataset = self._shard.reusable
        is_current = dataset.same_source and origin.source == now.source != 0
        is_same = origin.reference == now.reference != 0
        if not is_same and (isinstance(row, RejectedRow) or not dataset.same_images):
            return None
        return EarlierRecord(row, origin, is_current, is_same)

    def read(self, earlier: EarlierRecord) -> EarlierRecord | None:
        """Returns the same with its record; None if the record is damaged."""
        row, entry = earlier.row, self._shard.entry
        if not isinstance(row, SidecarRow) or entry is None:
            return earlier
        whole = None
        with self._noting_damage(entry.name) as path:
            record, images = (
                self._read(path, data_offset(row.offset), row.length),
                self._shard.images,
            )
            image, rest = take_image(record, images) if images else (b"", b"")
            digest = hashlib.sha256(image).hexdigest()
            if row.record != (
                digest_parts(rest, digest)[0] if images else hashlib.sha256(record).hexdigest()
            ):
                raise ValueError(row.key)
            whole = earlier._replace(record=record, encoded=image, sha256=digest)
        return whole

    def _read(self, path: str, offset: int, length: int) -> bytes:
        at = offset - self._start
        if at < 0 or at + length > len(self._block):
            if self._source is None:
                self._stored = StoredFile(path)
                self._source = (
                    self._stored if self._shard.compression == "none" else GzipBytes(self._stored)
                )
            self._block, self._start, at = self._source.read(offset, max(length, _BLOCK)), offset, 0
        return bytes(self._block[at : at + length])

    def close(self) -> None:
        """Closes the shard's file."""
        if self._stored:
            self._stored.__exit__()
