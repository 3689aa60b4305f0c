"""Datasets to look at, `recordmill view` on each, and headless Chromium.

These tests run in an environment of their own, which does not have Recordmill: `make test-browser`.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

RECORDMILL = Path(__file__).parents[2] / ".venv" / "bin" / "recordmill"

WIDE, PHONE, HUGE = (1280, 800), (390, 844), (2560, 1440)


def recordmill(*words: str, folder: Path) -> str:
    """Runs a command; returns what it printed."""
    ended = subprocess.run(
        [str(RECORDMILL), *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="session")
def shapes(tmp_path_factory) -> Path:
    """A folder with the dataset `shapes`: 250 pictures of six classes."""
    folder = tmp_path_factory.mktemp("shapes")
    recordmill("run", "--sample", "--output", "shapes", folder=folder)
    return folder


@pytest.fixture(scope="session")
def ships(shapes, tmp_path_factory) -> Path:
    """A folder with the dataset `ships`: pictures with boxes of classes with odd names, one of
    which is rejected, and one of which is there twice."""
    folder = tmp_path_factory.mktemp("ships")
    for name in ("images", "labels"):
        (folder / "input" / name).mkdir(parents=True)
    pictures = sorted(shapes.glob("out/sample-*/circle/circle_*.jpg"))[:12]
    boxes = ["", "0 .3 .4 .2 .3\n", "1 .5 .5 .4 .4\n2 .6 .6 .3 .3\n", "0 .5 .5 0 .5\n"]
    for number, picture in enumerate([*pictures, pictures[0]]):
        shutil.copy(picture, folder / f"input/images/{number:02}.jpg")
        (folder / f"input/labels/{number:02}.txt").write_text(boxes[number % 4])
    (folder / "input/labels/01.txt").write_text("3 .3 .4 .2 .3\n")
    (folder / "input/images/99.jpg").write_bytes(pictures[1].read_bytes()[:3000])
    (folder / "input/labels/99.txt").write_text("")
    names = ["ship", "<img src=x onerror=alert(1)>", "a\u202eb", "long " * 2000]
    (folder / "input/data.yaml").write_text(json.dumps({"names": names}))
    limits = ["--set", "max_rejected.boxes.share=1", "--set", "max_rejected.share=1"]
    recordmill("run", "--input", "input", "--output", "ships", *limits, folder=folder)
    return folder


@contextmanager
def view(folder: Path, *words: str) -> Iterator[str]:
    """Runs `recordmill view` in a folder; gives the address that it prints."""
    command = [str(RECORDMILL), "view", *words, "--no-browser"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield re.search(r"http://\S+", process.stderr.readline())[0]
        finally:
            process.terminate()
            process.communicate()


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """Chromium from the distribution: `apt-get install chromium`."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@dataclass
class Visit:
    """An open page, and what it did.

    Attributes:
        page: the page.
        errors: what it wrote to the console, and its dialogs.
        hosts: the hosts that it asked.
    """

    page: "Page"
    errors: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    def log(self, text: str) -> None:
        """Keeps what the console says, unless a wrong selection or picture was refused."""
        if not re.search(r"with a status of (400|422) ", text):
            self.errors.append(text)

    def shown_keys(self) -> list[str]:
        """The keys of the visible images, from their labels."""
        labels = self.page.eval_on_selector_all(
            ".cell", "cells => cells.map((cell) => cell.getAttribute('aria-label'))"
        )
        return [label.split(":")[0] for label in labels]

    def wait_for_count(self, text: str) -> None:
        """Waits until the page says how many images are selected."""
        self.page.wait_for_function(
            "text => document.getElementById('count').textContent === text", arg=text
        )


@pytest.fixture
def visit(browser):
    """`visit(folder, *words, size=..., theme=...)`: a context with the page of `recordmill view`,
    which must not have logged anything, or asked another host."""

    @contextmanager
    def enter(folder, *words, size=WIDE, theme="light"):
        with view(folder, *words) as address:
            context = browser.new_context(
                viewport={"width": size[0], "height": size[1]}, color_scheme=theme
            )
            visited = Visit(context.new_page())
            page = visited.page
            page.on("console", lambda message: visited.log(message.text))
            page.on("pageerror", lambda error: visited.errors.append(str(error)))
            page.on("dialog", lambda dialog: visited.errors.append(dialog.message))
            page.on("request", lambda request: visited.hosts.add(request.url.split("/")[2]))
            page.goto(address)
            page.wait_for_selector("#query:enabled")
            page.wait_for_selector(".cell img[src]")
            yield visited
            assert visited.errors == []
            assert visited.hosts == {address.split("/")[2]}
            context.close()

    return enter
