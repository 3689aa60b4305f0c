"""Marks images to be excluded or to get another class, in the two files that a conversion reads.

The files are those that the dataset was made with, or new ones. Nothing else is ever written.
"""

import csv
import os
import shlex
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import Literal

import numpy as np
import yaml
from numpy.typing import NDArray

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.schemas.corrections import HEADER, Corrections
from recordmill.schemas.dataset.file_names import CONFIGURATION
from recordmill.schemas.errors import UsageError
from recordmill.schemas.rejection import Exclusions
from recordmill.schemas.yaml_core import load_yaml
from recordmill.storage.dataset_files import MOST_OBJECT_BYTES, find_pointer, split_version
from recordmill.viewing.image_table import ImageTable

NOT_MARKED, EXCLUDED, CORRECTED = 0, 1, 2
"""What is to happen to an image."""

MarkAction = Literal["exclude", "correct", "clear"]


@dataclass(frozen=True, slots=True)
class MarkFiles:
    """The files of marks.

    Attributes:
        exclude: the path of the list of images to leave out.
        corrections: the path of the table of classes.
    """

    exclude: str
    corrections: str


@dataclass(frozen=True, slots=True)
class MarksState:
    """What the page shows of marks.

    Attributes:
        excluded: the number of images that are to be excluded.
        corrected: the number of images that are to get another class.
        files: the files of the marks.
        command: makes the dataset again with them; empty without marks.
        problem: why images cannot be marked; None if they can.
        no_classes: why images cannot get another class; None if they can.
        classes: the classes that images can get.
    """

    excluded: int
    corrected: int
    files: MarkFiles
    command: str
    problem: str | None
    no_classes: str | None
    classes: Sequence[str]


@dataclass(frozen=True, slots=True)
class MarkRequest:
    """What the page asks to mark.

    Attributes:
        action: what to do; `clear` removes marks.
        images: the numbers of the images; None for all that the query selects.
        query: a selection.
        class_name: the class that the images are to get.
    """

    action: MarkAction
    images: tuple[int, ...] | None = None
    query: str = ""
    class_name: str = ""


def choose_files(
    dataset: Dataset, title: str, exclude: str | None, corrections: str | None
) -> MarkFiles:
    """Returns the files for the marks of a dataset.

    Args:
        dataset: the dataset.
        title: its name, for new files.
        exclude: the user's choice, if there is one.
        corrections: the same.

    Raises:
        UsageError: the dataset was made with a list that is not there, or is another one by now.
    """
    made_with = _read_configuration(dataset)
    digests = dataset.marker.plan.recipe
    chosen = {}
    for name, given, suffix in (
        ("exclude", exclude, "exclude.txt"),
        ("corrections", corrections, "corrections.tsv"),
    ):
        path = given or made_with.get(name) or f"{title}.{suffix}"
        if name in digests and given is None and not os.path.exists(os.path.expanduser(path)):
            raise UsageError(
                f"the dataset was made with --set {name}={path}, which is not in this folder: "
                f"start recordmill view where it is, or name it with --{name}"
            )
        chosen[name] = os.path.abspath(os.path.expanduser(path))
    return MarkFiles(chosen["exclude"], chosen["corrections"])


def _read_configuration(dataset: Dataset) -> dict[str, str]:
    """Returns the settings with which a dataset was made whose values are text."""
    try:
        path = storage.join(dataset.folder, CONFIGURATION)
        written = load_yaml(storage.read_whole(path, MOST_OBJECT_BYTES))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    if not isinstance(written, dict):
        return {}
    return {key: value for key, value in written.items() if isinstance(value, str)}


def find_obstacle(dataset: Dataset) -> str | None:
    """Returns why a dataset cannot be made again without some images; None if it can."""
    marker = dataset.marker_or_none
    if marker is None:
        return "only datasets that recordmill run has published can be made again without images"
    if not marker.run.inputs:
        return "recordmill.json does not say from which inputs the dataset was made"
    for path in marker.run.inputs.values():
        if storage.is_local(path) and not os.path.exists(path):
            return (
                f"the dataset was made from {path}, which is not in this folder: start recordmill "
                "view where it is"
            )
    return None


def refuse_classes(dataset: Dataset) -> str | None:
    """Returns why images cannot get other classes; None if they can."""
    marker = dataset.marker_or_none
    if marker is None or not dataset.labels:
        return "the images have no classes"
    if marker.counted is not None or any(each.listed for each in marker.annotations.values()):
        return "these images have annotations: correct those"
    return None


