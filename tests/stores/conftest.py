"""Whole jobs from and to emulators of object stores; `make test-stores` makes the environment that
has them."""

import io
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from apache_beam.io.filesystems import FileSystems
from PIL import Image

from recordmill import storage
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.storage.stores import find_store as stores

REPO = Path(__file__).parents[2]
IMAGES = 60
BROKEN = 2  # texts named as images among them: bad records


class Ended(NamedTuple):
    """What a command leaves."""

    returncode: int
    stdout: str
    stderr: str


@dataclass
class Folder:
    """A folder of a store with 60 images and two texts named as images, and what is done with it.

    Attributes:
        served: the store.
        url: of the folder.
        places: flags by which `photos` becomes `dataset`.
        cwd: where commands are run.
    """

    served: object
    url: str
    places: list[str]
    cwd: Path
    capsys: pytest.CaptureFixture[str]
    offline: str

    def convert(self, *flags: str) -> Ended:
        """Converts in this process, which has paid for its imports."""
        code = launch([*self.places, *flags], build)
        captured = self.capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    def start(self, *flags: str, script: str = "") -> subprocess.Popen[str]:
        """Begins a conversion in a process of its own, which can be killed; a script may run it in
        its own way."""
        scripts = [*filter(None, [script]), str(REPO / "pipeline" / "run.py")]
        command = [sys.executable, self.offline, *scripts, *self.places, *flags]
        environment = {**self.served.environment, "PYTHONPATH": str(REPO)}
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.cwd, env=environment, stdout=pipe, stderr=pipe, text=True
        )

    def files(self, name: str = "dataset") -> dict[str, bytes]:
        """What lies below a folder of this one, by path."""
        prefix = f"{self.url}{name}/"
        return {
            file.path.removeprefix(prefix): storage.read_range(file.path)
            for file in storage.list_below(prefix)
        }


def draw(number: int) -> bytes:
    stream = io.BytesIO()
    picture = Image.effect_mandelbrot((160, 120), (-2 + number / 50, -1.5, 1, 1.5), 30).convert(
        "RGB"
    )
    picture.save(stream, "JPEG", quality=90)
    return stream.getvalue()


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures") / "photos"
    for number in range(IMAGES):
        file = folder / ("cat" if number % 2 else "dog") / f"{number:02}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(draw(number))
    for number in range(BROKEN):
        (folder / "cat" / f"notes {number}#.jpg").write_bytes(b"no picture")
    return folder


@pytest.fixture(params=["google", "amazon"])
def folder(request, monkeypatch, capsys, pictures, offline, tmp_path) -> Folder:
    served = request.getfixturevalue(f"{request.param}_store")
    for name, value in served.environment.items():
        monkeypatch.setenv(name, value)
    if request.param == "google":
        from apache_beam.internal.gcp import auth

        monkeypatch.setattr(auth._Credentials, "_credentials_init", True)
    stores._make_store.cache_clear()
    FileSystems.set_options(None)
    scheme = {"google": "gs", "amazon": "s3"}[request.param]
    url = f"{scheme}://recordmill/{request.node.name.partition('[')[0]}/"
    for file in pictures.rglob("*.*"):
        storage.write_file(f"{url}photos/{file.relative_to(pictures)}", file.read_bytes())

    monkeypatch.chdir(tmp_path)
    places = [f"--input={url}photos", f"--output={url}dataset", "--set=shards.count=6"]
    return Folder(served, url, places, tmp_path, capsys, offline)
