"""A sketch of an input: the names in two levels of folders, and the first bytes of a few files."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from recordmill.schemas.formatting import show_first
from recordmill.schemas.settings.dataset import SPLIT_NAMES
from recordmill.storage.tfrecord_file import begins_with_frame
from recordmill.transforms.inputs.image_suffixes import IMAGE_ENDINGS

USUAL_WORDS = {word: SPLIT_NAMES[word] for word in ("train", "val", "valid", "validation", "test")}
"""The split words that most collections use, and their splits."""

_WORDS = "|".join(sorted(SPLIT_NAMES, key=len, reverse=True))

_KNOWN_ENDINGS = frozenset(
    {
        *IMAGE_ENDINGS,
        *(".bz2", ".cfg", ".csv", ".db", ".h5", ".hdf5", ".html", ".idx", ".ini", ".ipynb"),
        *(".json", ".jsonl", ".labels", ".log", ".manifest", ".mat", ".md", ".names", ".npy"),
        *(".npz", ".parquet", ".pbtxt", ".pdf", ".pickle", ".pkl", ".pth", ".py", ".rst", ".sh"),
        *(".tar", ".tgz", ".tsv", ".txt", ".xlsx", ".xls", ".xml", ".yaml", ".yml", ".zip"),
    }
)


def is_unknown_file(path: str) -> bool:
    """Tells if a file's name has none of the usual extensions, such as `part-r-00000`."""
    name = posixpath.basename(path).lower().removesuffix(".gz")
    return (
        not name.startswith(("_", "."))
        and posixpath.splitext(name)[1] not in _KNOWN_ENDINGS
        and any(map(str.isdigit, name))
    )


ARCHIVE_ENDINGS = (".tar", ".tar.gz", ".tgz", ".zip")


@dataclass(frozen=True)
class Names:
    """The contents of one folder, sorted.

    There are up to ten thousand names, so answers about them are cached.

    Attributes:
        files: names of files.
        folders: names of folders.
    """

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    @cached_property
    def images(self) -> tuple[str, ...]:
        """The files with an image's extension."""
        return self.ending(*IMAGE_ENDINGS)

    @cached_property
    def _image_stems(self) -> frozenset[str]:
        return frozenset(stems_of(self.images))

    @cached_property
    def _images_by_stem(self) -> Mapping[str, str]:
        return {posixpath.splitext(name)[0]: name for name in reversed(self.images)}

    def find_image(self, name: str) -> str | None:
        """Returns the image with this name, or with this name and an extension; None if none is."""
        if name.lower().endswith(IMAGE_ENDINGS) and name in self._image_names:
            return name
        return self._images_by_stem.get(name)

    @cached_property
    def _image_names(self) -> frozenset[str]:
        return frozenset(self.images)

    @cached_property
    def _suffixes(self) -> frozenset[str]:
        return frozenset(name.rpartition(".")[2].lower() for name in self.files)

    def ending(self, *endings: str) -> tuple[str, ...]:
        """Returns the files with one of these extensions (with a dot), in either case."""
        if self._suffixes.isdisjoint(ending.rpartition(".")[2] for ending in endings):
            return ()
        return tuple(name for name in self.files if name.lower().endswith(endings))

    def beside_images(self, ending: str) -> tuple[str, ...]:
        """Returns the files with this extension that are named after an image in their folder."""
        return tuple(
            name for name in self.ending(ending) if posixpath.splitext(name)[0] in self._image_stems
        )