def show_command(dataset: Dataset, files: MarkFiles, used: Collection[str]) -> str:
    """Returns the command that makes a dataset again with the files of marks.

    Args:
        dataset: the dataset.
        files: the files.
        used: the settings whose files have marks.
    """
    folder, parent = _whole_path(dataset.folder), os.path.dirname(_whole_path(dataset.folder))
    has_versions = split_version(os.path.basename(folder)) and find_pointer(parent)
    words = ["recordmill", "run"]
    for name, path in sorted(dataset.marker.run.inputs.items()):
        words += ["--input", f"{name}={_whole_path(path)}" if name else _whole_path(path)]
    words += ["--config", storage.join(folder, CONFIGURATION)]
    words += ["--output", parent if has_versions else folder, "--update"]
    words += ["--versions"] if has_versions else []
    for name in used:
        words += ["--set", f"{name}={_quote_yaml(getattr(files, name))}"]
    return shlex.join(words)


def _whole_path(path: str) -> str:
    return os.path.abspath(path) if storage.is_local(path) else path


def _quote_yaml(path: str) -> str:
    """Returns a path as a value of YAML, in which some signs have a meaning."""
    if all(letter.isalnum() or letter in "/._-" for letter in path):
        return path
    return "'" + path.replace("'", "''") + "'"


