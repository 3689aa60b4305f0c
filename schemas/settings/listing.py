"""What is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Input:
    """One folder or file to read, and the name that its images' keys begin with (empty: none)."""

    path: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ListingSettings:
    """What of the inputs is read.

    Attributes:
        include: patterns in gitignore's syntax, matched against paths below an input; empty: everything.
        ignore: patterns likewise, of files and folders that are none of ours.
        from_folders: where set, the first folder gives the split: folder names to split names.
        from_source: where set, the source gives the split: its words to split names.
        classes_known: whether the user has said which classes there are, so that a folder `train` may be one.
        group: where set, a pattern whose group `group`, found in a key, is what stays in one split.
        not_included: the reason by which files that match none of `include` are ignored.
    """

    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    from_folders: Mapping[str, str] = field(default_factory=dict)
    from_source: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    classes_known: bool = False
    not_included: str = "not_included"
