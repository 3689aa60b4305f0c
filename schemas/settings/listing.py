"""The inputs, and the settings that select files."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Input:
    """One folder or file to read, and the name that its images' keys begin with (empty: none)."""

    path: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class ListingSettings:
    """Selects the files to read, and gives them splits and groups.

    Attributes:
        include: patterns in gitignore's syntax, matched against paths below an input; empty: everything.
        ignore: patterns in the same syntax, of files and folders to ignore.
        from_folders: if set, the first folder gives the split: folder names to split names.
        from_source: if set, the source gives the split: its words to split names.
        classes_known: whether the user has said which classes there are, so that a folder `train` may be one.
        group: if set, a pattern; keys with the same text in its group `group` stay in one split.
        not_included: the reason for ignoring files that match none of `include`.
    """

    include: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    from_folders: Mapping[str, str] = field(default_factory=dict)
    from_source: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    classes_known: bool = False
    not_included: str = "not_included"
