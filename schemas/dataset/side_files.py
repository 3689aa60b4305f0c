"""The content of a dataset's side files: the lines of `rejected.jsonl` and `duplicates.jsonl`, and `report.json`."""

from dataclasses import dataclass, field
from typing import Literal

from recordmill.schemas.rejection import Stage

Section = Literal["", "ledger", "classes", "boxes", "sizes", "changes", "rejected", "duplicates"]
"""The sections of the report that a remark can point to: their anchors; empty if it is not known."""


Kind = Literal["same_bytes", "look_alike", "closest_apart"]
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
    """A line of `duplicates.jsonl`: images of the same bytes, a pair that looks alike, or the closest pair left.

    Attributes:
        kind: `same_bytes`, `look_alike`, or `closest_apart`: the pair in different splits whose hashes differ least.
        distance: the number of bits by which the difference hashes of a pair differ; absent for the same bytes.
        sha256: SHA-256 of the images' source, in hex; absent for a pair.
        count: number of images; absent for a pair.
        splits: their splits, sorted.
        classes: their classes, sorted; the empty name for images without one.
        images: the images; only the first ones of a large group.
    """

    kind: Kind
    distance: int | None = None
    sha256: str | None = None
    count: int | None = None
    splits: tuple[str, ...]
    classes: tuple[str, ...]
    images: tuple[Duplicate, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """An observation that is worth a look.

    Attributes:
        text: one sentence.
        section: the section of the report that shows more.
    """

    text: str
    section: Section = ""


@dataclass(frozen=True, slots=True)
class ChangeExample:
    """One image that was changed.

    Attributes:
        change: the change that it is an example of.
        key: its key.
        changes: all its changes, as in its row of the sidecar.
        before_bytes: size of the file.
        after_bytes: size of what is stored.
        before: a small JPEG in base64.
        after: another one.
    """

    change: str
    key: str
    changes: tuple[str, ...]
    before_bytes: int
    after_bytes: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ReportData:
    """`report.json`: what the report shows, but no other file of the dataset has.

    Attributes:
        remarks: what is worth a look, the worst first.
        examples: changed images, one for each change.
    """

    remarks: tuple[Remark, ...] = ()
    examples: tuple[ChangeExample, ...] = ()
