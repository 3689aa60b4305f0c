"""`recordmill view` on a dataset in a store: rows and pictures come from there."""

import io
import json
import threading
import webbrowser
from http.cookiejar import CookieJar
from urllib.parse import urljoin
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from PIL import Image

from recordmill.pipeline.view import main
from recordmill.viewing.viewed_dataset import ViewedDataset

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_rows_and_pictures_of_a_dataset_in_a_store_are_shown(
    folder, pictures, compression, monkeypatch, capsys
):
    flags = [f"--set=compression={compression}", "--set=report=false", "--overwrite"]
    assert folder.convert(*flags).returncode == 0
    read_table, is_read, shown = ViewedDataset.read_table, threading.Event(), {}

    def note_read(viewed):
        read_table(viewed)
        is_read.set()

    def visit(address):
        browser = build_opener(HTTPCookieProcessor(CookieJar()))

        def ask(path):
            with browser.open(urljoin(address, path)) as answer:
                return answer.read()

        ask(address)
        assert is_read.wait(60)
        shown["about"] = json.loads(ask("/rows?part=about"))
        shown["page"] = page = json.loads(ask("/rows?part=images&q=&sort=&first=0&count=50"))
        number = page["images"][0]["number"]
        shown["small"] = ask(f"/picture?image={number}")
        shown["large"] = ask(f"/picture?image={number}&large=1")
        shown["image"] = json.loads(ask(f"/rows?part=image&image={number}"))
        raise KeyboardInterrupt

    monkeypatch.setattr(ViewedDataset, "read_table", note_read)
    monkeypatch.setattr(webbrowser, "open", visit)
    assert main([f"{folder.url}dataset", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "stopped"
    assert (shown["about"]["path"], shown["about"]["labels"]) == (
        f"{folder.url}dataset",
        {"cat": 0, "dog": 1},
    )
    page = shown["page"]
    assert (page["total"], page["progress"]["fault"], len(page["images"])) == (60, None, 50)
    first = page["images"][0]
    assert first["classes"] == [first["key"].partition("/")[0]]
    assert (first["width"], first["height"]) == (160, 120)
    assert shown["large"] == (pictures / first["key"]).read_bytes()
    assert Image.open(io.BytesIO(shown["small"])).size == (160, 120)
    assert shown["image"]["cell"] == first
