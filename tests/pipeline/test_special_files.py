"""A pipe, a device, a socket, a folder or a file without an end under the name of each file of a
dataset: no command waits for it, fills the memory or fails with anything but a sentence."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.pipeline.verify import main as verify

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

REPO = Path(__file__).parents[2]
STEPS = (
    "verify pixels inspect record key where diff folder versions open load report follow keep "
    "update"
)
KINDS = ["pipe", "zero", "null", "socket", "folder", "sparse"]
NAMES = [
    "recordmill.json",
    "records.index",
    "records.versions",
    "labels.txt",
    "rejected.jsonl",
    "duplicates.jsonl",
    "config.yaml",
    "README.md",
    "croissant.json",
    "report.html",
    "report.json",
    "sidecars/train-00000-of-00001.tfrecord.jsonl",
    "train-00000-of-00001.tfrecord",
    "transform_fn/analysis.json",
]

SCRIPT = """
import contextlib, io, json, resource, shutil, signal, sys, traceback
from pathlib import Path
sys.path.insert(0, "tests/pipeline")
import recordmill
from recordmill.pipeline import diff, inspect, verify, versions
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from test_special_files import put

home, kind, names = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 3 * 2**30, resource.RLIM_INFINITY))


def fail(*_):
    raise AssertionError("it hangs")


signal.signal(signal.SIGALRM, fail)


def read(path):
    try:
        return 0 if recordmill.open(path)["train"][0] else 5
    except (recordmill.LoadError, OSError) as error:
        return f"{type(error).__name__}: {error}"


def load(path):
    try:
        list(recordmill.open_dataset(path).rows())
        recordmill.describe_split(path, "train").image_size
        return 0
    except (recordmill.LoadError, OSError) as error:
        return f"{type(error).__name__}: {error}"


for name in names:
    for step in sys.argv[4].split():
        output = home / "work"
        shutil.rmtree(output, ignore_errors=True)
        shutil.copytree(home / "ds", output)
        put(output / name, kind)
        path, own = str(output), str(home / "ds")
        photos = [f"--input={home}/photos", f"--output={path}"]
        work = {
            "verify": lambda: verify.main([path]),
            "pixels": lambda: verify.main([path, "--level=pixels", "--no-metadata"]),
            "inspect": lambda: inspect.main([path]),
            "record": lambda: inspect.main([path, "--record=train:1"]),
            "key": lambda: inspect.main([path, "--record=cat/00.jpg"]),
            "where": lambda: inspect.main([path, "--where=cat/00.jpg"]),
            "diff": lambda: diff.main([own, path]),
            "folder": lambda: diff.main([path, f"{home}/photos"]),
            "versions": lambda: versions.main([path]),
            "open": lambda: read(path),
            "load": lambda: load(path),
            "report": lambda: inspect.main([path, "--report"]),
            "follow": lambda: inspect.main([path, "--follow"]),
            "keep": lambda: launch(photos, build),
            "update": lambda: launch([*photos, "--update", "--set=images.quality=50"], build),
        }[step]
        stdout, stderr = io.StringIO(), io.StringIO()
        signal.alarm(60)
        try:
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
                code = work()
        except BaseException:
            code = traceback.format_exc()
        signal.alarm(0)
        print(json.dumps([name, step, code, stderr.getvalue()]), flush=True)
"""


def put(path: Path, kind: str) -> None:
    """Puts something else in the place of a file."""
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind in ("zero", "null"):
        path.symlink_to(f"/dev/{kind}")
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(2**43)
    else:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(path.name)
        os.chdir(here)


@pytest.fixture(scope="module")
def home(tmp_path_factory, class_folders):
    place = tmp_path_factory.mktemp("special")
    class_folders(place / "photos", {"cat": 3, "dog": 2})
    (place / "photos/cat/bad.jpg").write_bytes(b"no picture")
    flags = [f"--input={place}/photos", f"--output={place}/ds", "--set=max_rejected.share=1"]
    assert launch(flags, build) == 0
    assert {*NAMES} - {"transform_fn/analysis.json"} <= {
        str(path.relative_to(place / "ds")) for path in (place / "ds").rglob("*")
    }
    return place


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        pytest.param("pipe", ["recordmill.json"], id="pipe of what all commands read"),
        *(pytest.param(kind, NAMES, marks=pytest.mark.slow, id=kind) for kind in KINDS),
    ],
)
def test_no_command_waits_for_what_is_not_a_file(home, tmp_path, kind, names):
    (tmp_path / "ds").symlink_to(home / "ds")
    (tmp_path / "photos").symlink_to(home / "photos")
    words = [sys.executable, "-c", SCRIPT, str(tmp_path), kind, json.dumps(names), STEPS]
    done = subprocess.run(words, cwd=REPO, capture_output=True, text=True, timeout=900, check=False)
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = [
        (name, step, code, said[-600:])
        for name, step, code, said in seen
        if "Traceback" in f"{code}{said}" or "unexpected" in said or "MemoryError" in said
    ]
    assert wrong == []
    assert len(seen) == len(STEPS.split()) * len(names), done.stderr[-2000:]
    found = {name: (code, said) for name, step, code, said in seen if step == "verify"}
    for name, (code, said) in found.items():
        if name in ("transform_fn/analysis.json", "README.md", "croissant.json"):
            continue
        assert code == 1, (name, said)
        if kind in ("pipe", "zero", "null", "socket"):
            assert "cannot be read: it is a pipe or a device" in said, (name, said)


@pytest.mark.parametrize("more", [[], ["--record=train:1"], ["--extract=out"]])
def test_a_shard_without_an_end_is_not_read(home, tmp_path, capsys, more, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "train-00000-of-00001.tfrecord"
    shutil.copytree(home / "ds", "ds")
    (tmp_path / "ds/records.index").unlink()
    put(tmp_path / "ds" / name, "sparse")
    assert inspect(["ds", *more]) == 1
    said = f"the shard ds/{name} has 8,796,093,022,208 bytes where "
    assert f"error: {said}" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_lists_and_configurations_are_files(home, tmp_path, capsys, kind):
    put(tmp_path / "special", kind)
    path = f"{tmp_path}/special"
    assert verify([f"{home}/ds", f"--absent={path}"]) == 2
    flags = [f"--input={home}/photos", f"--output={tmp_path}/out"]
    assert launch([*flags, f"--set=exclude={path}"], build) == 2
    assert launch([*flags, f"--config={path}"], build) == 2
    said = capsys.readouterr().err
    why = {"folder": "directory", "sparse": "bytes, and"}.get(kind, "it is a pipe or a device")
    assert said.count(why) == 3, said
    assert not (tmp_path / "out").exists()


def test_a_configuration_can_come_from_standard_input(home, tmp_path, capsys, monkeypatch):
    flags = [f"--input={home}/photos", f"--output={tmp_path}/out", "--plan", "--config=-"]
    for content, code in (
        (b"name: piped\nmax_rejected: {share: 1}\n", 0),
        (b"#" * 2**20 + b"#", 2),
    ):
        (tmp_path / "piped").write_bytes(content)
        with (tmp_path / "piped").open() as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            assert launch(flags, build) == code
    assert "the configuration on standard input is larger than 1 MiB" in capsys.readouterr().err
