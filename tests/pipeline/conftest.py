"""Whole conversions of small collections that a test draws itself."""

import contextlib
import io
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from cluster_runs import SETTINGS, flags_for
from forked_python import ForkServer, can_fork
from PIL import Image, ImageEnhance
from summary_schema import check_summary

from benchmarks.photographs import photograph
from recordmill.imaging import prepare
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.features import Example
from recordmill.transforms.records import convert_image

REPO = Path(__file__).parents[2]


def encode_picture(
    seed: object, size: tuple[int, int] = (24, 16), kind: str = "JPEG", mode: str = "RGB"
) -> bytes:
    """A small photograph-like picture, another one for each seed."""
    noise = random.Random(f"{seed}").randbytes(6 * 4 * 3)
    image = (
        Image.frombytes("RGB", (6, 4), noise).resize(size, Image.Resampling.BICUBIC).convert(mode)
    )
    stream = io.BytesIO()
    image.save(stream, kind, **({"quality": 90} if kind == "JPEG" else {}))
    return stream.getvalue()


def write_class_folders(
    root: Path, counts: Mapping[str, int], size: tuple[int, int] = (24, 16)
) -> Path:
    """`root/<class>/<nn>.jpg`, as many as `counts` says."""
    for label, count in counts.items():
        (root / label).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (root / label / f"{number:02}.jpg").write_bytes(encode_picture((label, number), size))
    return root


def split_records(content: bytes) -> list[tuple[int, bytes]]:
    """(offset, data) of each record of a TFRecord file's bytes."""
    records, offset = [], 0
    while offset < len(content):
        (length,) = struct.unpack_from("<Q", content, offset)
        records.append((offset, content[offset + 12 : offset + 12 + length]))
        offset += length + 16
    assert offset == len(content)
    return records


def values_of(record: bytes) -> dict[str, Any]:
    """All features of a serialized Example by key, each of them one value."""
    parsed = {}
    for key, feature in Example.FromString(record).features.feature.items():
        (parsed[key],) = getattr(feature, feature.WhichOneof("kind")).value
    return parsed


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and modification times of all that a folder holds."""
    return {
        str(path.relative_to(folder)): (
            path.read_bytes() if path.is_file() else b"",
            path.lstat().st_mtime_ns,
        )
        for path in sorted(folder.rglob("*"))
    }


@dataclass(frozen=True)
class Conversion:
    """How one run ended, and what it left."""

    code: int
    stdout: str
    stderr: str
    output: Path

    @cached_property
    def line(self) -> dict[str, Any]:
        """The one line of stdout, which fits its schema."""
        assert self.stdout.count("\n") == 1
        return check_summary(json.loads(self.stdout))

    @property
    def errors(self) -> list[str]:
        return [
            line.removeprefix("error: ")
            for line in self.stderr.splitlines()
            if line.startswith("error: ")
        ]

    @property
    def answer(self) -> tuple[int | str, ...]:
        """The exit code, and the sentence of each error, on stderr as in the line; no traceback."""
        assert (self.line["exit_code"], self.line["message"]) == (
            self.code,
            "\n".join(self.errors),
        )
        assert "Traceback" not in self.stderr
        return self.code, *self.errors

    @property
    def marker(self) -> dict[str, Any]:
        return json.loads((self.output / "recordmill.json").read_bytes())

    @property
    def lasting_marker(self) -> dict[str, Any]:
        return {key: value for key, value in self.marker.items() if key != "run"}

    @property
    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.output)) for path in self.output.rglob("*") if path.is_file()
        }

    @property
    def staging(self) -> list[Path]:
        return sorted(self.output.glob(".staging-*"))

    def shards(self, split: str = "") -> list[Path]:
        return sorted(
            path
            for path in self.output.glob("*.*record*")
            if path.suffix != ".json" and split in path.name
        )

    def examples(self, split: str = "") -> list[dict[str, Any]]:
        return [
            values_of(data)
            for path in self.shards(split)
            for _, data in split_records(path.read_bytes())
        ]

    def rows(self, split: str = "") -> list[dict[str, Any]]:
        """The rows of all sidecars."""
        paths = sorted((self.output / "sidecars").glob(f"{split}*"))
        return [json.loads(line) for path in paths for line in path.read_text().splitlines()]

    def keys(self, split: str = "") -> list[str]:
        return sorted(row["key"] for row in self.rows(split) if "rejected" not in row)

    @property
    def rejected(self) -> list[dict[str, Any]]:
        return [
            json.loads(line) for line in (self.output / "rejected.jsonl").read_text().splitlines()
        ]

    @property
    def deterministic_files(self) -> dict[str, bytes]:
        """All that must be the same bytes everywhere."""
        names = [
            name
            for name in self.files
            if "tfrecord" in name or name in ("labels.txt", "duplicates.jsonl")
        ]
        assert len(names) >= 4
        return {name: (self.output / name).read_bytes() for name in sorted(names)}

    @property
    def lasting_report(self) -> str:
        """The report without its title and its part about the run, which place and time are in."""
        page = re.sub(
            r"<(title|h1)>.*?</\1>", "", (self.output / "report.html").read_text(encoding="utf-8")
        )
        before, run, after = page.partition('<section id="run">')
        assert run
        # The last line is the digest of all others.
        return before + after.partition("</section>")[2].rpartition("\n<!--")[0]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The images that were prepared since the list was last emptied."""
    calls = list[bytes]()

    def counted(data: bytes, *arguments: Any, **options: Any) -> prepare.PreparedImage:
        calls.append(data)
        return prepare.prepare_image(data, *arguments, **options)

    monkeypatch.setattr(convert_image, "prepare_image", counted)
    return calls


