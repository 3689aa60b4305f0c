"""Follows all printed commands, and compares the datasets at their ends with what is meant."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from peer import read_dataset
from printed_commands import Run, follow

Files = Mapping[str, bytes]
"""The contents of files by path."""

Take = Callable[[str], tuple[str, str] | None]
"""Gives the split and the class that the file at a path is meant to have; None: it is left out."""

Found = list[tuple[str, str, str]]
"""The SHA-256 of each source, its split and its class."""


def together(*parts: Files) -> dict[str, bytes]:
    return {path: data for part in parts for path, data in part.items()}


def each_of(folders: Iterable[str], make: Callable[[str], Files]) -> dict[str, bytes]:
    return together(*(make(folder) for folder in folders))


def under(folder: str, label: str = "", split: str = "") -> Take:
    """Takes the files below a folder, of a class, to be in a split."""
    return lambda path: (split, label) if f"{path}/".startswith(f"{folder}/") else None


def of_class(path: str) -> tuple[str, str]:
    """The first folder is the class."""
    return "", path.split("/")[0]


def digests(files: Files, take: Take) -> Found:
    """What a dataset holds: the source of each record, its split and its class."""
    taken = [(data, take(path)) for path, data in files.items()]
    return sorted((sha256(data).hexdigest(), *found) for data, found in taken if found)


def found_in(folder: Path, splits_given: bool) -> Found:
    return sorted(
        (each.sha256, each.split if splits_given else "", each.label)
        for each in read_dataset(folder)
    )


def check_all_ways(files: Files, ways: Sequence[Take], run_in: Run) -> None:
    """Follows all printed commands, which end in a dataset for each way."""
    expected = [digests(files, take) for take in ways]
    left = list(expected)
    for end in follow(["--input", "in"], run_in):
        assert (end.codes[0] in (1, 2), end.code) == (True, 0), (end.arguments, end.message)
        found = [found_in(Path("out"), given) for given in (True, False)]
        found = [each for each in found if each in expected]
        assert found, end.arguments
        left = [each for each in left if each not in found]
    assert not left
