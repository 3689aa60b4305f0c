"""The verifier's findings; each is one line."""

from dataclasses import dataclass

KINDS: dict[str, str] = {
    "length": "a record's length does not match its checksum",
    "data": "a record's data do not match their checksum",
    "cut": "the file ends inside a record, or a record claims more bytes than there are",
    "zeros": "only zeros up to the end of the file",
    "gzip": "the gzip stream around the records is damaged, truncated, or followed by other data",
    "members": "several concatenated gzip streams",
    "name": "the file is named `.gz` but is not compressed, or vice versa",
    "empty": "the file has no records",
    "example": "a record is not a `tf.train.Example`",
    "feature": "a feature is missing, or has another kind or number of values than declared",
    "count": "the file has more or fewer records than the dataset says",
    "missing": "a file is missing that the dataset lists, or that the numbers in other files' names imply",
    "unreadable": "a file cannot be read",
    "stale": "a file looks like a shard, but belongs to another set or to none",
    "size": "a file has more or fewer bytes than the dataset says",
    "sha256": "a file or an encoded image does not match its digest",
    "edited": "a file for people (`README.md`, `croissant.json`, `report.html`) was edited",
    "sidecar": "a sidecar's rows do not match the records",
    "label": "a label is not one of the dataset's ids",
    "names": "a class has another name or id in a list of classes, a sidecar or a record than in `recordmill.json`",
    "marker": "`recordmill.json` contradicts the files, the sidecars or its own settings",
    "duplicate": "one image is in several splits",
    "pixels": "an image cannot be decoded, or has another size than its record says",
    "excluded": "an image that `--absent` names is still there",
    "metadata": "an image has metadata, or may have some, and `--no-metadata` was given",
    "more": "further findings in a file that has too many to list",
}
"""Every kind of finding."""

NOTES = frozenset({"members", "edited", "duplicate"})
"""Kinds reported, but not as failures: readers tolerate them, people may edit the file, or the input has them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem.

    Attributes:
        kind: one of `KINDS`.
        detail: the problem, in a few words.
        shard: the file's name below the dataset's folder.
        record: the record's number in its file, from 0; after damage, only a count unless a sidecar has the number.
        offset: the byte at which its frame begins, in the unpacked file.
        source: the key of the source file, if a sidecar has it.
    """

    kind: str
    detail: str
    shard: str = ""
    record: int | None = None
    offset: int | None = None
    source: str = ""

    @property
    def is_note(self) -> bool:
        """Whether it is reported, but not as a failure."""
        return self.kind in NOTES

    def __str__(self) -> str:
        """The line: shard, record, byte, source, and problem."""
        place = self.shard
        if self.record is not None:
            place += f", record {self.record:,}"
        if self.offset is not None:
            place += f" at byte {self.offset:,}"
        if self.source:
            place += f" ({self.source})"
        return f"{place}: {self.detail}" if place else self.detail
