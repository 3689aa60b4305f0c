"""The report of whole runs, parsed, and opened in a real browser where there is one."""

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }} & é",
]


def safe(name):
    return name.replace("/", "\u2215")


@pytest.fixture
def evil(class_folders, picture, tmp_path):
    """Names that would do harm where they are not escaped; one image twice, in two classes;
    rejected files."""
    root = class_folders(tmp_path / "evil", {safe(name): 8 for name in EVIL})
    for name in EVIL:
        (root / safe(name) / f"{safe(name)}.jpg").write_bytes(picture(name, (60, 90)))
        (root / safe(name) / f"bad {safe(name)}.jpg").write_bytes(b"<script>alert(2)</script>")
    shutil.copyfile(
        root / safe(EVIL[0]) / "00.jpg", root / safe(EVIL[1]) / f"{safe(EVIL[0])} again.jpg"
    )
    return root


def report_of(done):
    return (done.output / "report.html").read_text(encoding="utf-8")


def pictures_of(page):
    uris = re.findall(r'src="data:image/jpeg;base64,([^"]+)"', page)
    return [Image.open(io.BytesIO(base64.b64decode(uri))) for uri in uris]


def test_the_report_shows_the_images_that_are_stored(convert, class_folders, tmp_path):
    done = convert(class_folders(tmp_path / "photos", {"cat": 30, "dog": 5}, size=(240, 160)))
    assert done.code == 0
    pictures = pictures_of(report_of(done))
    assert len(pictures) == 24 + 5
    assert {picture.size for picture in pictures} == {(224, 149)}
    assert re.search(rf"^report +{re.escape(str(done.output))}/report\.html", done.stderr, re.M)
    assert done.line["report"] == "report.html"


def test_what_is_worth_a_look_is_reported_everywhere(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 30, "dog": 1})
    Image.open(root / "cat/00.jpg").save(root / "cat/exact.png")
    done = convert(root)
    _, imbalance, lossy = done.marker["remarks"]
    assert imbalance.startswith("The largest class has 31 images, the smallest 1: ")
    assert lossy.startswith(
        "1 image with a lossless extension, such as .png, became JPEG, which is lossy"
    )
    assert done.line["remarks"] == done.marker["remarks"]
    assert all(text in done.stderr for text in done.marker["remarks"])
    page, card = report_of(done), (done.output / "README.md").read_text(encoding="utf-8")
    assert f'<a href="#changes">{lossy}</a>' in page
    assert f"- {lossy}\n" in card
    # Of a dataset that is there already.
    assert convert(root).line["remarks"] == done.marker["remarks"]


def test_duplicates_are_reported_everywhere(convert, photos):
    shutil.copyfile(photos / "cat/00.jpg", photos / "cat/copy.jpg")
    shutil.copyfile(photos / "cat/01.jpg", photos / "dog/copy.jpg")
    done = convert(photos)
    lines = [
        json.loads(line) for line in (done.output / "duplicates.jsonl").read_text().splitlines()
    ]
    assert sorted(sorted(image["key"] for image in line["images"]) for line in lines) == [
        ["cat/00.jpg", "cat/copy.jpg"],
        ["cat/01.jpg", "dog/copy.jpg"],
    ]
    split_of = {row["key"]: split for split in ("train", "test") for row in done.rows(split)}
    for line in lines:
        assert line["splits"] == sorted({split_of[image["key"]] for image in line["images"]})
    across = sum(len(line["splits"]) > 1 for line in lines)
    same = {"groups": 2, "images": 2, "across_splits": across, "conflicting": 1}
    assert (
        done.marker["duplicates"]
        == done.line["duplicates"]
        == {"same_bytes": same, "look_alike": None}
    )
    assert re.search(
        r"^duplicates +2 repeated images \(\d in several splits, 1 in several classes\): see "
        r"duplicates\.jsonl",
        done.stderr,
        re.M,
    )
    assert "2 duplicate files in 2 groups. Groups across splits: " in report_of(done)
    # Of a dataset that is there already.
    assert convert(photos).line["duplicates"] == done.line["duplicates"]


def test_look_alikes_are_found_where_they_are_asked_for(convert, class_folders, picture, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 6, "dog": 6}, size=(240, 160))
    for quality in (60, 30):
        Image.open(root / "cat/03.jpg").resize((180, 120)).save(
            root / f"dog/again{quality}.jpg", quality=quality
        )
    done = convert(root, settings={"images.near_duplicates": True})
    pairs = [
        json.loads(line) for line in (done.output / "duplicates.jsonl").read_text().splitlines()
    ]
    kin = {"cat/03.jpg", "dog/again60.jpg", "dog/again30.jpg"}
    assert pairs
    assert {image["key"] for pair in pairs for image in pair["images"]} == kin
    assert {pair["kind"] for pair in pairs} == {"look_alike"}
    assert max(pair["distance"] for pair in pairs) <= 5
    assert done.marker["duplicates"]["look_alike"]["pairs"] == len(pairs)
    assert all(len(row["difference_hash"]) == 16 for row in done.rows())
    assert "different classes" in report_of(done)
    duplicates = report_of(done).partition('<section id="duplicates">')[2].partition("<section")[0]
    assert {*re.findall(r'<img src="data:image/[^"]+" alt="([^"]+)">', duplicates)} == kin


