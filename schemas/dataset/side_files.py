"""The files next to the shards: sidecars, `rejected.jsonl`, `duplicates.jsonl`, `report.json`.

A sidecar, `sidecars/<shard>.jsonl`, has a row per record, in the shard's order, and one per other
reference. Rows are not frozen: a frozen row takes twice as long to read (6.0 instead of 3.1 us; the
JSON alone takes 3.0).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from types import NoneType
from typing import Any, Literal, cast

from recordmill.schemas.earlier_names import with_present_keys
from recordmill.schemas.rejection import Stage


@dataclass(slots=True)
class SidecarRow:
    """One record.

    Attributes:
        key: the path of its source below its input; for a row of a table, the table's path and the
            row's number.
        bytes: size of the source.
        sha256: SHA-256 of the source, in hex.
        class_name: its class; null if it has none. The key is `class`.
        label: its class id; null if it has none.
        height: rows of pixels as stored. Absent, as are the next three, if records hold no images.
        width: columns of pixels.
        channels: 1 or 3.
        moments: for each channel the sum of its values and the sum of their squares; null if they
            were not computed.
        changes: what was changed on the way, by name.
        difference_hash: of 64 bits, in hex; absent if `images.near_duplicates` is off.
        annotations: by kind, how many it has: `listed`, `written`, `dropped` by reason, and `noted`
            by what is worth a note; the last two are absent if there are none. `files` has key,
            size and SHA-256 of each file that they were read from, if there is one. Absent if it
            cannot have any.
        classes: the class of each of its annotations of one kind; absent if it can have only one
            class.
        offset: the first byte of its frame in the unpacked file.
        length: bytes of the record, without the 16 bytes of framing.
        record: digest of the record, in hex, see `digest_parts`; empty until it is made.
        rest: SHA-256 of the Example with an empty image; absent if records have no images.
        pixels: digest of the source's pixels, see `imaging.pixels.digest_pixels`; absent if they
            were not decoded in full.
        losses: what of the source is not stored, or was chosen for this image alone, see
            `imaging.depth.Losses`; absent if there is nothing.
        listed_class: the class that its source gives, if `corrections` gave it `class_name`; empty
            if the source gives none. Absent if it was not corrected.
    """

    key: str
    bytes: int
    sha256: str
    class_name: str | None = field(metadata={"key": "class"})
    label: int | None
    height: int | None = None
    width: int | None = None
    channels: int | None = None
    moments: Sequence[Sequence[int]] | None = None
    changes: Sequence[str] = ()
    difference_hash: str | None = None
    annotations: Mapping[str, Mapping[str, Any]] | None = None
    classes: Sequence[str] | None = None
    offset: int = 0
    length: int = 0
    record: str = ""
    rest: str | None = None
    pixels: str | None = None
    losses: Mapping[str, int] | None = None
    listed_class: str | None = None

    @property
    def other_files(self) -> Iterator[Mapping[str, Any]]:
        """The files that its annotations were read from, each with `key`, `size` and `sha256`."""
        for kind in (self.annotations or {}).values():
            yield from kind.get("files", ())


@dataclass(slots=True)
class RejectedRow:
    """One reference that was rejected, or left out while it was converted.

    Attributes:
        key: as in `SidecarRow`.
        spelling: the path as its store spells it, if it differs from the key; otherwise null.
        bytes: size of the source; null if it is not known.
        sha256: SHA-256 of the source, in hex; null if it was not read.
        class_name: its class as it was listed; null if it has none. The key is `class`.
        stage: `list`, `read`, `decode` or `encode`.
        reason: why it was rejected, in a word; null if it was left out. The key is `rejected`.
        detail: what is wrong, for people.
        left_out: the reason for leaving it out, in a word; absent if it was rejected.
        annotations: as in `SidecarRow`; absent if there are none.
    """

    key: str
    spelling: str | None
    bytes: int | None
    sha256: str | None
    class_name: str | None = field(metadata={"key": "class"})
    stage: Stage
    reason: str | None = field(metadata={"key": "rejected"})
    detail: str
    left_out: str | None = None
    annotations: Mapping[str, Mapping[str, Any]] | None = None


Row = SidecarRow | RejectedRow


def row_from_json(row: Mapping[str, Any]) -> Row:
    """Returns the row that a line describes.

    Of its values, only the key and the digest are checked, since there are millions of rows.

    Raises:
        AttributeError, TypeError: it is not an object.
        ValueError: its key or digest is not text.
    """
    row = with_present_keys(row)
    kind: Any = RejectedRow if "rejected" in row else SidecarRow
    made = cast("Row", kind(*map(row.get, _KEYS[kind])))
    if type(made.key) is not str or type(made.sha256) not in (str, NoneType):
        raise ValueError(f"key {made.key!r:.60} or sha256 {made.sha256!r:.70} is not text")
    return made


def row_to_json(row: Row) -> dict[str, Any]:
    """Returns the line of a row."""
    kind = type(row)
    plain = dict(zip(_KEYS[kind], _VALUES[kind](row), strict=True))
    for key in _OPTIONAL[kind]:
        if plain[key] is None and not (key == "moments" and "height" in plain):
            del plain[key]
    return plain


_PARTS = {kind: fields(kind) for kind in (SidecarRow, RejectedRow)}
_KEYS = {
    kind: [each.metadata.get("key", each.name) for each in parts] for kind, parts in _PARTS.items()
}
_VALUES = {kind: attrgetter(*(each.name for each in parts)) for kind, parts in _PARTS.items()}
_OPTIONAL = {
    kind: [each.name for each in parts if each.default is None] for kind, parts in _PARTS.items()
}


ReportSection = str
"""A section of the report that a remark can point to, by its anchor, such as `classes`, `changes`
or a kind of annotations; empty if it is not known."""


DuplicateKind = Literal["same_bytes", "look_alike", "closest_apart"]
"""The kinds of groups of duplicates."""


@dataclass(frozen=True, slots=True)
class RejectedFile:
    """A line of `rejected.jsonl`: one rejected reference.

    Attributes:
        uri: the path of its source.
        stage: `list`, `read`, `decode` or `encode`.
        reason: the reason, in a word.
        detail: what is wrong, for people.
        bytes: size of the source; null if it is not known.
        sha256: SHA-256 of the source, in hex; null if it was not read.
        class_name: its class as it was listed; null if it has none. The key is `class`.
        key: its key, as in the sidecars.
    """

    uri: str
    stage: Stage
    reason: str
    detail: str
    bytes: int | None
    sha256: str | None
    class_name: str | None = field(metadata={"key": "class"})
    key: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """One image of a group.

    Attributes:
        key: its key.
        split: its split.
        class_name: its class; null if it has none. The key is `class`.
        sha256: SHA-256 of its source, in hex; absent if the group's is given.
    """

    key: str
    split: str
    class_name: str | None = field(metadata={"key": "class"})
    sha256: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateGroup:
    """A line of `duplicates.jsonl`.

    It describes images of the same bytes, a pair that looks alike, or the closest pair left.

    Attributes:
        kind: `same_bytes`, `look_alike`, or `closest_apart`: the pair in different splits whose
            hashes differ least.
        distance: the number of bits by which the difference hashes of a pair differ; absent for the
            same bytes.
        sha256: SHA-256 of the images' source, in hex; absent for a pair.
        count: number of images; absent for a pair.
        splits: their splits, sorted.
        classes: their classes, sorted; the empty name for images without one.
        images: the images; only the first ones of a large group.
        conflicting_annotations: the kinds of annotations in which images of the same bytes differ;
            absent if there are none.
    """

    kind: DuplicateKind
    distance: int | None = None
    sha256: str | None = None
    count: int | None = None
    splits: tuple[str, ...]
    classes: tuple[str, ...]
    images: tuple[Duplicate, ...]
    conflicting_annotations: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """An observation that is worth a look.

    Attributes:
        text: one sentence.
        section: the section of the report that shows more.
    """

    text: str
    section: ReportSection = ""


@dataclass(frozen=True, slots=True)
class RejectedPicture:
    """What can be seen of a file that was rejected while it was decoded.

    Attributes:
        key: its key.
        reason: why it was rejected.
        picture: a small JPEG in base64.
    """

    key: str
    reason: str
    picture: str


@dataclass(frozen=True, slots=True)
class ReportData:
    """`report.json`: what the report shows, but no other file of the dataset has.

    Attributes:
        remarks: what is worth a look, the worst first.
        rejected: pictures of some rejected files.
    """

    remarks: tuple[Remark, ...] = ()
    rejected: tuple[RejectedPicture, ...] = ()
