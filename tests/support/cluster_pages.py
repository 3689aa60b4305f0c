"""Runs the commands of a page about clusters, in a folder with photographs."""

import os
import re
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]


def commands_of(text: str) -> list[str]:
    """Returns the commands of a page, each on one line."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    joined = (re.sub(r"\\\n\s*", "", block).strip() for block in blocks)
    return [line for block in joined for line in block.splitlines()]


def fill(folder: Path) -> Path:
    """Fills a folder with photographs and with the scripts that the page names, and returns it."""
    for number in range(40):
        path = folder / "photos" / ("cat" if number % 2 else "dog") / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (160, 120), (6 * number, 90, 7)).save(path, quality=90)
    (folder / "scripts").symlink_to(ROOT / "scripts")
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command as a user would, in a shell; the environment of this Python is active."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def files(dataset: Path) -> dict[str, bytes]:
    """Returns the files of a dataset that do not tell of the run."""
    return {
        str(path.relative_to(dataset)): path.read_bytes()
        for path in dataset.rglob("*")
        if path.is_file() and path.name not in ("recordmill.json", "report.html")
    }
