"""Files that no source claims: they are gathered while an input is listed, and judged at its end.

Names decide the roles of most files; the first bytes of a few decide the rest.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self, cast

import orjson

from recordmill import storage
from recordmill.schemas.image_ref import ImageRef, Notice
from recordmill.schemas.rejection import Rejected
from recordmill.storage.packed_files import read_start
from recordmill.storage.stores.store import in_parallel
from recordmill.transforms.inputs.class_lists import name_levels, says_nothing_new
from recordmill.transforms.inputs.file_groups import (
    Candidate,
    ClaimedFiles,
    FileGroup,
    UnreadFiles,
    first_folder_of,
    has_digit,
    patterns_of_all,
)
from recordmill.transforms.inputs.file_roles import (
    HEAD_BYTES,
    KNOWN_TITLES,
    PROSE,
    YOLO_TEXT,
    FileRole,
    Role,
    is_description_name,
    role_of_head,
    role_of_name,
    suffix_of,
    title_of,
)
from recordmill.transforms.inputs.image_suffixes import is_image_name

MOST_HEADS_ON_STORE = 28
"""Files of a run on stores whose first bytes are read, whatever their extensions.

Recognition makes up to 72 requests for folders further down and for images that may be masks.
"""

_MOST_PROSE = 3
"""Texts of sentences with one extension; more are captions, one for each image."""

_TEXT_BYTES = 2**14
"""Bytes of a file that are read if its name says nothing: a list may follow prose."""

_TEXTS = frozenset(("txt", "json", "yaml", "yml", "names", "labels"))
"""Extensions of files that may list the classes."""

_SHOWN = 3


@lru_cache(64)
def _compile_siblings(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Returns one pattern for all, with a group for each: a path is matched once."""
    return re.compile("|".join(f"({_as_regex(each)})" for each in patterns), re.IGNORECASE)


def _as_regex(pattern: str) -> str:
    """Returns a pattern such as `captions_*.json` or `ImageSets/**` as a regular expression.

    It matches at any depth. `*` stands for any characters but slashes, `**` for any.
    """
    parts = re.split(r"(\*\*|\*)", pattern)
    inner = "".join({"**": ".*", "*": "[^/]*"}.get(each, re.escape(each)) for each in parts)
    return rf"(?:.*/)?{inner}"


def find_sibling(path: str, siblings: Mapping[str, str]) -> str | None:
    """Returns what is not stored of a file that downloads of a format contain.

    Returns None for other files.

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
        files: those in folders.
        members: those in archives, by their paths there.
        suspects: files that the source rejects as a whole.
        unlisted: files of annotations that no split list names.
        siblings: numbers of known files of the format, by what is not stored.
    """

    files: UnreadFiles = field(default_factory=UnreadFiles)
    members: UnreadFiles = field(default_factory=UnreadFiles)
    suspects: FileGroup = field(default_factory=FileGroup)
    unlisted: FileGroup = field(default_factory=FileGroup)
    siblings: Counter[str] = field(default_factory=Counter)

    def merge(self, other: Self) -> None:
        """Adds what was found in another part of the same input."""
        self.files.merge(other.files)
        self.members.merge(other.members)
        self.suspects.merge(other.suspects)
        self.unlisted.merge(other.unlisted)
        self.siblings += other.siblings

    def judge(
        self,
        whole: ImageRef,
        own_title: str | None = None,
        most_heads: int = MOST_HEADS_ON_STORE,
        folders: Iterable[str] = (),
    ) -> Iterator[Notice]:
        """Yields a notice of each role and extension, and of what known files lose.

        Args:
            whole: a reference to the whole input.
            own_title: the format of the annotations that the source reads, as `FileRole.title`.
            most_heads: files whose first bytes are read if the input is on a store.
            folders: the folders of images, if these name the classes.
        """
        for what, count in sorted(self.siblings.items()):
            yield whole.notice("not_stored", what, count=count)
        candidates = [
            *self.files.candidates,
            *self.members.candidates,
            *self.suspects.kept,
            *self.unlisted.kept,
        ]
        if not storage.is_local(whole.uri):
            # Names decide about most of the others.
            doubtful = [each for each in candidates if role_of_name(each.path) is None]
            candidates = [*dict.fromkeys((*doubtful, *candidates))][:most_heads]
        heads = dict(zip(candidates, _read_heads(candidates), strict=True))
        levels = name_levels(folders)
        heads |= dict.fromkeys(_find_general(heads, levels), b"")
        for found in (
            *_judge_files(self.files, heads, own_title),
            *_judge_files(self.members, heads, None, are_members=True),
            *self._judge_suspects(heads, own_title),
        ):
            yield found.as_notice(whole)

    def _judge_suspects(
        self, heads: Mapping[Candidate, bytes | None], own_title: str | None
    ) -> Iterator["Unclaimed"]:
        """Yields files of another known format, and files that no split list should have named.

        No split list names any file in the folders of the latter.
        """
        read = self.files.claimed.folders
        for group, are_known in ((self.suspects, True), (self.unlisted, False)):
            by_role: defaultdict[FileRole, list[str]] = defaultdict(list)
            for each in group.kept:
                found = role_of(each.path, heads.get(each), _TEXT_BYTES)
                is_stray = not are_known and posixpath.dirname(each.path) not in read
                is_list = found.role == "list" and not has_digit(each.path)
                if found.title in KNOWN_TITLES - {own_title} or is_stray or is_list:
                    by_role[found].append(each.path)
            most = max(by_role, key=lambda role: len(by_role[role]), default=None)
            for role, paths in by_role.items():
                count = len(paths)
                if role == most:
                    count += group.count - len(group.kept)
                patterns = tuple(patterns_of_all(group, paths, self.files.claimed))
                yield Unclaimed(role, tuple(paths[:_SHOWN]), count, patterns)