def test_what_can_be_seen_of_rejected_files_is_shown(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12}, size=(240, 160))
    whole = (root / "cat/00.jpg").read_bytes()
    (root / "cat/cut.jpg").write_bytes(whole[: len(whole) * 2 // 3])
    (root / "cat/page.jpg").write_bytes(b"<html>")
    done = convert(root, settings={"max_rejected.count": 5})
    (cut,) = re.findall(
        r'<img src="data:image/jpeg;base64,([^"]+)" alt="cat/cut.jpg">', report_of(done)
    )
    assert Image.open(io.BytesIO(base64.b64decode(cut))).size == (160, 107)
    kept = json.loads((done.output / "report.json").read_text())["rejected"]
    assert [(each["key"], each["reason"]) for each in kept] == [("cat/cut.jpg", "truncated")]
    assert not [name for name in done.files if "pictures" in name]
    settings = {"max_rejected.count": 5, "report": False}
    plain = convert(root, settings=settings, output=tmp_path / "plain")
    assert plain.deterministic_files == done.deterministic_files


def test_without_a_report_everything_else_is_the_same(convert, photos, tmp_path):
    whole = convert(photos)
    plain = convert(photos, settings={"report": False}, output=tmp_path / "plain")
    assert whole.files - plain.files == {"report.html", "report.json", "samples.svg"}
    assert plain.files < whole.files
    assert plain.deterministic_files == whole.deterministic_files
    assert plain.marker["plan"]["id"] == whole.marker["plan"]["id"]
    assert "report" not in plain.line
    # It is the same dataset, which is there already; only its report is not.
    before = plain.files
    again = convert(photos, output=tmp_path / "plain")
    assert (again.line["status"], again.line["report"]) == ("kept", "report.html")
    assert again.files - before == {"report.html"}
    assert whole.marker["remarks"][0] in report_of(again)


def test_a_gzip_dataset_has_its_pictures_too(convert, photos):
    assert len(pictures_of(report_of(convert(photos, settings={"compression": "gzip"})))) == 10


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


# The browser expects the pipes at 3 and 4.
STARTER = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """A headless Chromium that is spoken to through a pipe: JSON commands, each with a zero byte
    behind it."""

    def __init__(self, profile):
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                STARTER,
                f"{commands}",
                f"{answers}",
                CHROMIUM,
                *flags,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._rest, self._number, self._session, self.events = b"", 0, {}, []
        target = next(
            each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"
        )
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _receive(self):
        while b"\0" not in self._rest:
            piece = os.read(self._read, 2**20)
            assert piece, "the browser has ended"
            self._rest += piece
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._write, json.dumps(command).encode() + b"\0")
        while (message := self._receive()).get("id") != self._number:
            self.events.append(message)
        return message["result"]

    def visit(self, path, width, dark):
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events = []
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())

    def ask(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"][
            "value"
        ]

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)


@pytest.fixture
def browser(tmp_path):
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    opened = Browser(tmp_path / "profile")
    yield opened
    opened.close()


@pytest.mark.slow
def test_in_a_browser_nothing_runs_loads_or_sticks_out(convert, evil, browser):
    done = convert(evil, settings={"max_rejected.count": 10, "images.near_duplicates": True})
    assert done.code == 0
    backgrounds = set()
    for width, dark in ((360, False), (360, True), (1100, False), (1100, True)):
        browser.visit(done.output / "report.html", width, dark)
        assert browser.ask("document.scripts.length") == 0
        assert browser.ask("document.documentElement.scrollWidth") <= width
        assert browser.ask(
            "[...document.images].every(image => image.complete && image.naturalWidth > 0)"
        )
        assert browser.ask("document.images.length") > 30
        handlers = (
            "[...document.querySelectorAll('*')].filter(e => e.getAttributeNames().some(n => "
            "n.startsWith('on')))"
        )
        assert browser.ask(f"{handlers}.length") == 0
        text = browser.ask("document.body.innerText")
        assert all(safe(name) in text for name in EVIL)
        backgrounds.add(browser.ask("getComputedStyle(document.body).backgroundColor"))
        methods = [event["method"] for event in browser.events]
        assert "Page.javascriptDialogOpening" not in methods
        # Nor did the page's own policy have anything to forbid.
        assert "Log.entryAdded" not in methods
        requests = [
            e["params"]["request"]["url"]
            for e in browser.events
            if e["method"] == "Network.requestWillBeSent"
        ]
        assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
        assert len([url for url in requests if url.startswith("file:")]) == 1
    assert len(backgrounds) == 2  # light and dark


@pytest.mark.slow
def test_the_browser_would_notice(browser, tmp_path):
    (tmp_path / "wide.html").write_text(
        '<div style="width:2000px">x</div><script>console.error("ran")</script>'
    )
    browser.visit(tmp_path / "wide.html", 360, False)
    assert browser.ask("document.scripts.length") == 1
    assert browser.ask("document.documentElement.scrollWidth") >= 2000
