"""Copies of what commit 728cb4bb made, and the commands that made it; see README.md."""

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from frozen_pictures import draw_jpeg

from recordmill.imaging import imaging_versions
from tests.pipeline.conftest import Conversion, convert

__all__ = ["convert"]  # a fixture

HERE = Path(__file__).parent

TIME = 1_700_000_000
"""When all inputs were modified, as the runs of 728cb4bb saw it."""

CLONED = TIME + 9
"""When the files of a clone were modified."""

OLD, CURRENT = "72fcb17b503df5ca", "804b922634a988a8"
"""The versions in `nightly`."""

PHOTOS = "5fde5b8e200d09325d160e4a4fd8332bd86d8d633098a3dbe8d97b9c71163bb4"
"""The fingerprint of datasets of all photos."""

DATASETS = {
    "classes": ("classes", {"train": 9, "test": 3}, {"cat": 0, "dog": 1}, PHOTOS),
    "boxes": (
        "boxes",
        {"train": 5, "validation": 2},
        {"bird": 1, "cat": 2, "dog": 3},
        "76b35fdb8f2ed4cfdddd38d97fc13a1d4ae8646ecef022f91b4c93e208b0a356",
    ),
    "nightly": (f"nightly/{CURRENT}", {"train": 9, "test": 3}, {"cat": 0, "dog": 1}, PHOTOS),
    f"nightly/{OLD}": (
        f"nightly/{OLD}",
        {"train": 9, "test": 3},
        {"cat": 0, "dog": 1},
        "34f8adae2d802dcb64e68869a055a9189f93b3235e7323363a4fbcedb436d6fd",
    ),
}
"""For each dataset: its folder, its records by split, its class ids and its fingerprint."""

COMMANDS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "classes": ("photos", (), {"licence": "CC-BY-4.0", "creator": "The Zoo of Springfield"}),
    "boxes": ("pets", ("--config=boxes.yaml",), {}),
    "nightly": (
        "photos",
        ("--versions", "--update"),
        {"shards": {"count": 2, "cuts": "fixed"}, "report": False, "licence": "CC0-1.0"},
    ),
    "unfinished": ("photos", (), {"report": False}),
    "cut": ("photos", (), {"limit": 5, "splits.fractions": {"train": 1.0}, "report": False}),
}
"""For each output: the input, the flags and the settings of the command that made it."""

INPUTS = {"boxes": ("pets", "boxes.yaml", "removed.txt")}
"""The files that these commands read; of all others, `photos`."""

NOT_COMPARED = {"recordmill.json", "records.versions", "report.html"}
"""Files that also depend on the run; the marker is compared without its section about the run."""

OTHER_VERSION = "plan_version: 2 -> 4"

Ask = Callable[..., tuple[int, dict[str, Any]]]
each_dataset = pytest.mark.parametrize("name", DATASETS)
each_command = pytest.mark.parametrize("name", ["classes", "boxes"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`place("classes", "photos")`: copies folders and files, all of one time, to a new folder."""
    monkeypatch.chdir(tmp_path)

    def copy(*names: str, time: int = TIME) -> None:
        for name in names:
            if (HERE / name).is_file():
                shutil.copy(HERE / name, name)
                continue
            shutil.copytree(HERE / name, name)
            for path in Path(name).rglob("*"):
                os.utime(path, (time, time))

    return copy


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command that reads; gives its exit code and its line of JSON."""

    def run(command: Callable[[list[str]], int], *words: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = command(list(words))
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return code, json.loads(shown.out)

    return run


@pytest.fixture
def place_output(place) -> Callable[..., None]:
    """`place_output("classes")`: the same for an output and the files that its command reads."""
    recipe = json.loads((HERE / "classes/recordmill.json").read_bytes())["plan"]["recipe"]
    if recipe["versions"] != imaging_versions():
        pytest.skip(f"the datasets were made with {recipe['versions']}")

    def copy(name: str, time: int = TIME) -> None:
        place(name, *INPUTS.get(name, ("photos",)), time=time)

    return copy


@pytest.fixture
def again(convert) -> Callable[..., Conversion]:
    """Runs the command of an output again: `again("classes", "--update", settings={"seed": 8})`."""

    def run(
        name: str, *flags: str, output: str = "", settings: Mapping[str, Any] | None = None
    ) -> Conversion:
        source, own, values = COMMANDS[name]
        more = {**values, **(settings or {})}
        return convert(source, *own, *flags, output=Path(output or name), settings=more)

    return run


def marker_of(folder: str | Path) -> dict[str, Any]:
    return json.loads((Path(folder) / "recordmill.json").read_bytes())


def contents_of(folder: str | Path) -> dict[str, Any]:
    """All that depends only on the settings and the input."""
    root = Path(folder)
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    names = {str(path.relative_to(root)): path for path in paths if path.name not in NOT_COMPARED}
    lasting = {key: value for key, value in marker_of(root).items() if key != "run"}
    return {**{name: path.read_bytes() for name, path in names.items()}, "recordmill.json": lasting}


def notes_on_plan_version(done: Conversion) -> list[str]:
    """The notes that say why nothing was kept or copied."""
    return [note for note in done.line["notes"] if re.search(r"plan[ _]version", note)]


def edit_photos() -> None:
    """Adds a photo and replaces another one."""
    Path("photos/cat/new.jpg").write_bytes(draw_jpeg("new cat", (40, 30)))
    Path("photos/dog/0.jpg").write_bytes(draw_jpeg("another dog", (44, 30)))
    for name in ("cat/new.jpg", "dog/0.jpg"):
        os.utime(f"photos/{name}", (TIME + 9, TIME + 9))


def differences_in(done: Conversion) -> list[str]:
    """What another dataset is refused for, except for the plan version."""
    assert (done.code, done.line["status"]) == (1, "refused")
    advice = "choose another output, or replace it with --overwrite"
    found = re.fullmatch(rf"{done.output} holds another dataset \((.*)\): {advice}", done.errors[0])
    assert found, done.errors
    return [each for each in found[1].split(", ") if each != OTHER_VERSION]