def _judge_files(
    unread: UnreadFiles,
    heads: Mapping[Candidate, bytes | None],
    own_title: str | None,
    are_members: bool = False,
) -> Iterator["Unclaimed"]:
    for suffix in sorted(unread.by_suffix):
        group = unread.by_suffix[suffix]
        found: defaultdict[Role, list[tuple[Candidate, str]]] = defaultdict(list)
        for candidate, role in _find_roles(group, heads):
            is_own = own_title == YOLO_TEXT == role.title  # it is read with its image
            found["description" if is_own else role.role].append((candidate, role.title))
        most = max(found, key=lambda name: len(found[name]))
        for name, files in found.items():
            if not FileRole(name).may_carry:
                continue
            count = len(files)
            if name == most:  # the rest is presumed to be like most of them
                count += group.count - len(group.kept)
            paths = [candidate.path for candidate, _ in files]
            patterns = patterns_of_all(group, paths, unread.claimed, has_images="image" in found)
            shown = [_show(candidate, are_members) for candidate, _ in files[:_SHOWN]]
            folder = None
            if not are_members:
                folder = _image_folder(group, paths, unread.claimed)
            yield Unclaimed(
                FileRole(name, files[0][1]),
                tuple(shown),
                count,
                tuple(patterns),
                image_folder=folder,
                are_members=are_members,
            )


def _find_roles(
    group: FileGroup, heads: Mapping[Candidate, bytes | None]
) -> Iterator[tuple[Candidate, FileRole]]:
    """Yields the roles of the files that are kept of a group."""
    roles = [(each, role_of(each.path, heads.get(each), _TEXT_BYTES)) for each in group.kept]
    texts = [each for each, role in roles if role.title == PROSE]
    for each, role in roles:
        if role.title == PROSE and (len(texts) > _MOST_PROSE or not _is_about_all(each)):
            role = FileRole("other", "text")
        yield each, role


def _is_about_all(text: Candidate) -> bool:
    """Returns whether a text is not about the image that has its name: `1.jpg.json`, `1.json`."""
    stem = posixpath.splitext(posixpath.basename(text.path))[0]
    if is_image_name(stem):
        return False
    if text.file.length >= 0 or not storage.is_local(text.uri):  # asking would take a request
        return not has_digit(text.path)
    try:
        names = storage.folder_entries(posixpath.dirname(text.uri), start=f"{stem}.")
    except OSError:
        return False
    return not any(is_image_name(name) and posixpath.splitext(name)[0] == stem for name in names)