def join_names(names: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Yields the paths of the files in several folders, whose names are given by folder."""
    for folder, inner in names.items():
        for name in inner:
            yield posixpath.join(folder, name)


def stems_of(names: Iterable[str]) -> set[str]:
    """Returns the names without their extensions."""
    return {posixpath.splitext(name)[0] for name in names}


@dataclass(frozen=True, slots=True)
class FolderSketch:
    """A sketch of an input.

    Attributes:
        names: the contents of the input itself (key: the empty string), of the folders in it, and
            of a few annotation folders below those (`train/labels`); of a large input, not all
            folders.
        heads: the first bytes of some files, by path: at most 1 KiB, or 64 KiB of JSON. For
            Parquet, the columns and the first row as CSV; for an archive, its first label, as
            `shard.tar/.cls`, and its first JSON, as `shard.tar/.json`.
        archives: the contents of some archives, by path.
        only: the file's name if the input is a single file, otherwise empty. If it is a table or a
            JSON file, `names` includes the images next to it.
        root: the full path or URL of the input, with which cells of tables may begin; empty:
            unknown.
        deeper: the contents of some of the folders further down, which only class folders need.
        ignored: the patterns of `ignore` that the user has given, which advice has to repeat.
    """

    names: Mapping[str, Names] = field(default_factory=dict)
    heads: Mapping[str, bytes] = field(default_factory=dict)
    archives: Mapping[str, "FolderSketch"] = field(default_factory=dict)
    only: str = ""
    root: str = ""
    deeper: Mapping[str, Names] = field(default_factory=dict)
    ignored: Sequence[str] = ()

    @staticmethod
    def of(paths: Iterable[str], heads: Mapping[str, bytes] | None = None) -> "FolderSketch":
        """Makes the sketch of a list of paths."""
        contents: dict[str, tuple[set[str], set[str]]] = defaultdict(
            lambda: (set(), set()), {"": (set(), set())}
        )
        for path in paths:
            *above, name = path.split("/")
            for depth, folder in enumerate(above):
                contents["/".join(above[:depth])][1].add(folder)
            contents["/".join(above)][0].add(name)
        names = {
            at: Names(tuple(sorted(files)), tuple(sorted(folders)))
            for at, (files, folders) in sorted(contents.items())
        }
        return FolderSketch(names, heads or {})

    @property
    def top(self) -> Names:
        """The contents of the input itself."""
        return self.at("")

    @property
    def contents(self) -> dict[str, Names]:
        """The contents of all folders that were read, by path."""
        return {**self.names, **self.deeper}

    @property
    def images(self) -> dict[str, Sequence[str]]:
        """The images that were seen in each folder that has some."""
        return {path: each.images for path, each in self.contents.items() if each.images}

    def at(self, folder: str) -> Names:
        """Returns the contents of a folder; empty if it was not read."""
        return self.names.get(folder, Names())

    def has_folder(self, path: str) -> bool:
        """Returns whether there is such a folder; the empty string is the input."""
        above, _, name = path.rpartition("/")
        return not path or name in self.at(above).folders

    @property
    def unknown_files(self) -> dict[str, str]:
        """The first file of each form of names without a usual extension.

        The form is a pattern in gitignore's syntax, with `*` in place of numbers.
        """
        found: dict[str, str] = {}
        for at, names in self.names.items():
            for name in filter(is_unknown_file, names.files):
                form = re.sub(r"[0-9]+", "*", re.sub(r"([\\\[\]?*!#])", r"\\\1", name))
                found.setdefault(form, posixpath.join(at, name))
        return found

    @property
    def record_files(self) -> dict[str, str]:
        """Those of `unknown_files` that begin like TFRecord files, with their forms."""
        forms = self.unknown_files.items()
        found = {path: form for form, path in forms if begins_with_frame(self.heads.get(path, b""))}
        return found

    @property
    def split_folders(self) -> tuple[str, ...]:
        """The folders in the input, if all of them are named after splits."""
        folders = self.top.folders
        return folders if folders and all(name.lower() in SPLIT_NAMES for name in folders) else ()

    def splits_by_folder(self, folders: Collection[str]) -> dict[str, Any]:
        """Returns the settings that take splits from these folders.

        The result is empty unless all folders are named after splits.
        """
        return (
            given_splits("from_folders", folders) if set(folders) <= set(self.split_folders) else {}
        )

    @property
    def image_folders(self) -> tuple[str, ...]:
        """The folders in the input that directly contain images."""
        return tuple(folder for folder in self.top.folders if self.at(folder).images)

    def holds_images(self, folder: str) -> bool:
        """Returns whether images were seen in a folder, or anywhere below it."""
        if self.at(folder).images:  # most do, and there may be thousands
            return True
        return any(
            each.images and f"{path}/".startswith(f"{folder}/")
            for path, each in (*self.names.items(), *self.deeper.items())
        )

    @property
    def has_images(self) -> bool:
        """Whether any images were seen."""
        return any(names.images for names in self.names.values())

    def all_ending(self, *endings: str) -> tuple[str, ...]:
        """Returns the paths of all files with one of these extensions."""
        found = {at: names.ending(*endings) for at, names in self.names.items()}
        return tuple(join_names(found))

    def all_matching(self, matches: Callable[[str], bool]) -> tuple[str, ...]:
        """Returns the paths of all files whose names match."""
        found = {at: filter(matches, names.files) for at, names in self.names.items()}
        return tuple(join_names(found))

    @property
    def archive_splits(self) -> dict[str, Any]:
        """Returns the settings that take splits from the names of archives.

        The first split word in each name counts. The result is empty unless all archives have one.
        """
        found = [
            re.search(_WORDS, name, re.IGNORECASE) for name in self.all_ending(*ARCHIVE_ENDINGS)
        ]
        return given_splits("from_source", {match[0] if match else "" for match in found})

    def first_head(self, folder: str, *endings: str, sign: bytes = b"") -> bytes:
        """Returns the first bytes of the first matching file in a folder.

        A matching file has one of these extensions, and `sign` in its first bytes. The result is
        empty if there is none.
        """
        named = {
            path: head
            for path, head in self.heads.items()
            if path.lower().endswith(endings) and sign in head
        }
        return next(
            (head for path, head in named.items() if posixpath.dirname(path) == folder), b""
        )

    def below(self, folder: str) -> "FolderSketch":
        """Returns the names in a folder of the input."""
        inner = {
            path: names for path, names in self.names.items() if f"{path}/".startswith(f"{folder}/")
        }
        return FolderSketch({path[len(folder) + 1 :]: names for path, names in inner.items()})


Question = tuple[str, tuple[str, ...]]
"""What the user must say or do, as a sentence, and the YAML keys with which that is done."""


@dataclass(frozen=True, slots=True)
class Recognized:
    """Settings under which a source can read an input.

    Attributes:
        settings: the settings, as a user would write them in YAML.
        why: the files that led to them: the end of a sentence `it looks like ...`.
        is_firm: whether the names are good evidence; if not, this is used only if nothing else
            fits.
        needs: what the user must say or do first, as a sentence; None: nothing.
        needed_keys: YAML keys with which the user has said or done it.
        questions: what else the user must say or do, each with its keys.
        left_out: columns of a table that are not stored, unless the user's settings name them.
        only_if: YAML keys without which this is not offered; empty: it always is.
        is_urgent: whether what the user must say comes before a choice between several layouts.
        tables: the tables that name images and their classes; empty for other layouts.
        class_folders: folders next to them that may be classes.
        replaces_folders: whether it names the classes of images in folders, which are then none.
    """

    settings: Mapping[str, Any]
    why: str
    is_firm: bool = True
    needs: str | None = None
    needed_keys: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    left_out: tuple[str, ...] = ()
    only_if: tuple[str, ...] = ()
    is_urgent: bool = False
    tables: tuple[str, ...] = ()
    class_folders: frozenset[str] = frozenset()
    replaces_folders: bool = False

    @property
    def kind(self) -> str:
        """The name of the source."""
        return str(self.settings["source"]["kind"])

    def describe(self, left_out: Sequence[str]) -> str:
        """Returns what led to the settings, and which columns are left out."""
        return self.why + (f" (left out: {show_first(left_out)})" if left_out else "")


def split_for_word(word: str) -> str | None:
    """Returns the split that a word stands for; None if it is not a split word.

    The word may have a year after it (`val2017`).
    """
    return SPLIT_NAMES.get(word.lower().rstrip("0123456789"))


def splits_for_words(words: Iterable[str]) -> dict[str, str]:
    """Returns the splits of those words that stand for splits."""
    return {word: split for word in words if (split := split_for_word(word))}


def likely_splits(folders: Iterable[str]) -> dict[str, str]:
    """Returns the folders whose names contain a split word, such as `seg_train`, and their splits.

    Empty unless there are several splits, and at least as many such folders as others.
    """
    found: dict[str, str] = {}
    for folder in (names := sorted(folders)):
        words = map(split_for_word, re.findall(r"[A-Za-z]+", folder))
        if split := next(filter(None, words), None):
            found[folder] = split
    return found if len(set(found.values())) > 1 and 2 * len(found) >= len(names) else {}


def begins_with_split(name: str) -> bool:
    """Returns whether a name begins with a split word, as `train_labels.csv` does."""
    return name.lower().startswith(tuple(SPLIT_NAMES))


def split_pattern(names: Iterable[str]) -> tuple[str, list[str]]:
    """Returns a pattern for names that differ only in a split word, and their words.

    The pattern is empty if the names differ in another way. Otherwise, it has a group `split`, and
    matches any numbers after the word.
    """
    parts = [re.fullmatch(rf"(.*?)((?i:{_WORDS}))(?![a-z])(.*)", name) for name in names]
    around = {(part[1], re.sub("[0-9]+", "[0-9]+", re.escape(part[3]))) for part in parts if part}
    if not all(parts) or len(around) != 1:
        return "", [""]
    ((before, after),) = around
    found = [part[2] for part in parts if part]
    order = list(SPLIT_NAMES)
    choices = "|".join(sorted(set(found), key=lambda word: (order.index(word.lower()), word)))
    return f"{re.escape(before)}(?P<split>{choices}){after}", found


def given_splits(
    key: str, words: Iterable[str], known: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Returns the settings that map words to splits; `key` is `from_source` or `from_folders`.

    Empty if no word is a split word, or a word is empty. Any other word becomes a split of its own
    name, unless `known` has its split.
    """
    order = list(dict.fromkeys(SPLIT_NAMES.values()))
    splits = {word: split_for_word(word) or (known or {}).get(word, "") for word in set(words)}
    found = sorted(
        splits, key=lambda word: (order.index(splits[word]) if splits[word] else 99, word)
    )
    if not any(splits.values()) or not all(found):
        return {}
    return {
        "splits": {key: {word: splits[word] or re.sub(r"[^\w.-]", "_", word) for word in found}}
    }
