"""What a verifier says: one finding, one line."""

from dataclasses import asdict, dataclass
from typing import Any

KINDS: dict[str, str] = {
    "length": "a record's length does not fit its checksum",
    "data": "a record's data do not fit their checksum",
    "cut": "the file ends inside a record, or a record claims more bytes than there are",
    "zeros": "nothing but zeros to the end of the file",
    "gzip": "the gzip stream around the records is damaged, cut, or followed by something else",
    "members": "several gzip streams one behind the other: files that were joined",
    "name": "the file is called `.gz` and is not packed, or the other way round",
    "empty": "the file holds no record",
    "example": "a record is no `tf.train.Example`",
    "feature": "a feature is missing, of another kind, or of another number of values than stated",
    "count": "the file holds more or fewer records than stated",
    "missing": "a file that the dataset lists, or that its neighbours' names count, is not there",
    "unreadable": "a file cannot be read",
    "stale": "a file that looks like a shard and belongs to another set, or to none",
    "size": "a file has more or fewer bytes than stated",
    "sha256": "a file, or an encoded image, has another digest than stated",
    "edited": "a file for people (`README.md`, `croissant.json`, `report.html`) is not as it was written",
    "sidecar": "a sidecar's rows are not those of the records",
    "label": "a label is none of the dataset's ids",
    "names": "a class's name and id in a list of classes, a sidecar or a record are not those of `recordmill.json`",
    "marker": "what `recordmill.json` says of the dataset is not what its files, its sidecars or its own settings say",
    "duplicate": "one image is in several splits",
    "pixels": "an image cannot be decoded, or has another size than its record states",
    "more": "a file has so many findings that the rest are only counted",
}
"""Every kind of finding."""

NOTES = frozenset({"members", "edited", "duplicate"})
"""Kinds that are told and do not fail: every reader in the field reads on, people may edit it, or the data were so."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: one of `KINDS`.
        detail: what is wrong, in a few words.
        shard: the file's name below the dataset's folder.
        record: the record's number in its file, from 0; behind a damage counted on from it, unless a sidecar knows.
        offset: the byte at which its frame begins, in the unpacked file.
        source: the key of the source file, where a sidecar knows it.
    """

    kind: str
    detail: str
    shard: str = ""
    record: int | None = None
    offset: int | None = None
    source: str = ""

    @property
    def is_note(self) -> bool:
        """Whether it is told and does not fail."""
        return self.kind in NOTES

    def __str__(self) -> str:
        """The line: shard, record, byte, source, and what is wrong."""
        place = self.shard
        if self.record is not None:
            place += f", record {self.record:,}"
        if self.offset is not None:
            place += f" at byte {self.offset:,}"
        if self.source:
            place += f" ({self.source})"
        return f"{place}: {self.detail}" if place else self.detail

    def as_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)
