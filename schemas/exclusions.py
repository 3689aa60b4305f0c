"""The images to leave out of a dataset, from the file that `exclude` names."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from unicodedata import normalize


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Keys and digests of images that are left out.

    Attributes:
        keys: their keys.
        digests: SHA-256 of their sources, in hex.
    """

    keys: frozenset[str] = frozenset()
    digests: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """The keys and digests in the lines of a file; empty lines and those that begin with `#` are comments.

        Raises:
            ValueError: a line is malformed; the message says which, and what to write.
        """
        found: dict[str, set[str]] = {"key": set(), "sha256": set()}
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            kind, _, text = line.rstrip("\r\n").partition(":")
            if kind == "sha256":
                text = text.strip().lower()
            if not text or kind not in found or (kind == "sha256" and not re.fullmatch("[0-9a-f]{64}", text)):
                raise ValueError(f"line {number} is {line.strip()!r:.100}: write key:KEY, or sha256: and 64 hex digits")
            found[kind].add(normalize("NFC", text))
        return cls(frozenset(found["key"]), frozenset(found["sha256"]))

    def __len__(self) -> int:
        return len(self.keys) + len(self.digests)

    @property
    def digest(self) -> str:
        """The SHA-256 of the sorted lines, in hex, whatever the order and comments of the file."""
        lines = sorted([*(f"key:{key}\n" for key in self.keys), *(f"sha256:{each}\n" for each in self.digests)])
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def find(self, key: str, sha256: str | None) -> tuple[str, ...]:
        """Identifies the lines that name this key or this digest, by hashes that do not reveal the lines."""
        lines = (f"key:{key}" if key in self.keys else "", f"sha256:{sha256}" if sha256 in self.digests else "")
        return tuple(hashlib.sha256(line.encode()).hexdigest()[:16] for line in lines if line)