@pytest.fixture(scope="session")
def picture() -> Callable[..., bytes]:
    return encode_picture


@pytest.fixture(scope="session")
def class_folders() -> Callable[..., Path]:
    return write_class_folders


@pytest.fixture(scope="session")
def records_of() -> Callable[[bytes], list[tuple[int, bytes]]]:
    return split_records


@pytest.fixture(scope="session")
def state_of() -> Callable[[Path], dict[str, tuple[bytes, int]]]:
    return snapshot


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes, ten images."""
    return write_class_folders(tmp_path / "photos", {"cat": 6, "dog": 4})


@pytest.fixture
def run_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[list[str]], tuple[int, str, str]]:
    """Converts to `out` in this test's folder; gives the exit code, and what was printed."""
    monkeypatch.chdir(tmp_path)

    def run(arguments: list[str]) -> tuple[int, str, str]:
        shutil.rmtree("out", ignore_errors=True)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = launch([*arguments, "--output=out", "--set=report=false"], build)
        return code, out.getvalue(), err.getvalue()

    return run


def flags_of(settings: Mapping[str, Any]) -> list[str]:
    return [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]


@pytest.fixture
def convert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Conversion]]:
    """Runs a conversion in this process: `convert(input, "--plan", output=...,
    settings={"images.quality": 90})`."""
    terminated = signal.getsignal(signal.SIGTERM)

    def run(
        source: Path | str | None,
        *flags: str,
        output: Path | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> Conversion:
        output = output or tmp_path / "dataset"
        places = [] if source is None else [f"--input={source}"]
        capsys.readouterr()
        code = launch([*places, f"--output={output}", *flags_of(settings or {}), *flags], build)
        captured = capsys.readouterr()
        return Conversion(code, captured.out, captured.err, output)

    yield run
    signal.signal(signal.SIGTERM, terminated)


@pytest.fixture(scope="session")
def conversion() -> type[Conversion]:
    return Conversion


@pytest.fixture
def earlier(convert, photos: Path, state_of) -> Iterator[Conversion]:
    """A dataset that was there before; whatever the test does, it is the same afterwards."""
    done = convert(photos, settings={"splits.fractions": {"train": 1.0}})
    before = state_of(done.output)
    yield done
    after = {name: state for name, state in state_of(done.output).items() if ".staging" not in name}
    assert after == before


OWN_CODE = {
    "images.function": "examples.hooks:crop_square",
    "keep": {"function": "examples.hooks:is_colorful", "min_side": 70},
    "images.near_duplicates": "together",
    "splits.fractions": {"train": 0.5, "test": 0.5},
}
"""Settings for `look_alikes` with functions of a module, for other runners."""


@pytest.fixture
def spawn(fork_server: ForkServer) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `python -m pipeline.run`, or a script, and gives the process; whatever still runs at
    the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: object, script: str = "", **options: Any) -> subprocess.Popen[str]:
        pipes = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "cwd": REPO,
            **options,
        }
        program = ["-c", script] if script else ["-m", "pipeline.run"]
        words = [sys.executable, *program, *map(str, flags)]
        process = (
            fork_server.popen(words, **pipes)
            if can_fork(pipes)
            else subprocess.Popen(words, **pipes)
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def convert_in_child(spawn, tmp_path: Path) -> Callable[..., Conversion]:
    """As `convert`, in a process of its own."""

    def run(
        source: Path | str | None,
        *flags: str,
        output: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Conversion:
        output = output or tmp_path / "dataset"
        places: Sequence[str] = [] if source is None else [f"--input={source}"]
        process = spawn(
            *places,
            f"--output={output}",
            *flags_of(settings or {}),
            *flags,
            env={**os.environ, **(env or {})},
            **options,
        )
        stdout, stderr = process.communicate(timeout=600)  # of a busy machine with a cluster
        return Conversion(process.returncode, stdout, stderr, output)

    return run


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough for a cluster to be busy for seconds; re-encoded, rejected and ignored things."""
    root = write_class_folders(
        tmp_path_factory.mktemp("collection") / "photos", {"cat": 150, "dog": 150}, size=(900, 700)
    )
    (root / "cat/alpha.png").write_bytes(encode_picture("alpha", kind="PNG", mode="RGBA"))
    (root / "dog/text.jpg").write_bytes(b"no picture")
    (root / ".DS_Store").write_bytes(b"x")
    for file in root.rglob("*.*"):  # of files younger than two seconds, no version is kept
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return root


@pytest.fixture
def reference(convert, collection: Path, tmp_path: Path) -> Conversion:
    """DirectRunner's conversion of `collection`."""
    done = convert(collection, settings=SETTINGS, output=tmp_path / "direct")
    assert (done.code, len(done.shards())) == (0, 12)
    assert done.marker["ledger"]["rejected"] == {"unknown_format": 1}
    return done


@pytest.fixture
def run_to_its_end(spawn) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """Runs a conversion on a cluster; gives its exit code, the line of stdout, and stderr."""

    def run(source: Path, output: Path, *flags: str) -> tuple[int, dict[str, Any], str]:
        process = spawn(*flags_for(source, output, *flags))
        stdout, stderr = process.communicate(timeout=600)
        assert "Traceback" not in stderr
        return process.returncode, json.loads(stdout), stderr

    return run


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., None]:
    """Waits until a condition holds."""

    def wait(condition: Callable[[], Any], seconds: float = 240.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "timed out before reaching the step"
            time.sleep(0.02)

    return wait


@pytest.fixture
def convert_folders(capsys) -> Callable[..., Path]:
    """`convert_folders(folder)`: a dataset of ten pictures, cats and dogs, in `folder/dataset`."""

    def convert(folder: Path, counts: Mapping[str, int] | None = None) -> Path:
        write_class_folders(folder / "photos", counts or {"cat": 5, "dog": 5})
        output = folder / "dataset"
        splits = ["--set", "splits={fractions: {train: 0.5, test: 0.5}, stratify: true}"]
        assert (
            launch(["--input", str(folder / "photos"), "--output", str(output), *splits], build)
            == 0
        )
        capsys.readouterr()
        return output

    return convert


@pytest.fixture(scope="session")
def look_alikes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures in the style of photographs, and of each a smaller, a coarser or a brighter copy."""
    root = tmp_path_factory.mktemp("look-alikes")
    for label in ("cat", "dog"):
        (root / label).mkdir()
    for number in range(24):
        data = photograph(number, 120, 90)
        (root / "cat" / f"{number}.jpg").write_bytes(data)
        image: Image.Image = Image.open(io.BytesIO(data))
        quality = 85
        match number % 3:
            case 0:
                image = image.resize((80, 60))
            case 1:
                quality = 20
            case 2:
                image = ImageEnhance.Brightness(image).enhance(1.2)
        image.save(root / "dog" / f"copy_{number}.jpg", quality=quality)
    # The version of a file that is two seconds old is not sure yet.
    for path in root.rglob("*.jpg"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return root