def _show(candidate: Candidate, is_member: bool) -> str:
    archive = candidate.uri.rpartition("/")[2]
    return f"{archive}/{candidate.path}" if is_member else candidate.path


def _image_folder(group: FileGroup, paths: Sequence[str], claimed: ClaimedFiles) -> str | None:
    """Returns the only folder that a source reads; None if it reads several, or these files."""
    around = set(map(first_folder_of, paths))
    if group.count > len(group.kept):
        around |= {place.first_folder for place in group.places}
    is_apart = claimed.first_folders.isdisjoint(around) and not group.has_more_places
    if len(claimed.first_folders) != 1 or not is_apart:
        return None
    (folder,) = claimed.first_folders
    return folder or None


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
            it; None otherwise.
        are_members: whether they are in archives, so that the patterns are for their paths there.
        words: if images have words that may name their splits, these.
    """

    role: FileRole
    paths: tuple[str, ...]
    count: int
    patterns: tuple[str, ...] = ()
    place: str = ""
    image_folder: str | None = None
    are_members: bool = False
    words: tuple[str, ...] = ()

    def as_notice(self, whole: ImageRef) -> Notice:
        """Returns a notice that carries it through Beam."""
        given = {
            "paths": self.paths,
            "patterns": self.patterns,
            "image_folder": self.image_folder,
            "are_members": self.are_members,
            "words": self.words,
        }
        return whole.replace(features=orjson.dumps(given).decode()).notice(
            "unclaimed", self.role.role, self.role.title, self.count
        )

    @classmethod
    def of_notice(cls, notice: Notice) -> Self:
        """Returns what a notice carries."""
        given, role = orjson.loads(notice.features), cast(Role, notice.reason)
        return cls(
            FileRole(role, notice.detail),
            tuple(given["paths"]),
            notice.count,
            tuple(given["patterns"]),
            notice.uri,
            given["image_folder"],
            given["are_members"],
            tuple(given["words"]),
        )


def role_of(path: str, head: bytes | None, most: int = HEAD_BYTES) -> FileRole:
    """Returns the role of a file.

    Args:
        path: the file.
        head: its first bytes; empty for an empty file, None if they were not read.
        most: how many bytes were asked for.
    """
    if head == b"":
        return FileRole("description")  # it carries nothing
    role = role_of_name(path)
    if role is None:
        if head is not None:
            return role_of_head(head, path, most)
        return FileRole("description" if is_description_name(path) else "other")
    return FileRole(role.role, title_of(path, head) or role.title) if head else role


def _find_general(
    heads: Mapping[Candidate, bytes | None], levels: Collection[frozenset[str]]
) -> Iterator[Candidate]:
    """Yields the files that say nothing new of any image: they are about the collection.

    Many files of different names are about one image each.
    """
    found: defaultdict[str | None, list[Candidate]] = defaultdict(list)
    for each, head in heads.items():
        if _adds_nothing(each, head, levels) and _is_about_all(each):
            found[suffix_of(each.path)].append(each)
    for files in found.values():
        if len({posixpath.basename(each.path) for each in files}) <= _MOST_PROSE:
            yield from files


def _adds_nothing(
    candidate: Candidate, head: bytes | None, levels: Collection[frozenset[str]]
) -> bool:
    """Whether a file only repeats the names of class folders, or describes the collection."""
    is_text = suffix_of(candidate.path) in _TEXTS
    return (
        bool(head)
        and is_text
        and len(head or b"") < _TEXT_BYTES
        and says_nothing_new(head or b"", levels)
    )


def _read_heads(candidates: Sequence[Candidate]) -> list[bytes | None]:
    if all(storage.is_local(each.uri) for each in candidates):
        return list(map(_read_head, candidates))
    return in_parallel(_read_head, candidates)


def _read_head(candidate: Candidate) -> bytes | None:
    """Returns the first bytes of a file; None if they cannot be read."""
    is_text = suffix_of(candidate.path) in _TEXTS or role_of_name(candidate.path) is None
    most = _TEXT_BYTES if is_text else HEAD_BYTES
    try:
        return read_start(candidate.file, most)
    except (OSError, Rejected):
        return None
