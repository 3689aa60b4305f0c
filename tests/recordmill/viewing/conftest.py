"""Datasets to look at, and a server of each."""

import hashlib
import http.client
import io
import json
import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.viewing.marks import MarkFiles
from recordmill.viewing.server import ViewServer
from recordmill.viewing.source_folders import SourceFolders
from recordmill.viewing.viewed_dataset import open_viewed
from recordmill.viewing.viewer import Viewer


def draw_picture(seed: object, size: tuple[int, int] = (24, 16), kind: str = "JPEG") -> bytes:
    noise = random.Random(f"{seed}").randbytes(6 * 4 * 3)
    stream = io.BytesIO()
    Image.frombytes("RGB", (6, 4), noise).resize(size, Image.Resampling.BICUBIC).save(stream, kind)
    return stream.getvalue()


@pytest.fixture(scope="session")
def draw():
    """`draw(seed, size, kind)`: the bytes of a small picture, another one for each seed."""
    return draw_picture


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    """Five cats and five dogs; the first dog is a PNG, which becomes a JPEG."""
    root = tmp_path_factory.mktemp("photos") / "photos"
    for label in ("cat", "dog"):
        (root / label).mkdir(parents=True)
        for number in range(5):
            size = (24 + 8 * number, 16 + 4 * number)
            (root / label / f"{number:02}.jpg").write_bytes(draw_picture((label, number), size))
    (root / "dog/00.jpg").write_bytes(draw_picture("dog", (24, 16), "PNG"))
    return root


def convert(source: Path, output: Path, **settings: Any) -> Path:
    flags = [f"--set={key.replace('__', '.')}={json.dumps(each)}" for key, each in settings.items()]
    assert launch([f"--input={source}", f"--output={output}", *flags], build) == 0
    return output


HALVES = {"splits": {"fractions": {"train": 0.5, "test": 0.5}, "stratify": True}, "report": False}


@pytest.fixture(scope="module")
def classes(photos, tmp_path_factory, eager_pipeline, cheap_fsync) -> Path:
    """A dataset of cats and dogs in two splits."""
    return convert(photos, tmp_path_factory.mktemp("classes") / "pets", **HALVES)


@pytest.fixture(scope="module")
def boxes(tmp_path_factory, eager_pipeline, cheap_fsync) -> Path:
    """A dataset of ships and an odd class: images with no box, one box and two boxes, and one box
    of no width, which is dropped."""
    root = tmp_path_factory.mktemp("ships") / "ships"
    texts = ["", "0 .5 .5 .4 .2\n", "1 .25 .25 .5 .5\n0 .75 .75 .5 .5\n", "0 .5 .5 0 .2\n"]
    for name in ("images", "labels"):
        (root / name).mkdir(parents=True)
    for number, text in enumerate(texts):
        (root / f"images/{number}.jpg").write_bytes(draw_picture(number, (40, 20)))
        (root / f"labels/{number}.txt").write_text(text)
    (root / "data.yaml").write_text(json.dumps({"names": ["ship", "<img onerror>"]}))
    output = root.parent / "dataset"
    whole = {"splits": {"fractions": {"all": 1.0}}, "report": False}
    return convert(root, output, **whole, max_rejected__boxes__share=1)


@dataclass
class Browser:
    """Asks a server as a browser does, with the cookie that it got.

    Attributes:
        server: the server.
        cookie: the cookie.
    """

    server: ViewServer
    cookie: str = ""

    def ask(
        self,
        path: str,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        body: str = "",
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Returns the status, the headers and the content of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port)
        own = {"Cookie": self.cookie} if self.cookie else {}
        connection.request(method, path, body or None, {**own, **(headers or {})})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, response.headers, content

    def enter(self) -> None:
        """Exchanges the token of the printed address."""
        path = self.server.address.partition(str(self.server.server_port))[2]
        status, headers, _ = self.ask(path)
        assert status == 200
        self.cookie = headers["Set-Cookie"].partition(";")[0]

    def rows(self, **query: object) -> Any:
        """Returns what `/rows` answers."""
        text = "&".join(f"{name}={value}" for name, value in query.items())
        status, _, content = self.ask(f"/rows?{text}")
        assert status == 200, content
        return json.loads(content)


@contextmanager
def serve(
    path: str, files: MarkFiles | None = None, sources: tuple[str, ...] = ()
) -> Iterator[Browser]:
    """Serves a dataset, all of whose images have been read; marks are written into `files`."""
    problem = None if files else "no files are named"
    viewer = Viewer(open_viewed(path), files, problem, SourceFolders(sources))
    viewer.viewed.read_table()
    with ViewServer(viewer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield Browser(server)
        finally:
            server.shutdown()
            thread.join()
            viewer.viewed.close()


@pytest.fixture(scope="module")
def browse(classes) -> Iterator[Browser]:
    """A browser that has entered the page of cats and dogs."""
    with serve(str(classes)) as browser:
        browser.enter()
        yield browser


@pytest.fixture(scope="session")
def converting():
    """`converting(input, output, **settings)`: a dataset; `__` in a name stands for a dot."""
    return convert


@pytest.fixture(scope="session")
def serving():
    """`serving(path, files)`: a context with a browser."""
    return serve


@pytest.fixture(scope="session")
def sha256_of():
    """`sha256_of(path)`: the hex digest of a file."""
    return lambda path: hashlib.sha256(Path(path).read_bytes()).hexdigest()
