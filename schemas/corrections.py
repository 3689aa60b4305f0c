"""The classes that users give images in the file of `corrections`, in place of their sources'."""

import csv
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Self
from unicodedata import normalize

HEADER = ("key", "sha256", "class")
"""The first line of the file, with tabs between the names."""

CorrectionFate = Literal["corrected", "stale"]
"""What a line does to the image with its key: `stale` if the image's source has another digest."""


class Correction(NamedTuple):
    """One line.

    Attributes:
        sha256: hex digest of the image's source.
        class_name: the class that the image gets.
    """

    sha256: str
    class_name: str


@dataclass(frozen=True, slots=True)
class Corrections:
    """The lines of the file, by the image's key."""

    by_key: Mapping[str, Correction] = field(default_factory=dict)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """Returns the corrections in the lines of a file, with their line breaks.

        Values are separated by tabs; one with tabs, quotes or line breaks is in double quotes, as
        in CSV.

        Raises:
            ValueError: a line is malformed, or names a key again; the message says which, and what
                to write.
        """
        rows = csv.reader(lines, delimiter="\t", strict=True)
        found: dict[str, Correction] = {}
        try:
            if (header := tuple(next(rows, HEADER))) != HEADER:
                raise ValueError(
                    f"line 1 is {header!r:.100}: write {', '.join(HEADER)}, with tabs between them"
                )
            for row in rows:
                if row:
                    key, correction = _parse_row(row, rows.line_num)
                    if key in found:
                        raise ValueError(
                            f"line {rows.line_num} names the key {key!r:.100} again: keep one line"
                        )
                    found[key] = correction
        except csv.Error as error:
            raise ValueError(f"line {rows.line_num} cannot be read: {error}") from None
        return cls(found)

    def __len__(self) -> int:
        return len(self.by_key)

    @property
    def digest(self) -> str:
        """The SHA-256 of the sorted lines, in hex."""
        lines = sorted(
            f"{key}\0{each.sha256}\0{each.class_name}\n" for key, each in self.by_key.items()
        )
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def judge(self, key: str, sha256: str | None) -> CorrectionFate | None:
        """Returns what happens to the line with an image's key; None without one."""
        correction = self.by_key.get(key)
        if correction is None:
            return None
        if correction.sha256 == sha256:
            return "corrected"
        return "stale"

    def find_unknown(self, classes: Collection[str]) -> str | None:
        """Returns a sentence on the first class that is not one of these; None if all are."""
        for key, each in sorted(self.by_key.items()):
            if each.class_name not in classes:
                return (
                    f"corrections gives {key!r:.100} the class {each.class_name!r:.100}, which no "
                    "image that was listed and no setting has: correct the name, or add the class "
                    "to labels.classes"
                )
        return None


WITHOUT_CORRECTIONS = Corrections()


def _parse_row(row: list[str], line: int) -> tuple[str, Correction]:
    if len(row) != len(HEADER):
        raise ValueError(f"line {line} has {len(row)} values: write {', '.join(HEADER)}")
    key, sha256, class_name = (normalize("NFC", each) for each in row)
    digest = sha256.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError(f"line {line} has the sha256 {sha256!r:.80}: write 64 hex digits")
    if not key or not class_name:
        raise ValueError(f"line {line} has no key or no class: write both")
    return key, Correction(digest, class_name)
