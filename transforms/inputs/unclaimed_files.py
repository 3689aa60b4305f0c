"""Files that no source claims: they are gathered while an input is listed, and judged at its end.

Names decide the roles of most files; the first bytes of a few decide the rest.
"""

import re
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self, cast

import orjson

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.transforms.inputs.file_roles import (
    HEAD_BYTES,
    KNOWN_TITLES,
    YOLO_TEXT,
    FileRole,
    Role,
    is_description_name,
    role_of_head,
    role_of_name,
    suffix_of,
    title_of,
)

MOST_HEADS = 64
"""Files of one extension whose first bytes are read."""

MOST_HEADS_ON_STORE = 100
"""Files of an input on a store whose first bytes are read, whatever their extensions."""

_MOST_SUFFIXES = 200
_MOST_FOLDERS = 1_000
_FEW = 8
"""Files that are left out one by one, even if a pattern would do."""

_SHOWN = 3

_TELLING = re.compile(
    "list|train|val|test|split|anno|label|class|gt|truth|box|mask|seg|target|meta|caption|attr|"
    "landmark|index|names",
    re.IGNORECASE,
)


@lru_cache(64)
def _compile_siblings(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for all, with a group for each: a path is matched once."""
    return re.compile("|".join(f"({_as_regex(each)})" for each in patterns), re.IGNORECASE)


def _as_regex(pattern: str) -> str:
    """A pattern such as `captions_*.json` or `ImageSets/**` as a regular expression.

    It matches at any depth. `*` stands for any characters but slashes, `**` for any.
    """
    parts = re.split(r"(\*\*|\*)", pattern)
    inner = "".join({"**": ".*", "*": "[^/]*"}.get(each, re.escape(each)) for each in parts)
    return rf"(?:.*/)?{inner}"


def find_sibling(path: str, siblings: Mapping[str, str]) -> str | None:
    """What is not stored of a file that downloads of a format contain; None for other files.

    The result is empty if nothing in the file is lost.

    Args:
        path: the file's path below the input.
        siblings: as `SourceSettings.siblings`.
    """
    if not siblings:
        return None
    match = _compile_siblings(tuple(siblings)).fullmatch(path)
    if not match or not match.lastindex:
        return None
    return tuple(siblings.values())[match.lastindex - 1]


@dataclass(slots=True)
class UnclaimedFiles:
    """Files of an input, or of a part of it, that no source claims; parts can be merged.

    Attributes:
        counts: their numbers by extension.
        kept: the first of them by extension: a rank, path, uri. The highest folders come first.
        suspects: files that the source rejects as a whole, as in `kept`.
        unlisted: files of annotations that no split list names, as in `kept`.
        siblings: numbers of known files of the format, by what is not stored.
        claimed_suffixes: extensions of files that are not images and that a source claims.
        claimed_folders: first folders of files that a source claims, with a slash; empty: none.
        claimed_places: folders of claimed files that are not images.
    """

    counts: Counter[str] = field(default_factory=Counter)
    kept: dict[str, list[tuple[int, str, str]]] = field(default_factory=dict)
    suspects: list[tuple[int, str, str]] = field(default_factory=list)
    unlisted: list[tuple[int, str, str]] = field(default_factory=list)
    siblings: Counter[str] = field(default_factory=Counter)
    claimed_suffixes: set[str] = field(default_factory=set)
    claimed_folders: set[str] = field(default_factory=set)
    claimed_places: set[str] = field(default_factory=set)

    def add(self, path: str, file: ImageRef) -> None:
        """Adds a file that no source claims.

        Args:
            path: its path below the input.
            file: a reference to it.
        """
        suffix = suffix_of(path)
        if suffix not in self.counts and len(self.counts) >= _MOST_SUFFIXES:
            suffix = ""
        self.counts[suffix] += 1
        _keep_first(self.kept.setdefault(suffix, []), _item(path, file))

    def add_rejected(self, path: str, file: ImageRef) -> None:
        """Adds a file that the source rejects as a whole, perhaps since it is of another format."""
        _keep_first(self.suspects, _item(path, file))

    def add_unlisted(self, path: str, file: ImageRef) -> None:
        """Adds a file of annotations that no split list names."""
        _keep_first(self.unlisted, _item(path, file))

    def add_claimed(self, path: str) -> None:
        """Notes a file that a source claims and that is not named like an image."""
        self.claimed_suffixes.add(suffix_of(path))
        if len(self.claimed_places) < _MOST_FOLDERS:
            self.claimed_places.add(path.rpartition("/")[0])
        self.claimed_folders.add(path[: path.find("/") + 1])

    def merge(self, other: Self) -> None:
        """Adds what was found in another part of the same input."""
        self.counts += other.counts
        for suffix, items in other.kept.items():
            for item in items:
                _keep_first(self.kept.setdefault(suffix, []), item)
        for item in other.suspects:
            _keep_first(self.suspects, item)
        for item in other.unlisted:
            _keep_first(self.unlisted, item)
        self.siblings += other.siblings
        self.claimed_suffixes |= other.claimed_suffixes
        self.claimed_folders |= other.claimed_folders
        self.claimed_places |= other.claimed_places

    def judge(self, whole: ImageRef, own_title: str = "") -> Iterator[Notice]:
        """Yields a notice of each role and extension, and of what known files lose.

        Args:
            whole: a reference to the whole input.
            own_title: the format of the annotations that the source reads, as `FileRole.title`.
        """
        for what, count in sorted(self.siblings.items()):
            yield whole.notice("not_stored", what, count=count)
        candidates = sorted(each for kept in self.kept.values() for each in kept)
        uris = [uri for _, _, uri in (*candidates, *self.suspects, *self.unlisted)]
        if not storage.is_local(whole.uri):
            uris = uris[:MOST_HEADS_ON_STORE]
        heads = dict(zip(uris, storage.map_each(_read_head, uris), strict=True))
        for suffix in sorted(self.counts):
            for each in self._judge_suffix(suffix, heads, own_title):
                yield each.as_notice(whole)
        strays = {
            path
            for _, path, _ in self.unlisted
            if path.rpartition("/")[0] not in self.claimed_places
        }
        for _, path, uri in (*self.suspects, *self.unlisted):
            title = title_of(path, heads.get(uri) or b"")
            if title in KNOWN_TITLES - {own_title} or path in strays:
                patterns = (f"/{escape_glob(path)}",)
                role = FileRole("annotations", title)
                yield Unclaimed(role, (path,), 1, patterns).as_notice(whole)

    def _judge_suffix(
        self, suffix: str, heads: Mapping[str, bytes | None], own_title: str
    ) -> Iterator["Unclaimed"]:
        found: defaultdict[Role, list[tuple[str, str]]] = defaultdict(list)
        for _, path, uri in self.kept[suffix]:
            role = role_of(path, heads.get(uri))
            is_own = own_title == YOLO_TEXT == role.title  # it is read with its image
            found["description" if is_own else role.role].append((path, role.title))
        most = max(found, key=lambda name: len(found[name]))
        for name, files in found.items():
            paths = [path for path, _ in files]
            # The rest is presumed to be like most of them.
            rest = self.counts[suffix] - len(self.kept[suffix]) if name == most else 0
            count = len(paths) + rest
            if not FileRole(name).may_carry:
                continue
            yield Unclaimed(
                FileRole(name, files[0][1]),
                tuple(paths[:_SHOWN]),
                count,
                tuple(self._patterns(suffix, paths, count)),
                image_folder=self._image_folder(paths),
            )

    def _image_folder(self, paths: Sequence[str]) -> str:
        """The only folder that a source reads, if these files are outside it; else empty."""
        folders = self.claimed_folders
        is_apart = folders.isdisjoint(path[: path.find("/") + 1] for path in paths)
        return next(iter(folders)).rstrip("/") if len(folders) == 1 and is_apart else ""

    def _patterns(self, suffix: str, paths: Sequence[str], count: int) -> list[str]:
        """Patterns for `ignore` that leave out exactly these files; empty if there are none."""
        listed = [f"/{escape_glob(path)}" for path in paths]
        if count <= _FEW and count == len(paths):
            return listed
        if suffix and suffix not in self.claimed_suffixes:
            endings = sorted({path.rpartition(".")[2] for path in paths} | {suffix})
            return [f"*.{ending}" for ending in endings]
        folders = {path[: path.find("/") + 1] for path in paths}
        if folders.isdisjoint({"", *self.claimed_folders}):
            return [f"/{escape_glob(folder)}" for folder in sorted(folders)]
        return listed if count == len(paths) else []


@dataclass(frozen=True, slots=True, order=True)
class Unclaimed:
    """Some files of one role that no source claims.

    Attributes:
        role: their role.
        paths: the first of them, below the input.
        count: how many there are.
        patterns: patterns for `ignore` that leave out exactly these; empty if no few do.
        place: the input.
        image_folder: the only folder in the input that a source reads, if these files are outside
            it; empty otherwise.
    """

    role: FileRole
    paths: tuple[str, ...]
    count: int
    patterns: tuple[str, ...] = ()
    place: str = ""
    image_folder: str = ""

    def as_notice(self, whole: ImageRef) -> Notice:
        """A notice that carries it through Beam."""
        given = {
            "paths": self.paths,
            "patterns": self.patterns,
            "image_folder": self.image_folder,
        }
        return whole.replace(features=orjson.dumps(given).decode()).notice(
            "unclaimed", self.role.role, self.role.title, self.count
        )

    @classmethod
    def of_notice(cls, notice: Notice) -> Self:
        """What a notice carries."""
        given, role = orjson.loads(notice.features), cast(Role, notice.reason)
        return cls(
            FileRole(role, notice.detail),
            tuple(given["paths"]),
            notice.count,
            tuple(given["patterns"]),
            notice.uri,
            given["image_folder"],
        )


def role_of(path: str, head: bytes | None) -> FileRole:
    """The role of a file; its head is empty for an empty file, and None if it was not read."""
    if head == b"":
        return FileRole("description")  # it carries nothing
    role = role_of_name(path)
    if role is None:
        by_name = FileRole("description" if is_description_name(path) else "other")
        return by_name if head is None else role_of_head(head, path)
    return FileRole(role.role, title_of(path, head)) if head else role


def _item(path: str, file: ImageRef) -> tuple[int, str, str]:
    """The sort key of a file, with its place: names that tell of labels come first."""
    is_ordinary = _TELLING.search(path.rpartition("/")[2]) is None
    return 2 * path.count("/") + is_ordinary, path, file.uri


def _keep_first(kept: list[tuple[int, str, str]], item: tuple[int, str, str]) -> None:
    if len(kept) < MOST_HEADS or item < kept[-1]:
        insort(kept, item)
        del kept[MOST_HEADS:]


def _read_head(uri: str) -> bytes | None:
    """The first bytes of a file; None if they cannot be read."""
    try:
        return storage.read_range(uri, 0, HEAD_BYTES)
    except OSError:
        return None


def escape_glob(path: str) -> str:
    """A path as a pattern in gitignore's syntax that matches nothing else."""
    escaped = re.sub(r"([\\*?\[\]])", r"\\\1", path)
    return f"{escaped[:-1]}\\ " if escaped.endswith(" ") else escaped