@dataclass(slots=True)
class Marks:
    """The marks of a dataset's images.

    Attributes:
        dataset: the dataset.
        files: where they are written; None if images cannot be marked.
        problem: why they cannot.
        table: the values of all images.
        states: by image, `NOT_MARKED`, `EXCLUDED` or `CORRECTED`.
        classes: the classes that images are to get, by the images' numbers.
        files_excluded: the keys of files that the list of exclusions names, by the numbers of the
            images that were annotated from them.
    """

    dataset: Dataset
    files: MarkFiles | None
    problem: str | None
    table: ImageTable
    states: NDArray[np.uint8] = field(init=False)
    classes: dict[int, str] = field(default_factory=dict)
    files_excluded: dict[int, str] = field(default_factory=dict)
    _writing: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Reads the marks that are in the files already."""
        self.states = np.zeros(len(self.table), np.uint8)
        if self.files is None:
            return
        try:
            exclusions = Exclusions.parse(_read_lines(self.files.exclude))
            corrections = Corrections.parse(_read_lines(self.files.corrections))
            self._find_files(exclusions)
        except (OSError, ValueError) as error:
            self.files, self.problem = None, f"the files of marks cannot be read: {error}"
            return
        self._find_marked(exclusions, corrections)

    def _find_files(self, exclusions: Exclusions) -> None:
        """Finds the images that were annotated from a file that is excluded."""
        if not exclusions or not self.dataset.marker.annotations:
            return
        for number, (_, row) in enumerate(self.dataset.rows()):
            for file in row.other_files:
                if file["key"] in exclusions.keys or file["sha256"] in exclusions.digests:
                    self.files_excluded[number] = file["key"]

    def _find_marked(self, exclusions: Exclusions, corrections: Corrections) -> None:
        for number in range(len(self.table)) if exclusions or corrections else ():
            key, sha256 = self.table.key(number), self.table.sha256(number)
            is_listed = key in exclusions.keys or sha256 in exclusions.digests
            if is_listed or number in self.files_excluded:
                self.states[number] = EXCLUDED
            elif corrections.judge(key, sha256) == "corrected":
                wanted = corrections.by_key[key].class_name
                if [wanted] != self.table.classes_of(number):
                    self.states[number], self.classes[number] = CORRECTED, wanted

    def state(self) -> MarksState:
        """Returns what the page shows."""
        excluded, corrected = (int((self.states == each).sum()) for each in (EXCLUDED, CORRECTED))
        files, command = self.files or MarkFiles("", ""), ""
        if self.files is not None and excluded + corrected:
            counts = {"exclude": excluded, "corrections": corrected}
            made_with = self.dataset.marker.plan.recipe
            used = [name for name, count in counts.items() if count or name in made_with]
            command = show_command(self.dataset, self.files, used)
        return MarksState(
            excluded=excluded,
            corrected=corrected,
            files=files,
            command=command,
            problem=self.problem,
            no_classes=refuse_classes(self.dataset),
            classes=sorted(self.dataset.labels),
        )

    def mark(self, numbers: Iterable[int], action: MarkAction, class_name: str = "") -> None:
        """Marks images, and writes the files.

        Args:
            numbers: of the images.
            action: what to do; `clear` removes their marks.
            class_name: the class that they get, for `correct`.

        Raises:
            UsageError: the images cannot be marked in this way.
            OSError: a file cannot be written.
        """
        if self.files is None:
            raise UsageError(f"images cannot be marked: {self.problem}")
        if action == "correct":
            self._check_class(class_name)
        with self._writing:
            chosen = [number for number in numbers if 0 <= number < len(self.table)]
            marked = [number for number in chosen if self.states[number] != NOT_MARKED]
            if action != "exclude":
                self._check_files(self.files, marked)
            self._forget(self.files, marked)
            for number in marked:
                self.states[number] = NOT_MARKED
                self.classes.pop(number, None)
            if action == "exclude":
                _append(self.files.exclude, self._exclusion_lines(chosen))
                self.states[chosen] = EXCLUDED
            if action == "correct":
                changed = [each for each in chosen if self.table.classes_of(each) != [class_name]]
                lines = self._correction_lines(changed, class_name)
                _append(self.files.corrections, lines, _as_row(HEADER))
                self.states[changed] = CORRECTED
                self.classes.update(dict.fromkeys(changed, class_name))

    def _check_files(self, files: MarkFiles, numbers: Iterable[int]) -> None:
        for number in numbers:
            if file := self.files_excluded.get(number):
                raise UsageError(
                    f"{self.table.key(number)} is excluded by a line for {file}: remove that line "
                    f"from {files.exclude}, and start recordmill view again"
                )

    def _check_class(self, class_name: str) -> None:
        if problem := refuse_classes(self.dataset):
            raise UsageError(f"the images cannot get another class: {problem}")
        if class_name not in self.dataset.labels:
            raise UsageError(f"there is no class {class_name!r:.100}: choose one of the dataset's")

    def _exclusion_lines(self, numbers: Iterable[int]) -> Iterator[str]:
        for number in numbers:
            yield f"{self._exclusion_of(number)}\n"

    def _exclusion_of(self, number: int) -> str:
        """Returns the line that names an image: its key, unless that would be several lines."""
        key = self.table.key(number)
        if {"\n", "\r"}.isdisjoint(key):
            return f"key:{key}"
        return f"sha256:{self.table.sha256(number)}"

    def _correction_lines(self, numbers: Iterable[int], class_name: str) -> Iterator[str]:
        for number in numbers:
            yield _as_row((self.table.key(number), str(self.table.sha256(number)), class_name))

    def _forget(self, files: MarkFiles, numbers: Collection[int]) -> None:
        """Removes the lines of images from the files."""
        keys, digests = set(map(self.table.key, numbers)), set(map(self.table.sha256, numbers))
        lines = {f"key:{key}" for key in keys} | {f"sha256:{digest}" for digest in digests}
        if any(self.states[number] == EXCLUDED for number in numbers):
            kept = [line for line in _read_lines(files.exclude) if line.rstrip("\r\n") not in lines]
            _replace(files.exclude, kept)
        if any(self.states[number] == CORRECTED for number in numbers):
            rows = csv.reader(_read_lines(files.corrections), delimiter="\t")
            others = [row for row in rows if row and row[0] not in keys]
            _replace(files.corrections, map(_as_row, others))


def _as_row(values: Sequence[str]) -> str:
    stream = StringIO()
    csv.writer(stream, delimiter="\t", lineterminator="\n").writerow(values)
    return stream.getvalue()


def _read_lines(path: str) -> list[str]:
    """Returns the lines of a file with their line breaks; none if it does not exist."""
    if storage.size_of(path) is None:
        return []
    text = storage.read_whole(path, MOST_OBJECT_BYTES).decode("utf-8-sig")
    return list(StringIO(text, newline=""))


def _append(path: str, lines: Iterable[str], header: str = "") -> None:
    """Adds lines to the end of a file, which is made with a header if there are any."""
    text = "".join(lines)
    if not text:
        return
    before = _read_lines(path)
    with open(path, "a", encoding="utf-8", newline="") as file:
        if not before:
            file.write(header)
        elif not before[-1].endswith("\n"):
            file.write("\n")
        file.write(text)


def _replace(path: str, lines: Iterable[str]) -> None:
    """Replaces a file, whole or not at all."""
    storage.write_file(path, "".join(lines).encode(), f"{path}.tmp")
