"""The settings under `shards:`."""

import re
from dataclasses import dataclass
from typing import Literal

from recordmill.schemas.added_setting import added_setting
from recordmill.schemas.bounds import AtLeastOne
from recordmill.schemas.shard_name import check_pattern

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_LARGEST = 2**60


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardSettings:
    """Number and names of a split's files: the YAML keys under `shards:`.

    Attributes:
        size: the target size of a file, e.g. `128MiB`; ignored if `count` is given.
        count: the number of files per split; lowered, with a note, if there are fewer images.
        name: pattern of the files' names, instead of the convention's: `{name}`, `{split}`, `{index}` (from 0),
            `{number}` (from 1), `{count}`, `{records}`, each with Python's format codes. No folders. With `count: 1` it
            may omit the index: `{split}.record`.
        cuts: how a split is cut into files: `even`: into files of about equal size; `fixed`: into equal ranges of the
            keys' hashes, so that a file changes only if an image in it does. Their number is a power of two: `count`,
            or the next one for `size` and the size of the source; ranges without an image have no file.
    """

    size: int | str = "128MiB"
    count: AtLeastOne | None = None
    name: str | None = None
    cuts: Literal["even", "fixed"] = added_setting("even")

    def __post_init__(self) -> None:
        """Raises ValueError where a setting is impossible."""
        if self.target_bytes < 1:
            raise ValueError(f"shards.size is {self.size!r}: give at least 1B")
        if self.cuts == "fixed" and self.count is not None and self.count.bit_count() > 1:
            example = 1 << self.count.bit_length()
            raise ValueError(f"shards.count is {self.count}: with cuts: fixed, give a power of two such as {example}")
        if self.name is not None:
            check_pattern(self.name, "shards.name")

    @property
    def ignores_growth(self) -> bool:
        """Whether the number of files does not depend on how large records are."""
        return self.count is not None or self.cuts == "fixed"

    @property
    def target_bytes(self) -> int:
        """`size` in bytes."""
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(self.size))
        if not match or match[2].upper() not in _UNITS:
            raise ValueError(f"shards.size is {self.size!r}: write a number and a unit, such as 128MiB")
        size = float(match[1]) * _UNITS[match[2].upper()]
        if size > _LARGEST:
            raise ValueError(f"shards.size is {str(self.size)[:80]!r}: give at most {_LARGEST // 2**40:,}TiB")
        return int(size)
