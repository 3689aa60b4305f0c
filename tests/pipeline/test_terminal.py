"""What people see on a terminal, and what a log gets elsewhere."""

import io
import json
import os
import pty
import re
import threading

import pytest
from rich.console import Console

from recordmill.pipeline import terminal
from recordmill.pipeline.terminal import Terminal, record_progress
from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.schemas.dataset.marker import Ledger
from recordmill.schemas.dataset.outcome import FailedNumbers, Outcome
from recordmill.transforms.planning.progress import Progress

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


class Ticks:
    """Stands for the event that a run is over: progress is read once per step."""

    def __init__(self, *steps):
        self.steps = list(steps)

    def wait(self, _):
        if not self.steps:
            return True
        self.steps.pop(0)()
        return False


def nothing():
    """Does nothing, as a run that makes no progress."""


def lines_of(work, *steps):
    log = io.StringIO()
    Terminal(log)._show(work, Ticks(*steps))
    return log.getvalue().splitlines()


def test_elsewhere_than_a_terminal_progress_is_plain_lines():
    work = Progress(planned=2000, stage="converting")
    (line,) = lines_of(work, lambda: work.add_done(500))
    assert re.fullmatch(
        r"converting: 500/2,000 images \(25%\), [\d,]+ images/s, about \d+ s left", line
    )


def test_a_log_says_a_thing_once():
    work = Progress()

    def list_files():
        work.listed += 1234

    def plan():
        work.planned = 2000
        work.enter("converting")

    lines = lines_of(work, nothing, nothing, list_files, nothing, plan, nothing, nothing)
    assert lines == [
        "listing: 0 files found",
        "listing: 1,234 files found, 2,468 files/s",
        "converting: 0/2,000 images (0%)",
    ]


def test_watching_prints_progress_while_the_block_runs(monkeypatch):
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.02)
    said = threading.Event()

    class Log(io.StringIO):
        def write(self, text):
            said.set()
            return super().write(text)

    log = Log()
    with Terminal(log).watch(Progress(planned=2000, stage="converting")):
        assert said.wait(60)
    assert log.getvalue() == "converting: 0/2,000 images (0%)\n"


@pytest.mark.parametrize(
    ("work", "seconds", "count"),
    [
        (Progress(listed=31488), 1.5, "31,488 files found, 20,992 files/s"),
        (Progress(listed=1), 0.1, "1 file found, 2.00 files/s"),
        (Progress(planned=700), 9.0, "0/700 images (0%)"),
        (Progress(planned=700, done=350), 2.0, "350/700 images (50%), 175 images/s"),
        (Progress(planned=700, done=350, unit="row"), 100.0, "350/700 rows (50%), 3.50 rows/s"),
        (Progress(planned=10, done=1), 34.0, "1/10 images (10%), 0.03 images/s"),
    ],
)
def test_how_much_and_how_fast(work, seconds, count):
    assert terminal._count(work, seconds) == count


def test_a_quick_run_says_nothing_on_the_way(monkeypatch):
    stream = io.StringIO()
    with Terminal(stream).watch(Progress(planned=10)):
        pass
    assert stream.getvalue() == ""


def test_a_run_counts_what_it_lists_and_does(convert, photos, monkeypatch):
    seen = []

    class Watched(Terminal):
        def watch(self, work):
            seen.append(work)
            return super().watch(work)

    monkeypatch.setattr("recordmill.pipeline.launch.Terminal", Watched)
    (photos / "cat/text.jpg").write_bytes(b"no picture")
    assert convert(photos).code == 0
    (work,) = seen
    assert (work.listed, work.planned, work.done, work.stage) == (11, 11, 11, "publishing")


def test_names_cannot_steer_the_terminal():
    stream = io.StringIO()
    Terminal(stream).say("a\x1b[2Jb\u202e.jpg\nand a line")
    assert stream.getvalue() == "a\\x1b[2Jb\\u202e.jpg\nand a line\n"


def test_markup_in_names_is_text():
    stream = io.StringIO()
    Terminal(stream).say("[bold]x[/bold] [red] :smile:")
    assert stream.getvalue() == "[bold]x[/bold] [red] :smile:\n"


@pytest.fixture
def on_a_terminal(spawn, class_folders, tmp_path):
    """A conversion whose stderr is a terminal: what it wrote there, and its stdout."""
    root = class_folders(tmp_path / "photos", {"cat": 1}, size=(900, 700))
    for number in range(1, 200):
        (root / f"cat/{number:02}.jpg").write_bytes((root / "cat/00.jpg").read_bytes())
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        environment.pop(name, None)
    flags = [
        f"--input={root}",
        f"--output={tmp_path / 'dataset'}",
        "--threads=1",
        "--set=images.reencode=always",
    ]
    process = spawn(*flags, stderr=theirs, env=environment)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    stdout, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return shown.decode(), stdout


@pytest.mark.slow
def test_seed_2_on_a_terminal_there_is_a_bar_with_rate_and_time_left(on_a_terminal):
    shown, stdout = on_a_terminal
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert "━" in plain
    assert "converting" in plain
    assert re.search(r"[1-9][0-9]*/200\b", plain)
    assert re.search(r"\d+ images/s", plain)
    assert re.search(r"\d:\d\d:\d\d", plain)
    assert "200 images are in" in plain
    assert json.loads(stdout)["ledger"]["written"] == 200


@pytest.mark.parametrize("colors", [False, True])
def test_a_table_ends_its_lines_without_blanks(monkeypatch, colors):
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    if colors:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")
    ledger = Ledger(3, 2, rejected={"empty": 1}, ignored={}, left_out={})
    stream = io.StringIO()
    outcome = Outcome("failed", "1 image was rejected", 3, "", FailedNumbers(ledger))
    Terminal(stream).report_outcome(outcome, "out")
    shown = stream.getvalue()
    assert ("\x1b[1mlisted" in shown) == colors
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines()[1:4] == [
        "listed     3 = 2 written + 1 rejected",
        "rejected   empty: 1",
        "",
    ]


DATASET = Dataset("/x", "files", (StoredShard("train", "a", "/x/a", records=300),))


def show_records(terminal):
    stream = io.StringIO()
    with record_progress(
        Console(file=stream, force_terminal=terminal, width=100), "verifying", DATASET
    ) as progress:
        progress(256)
        progress(44)
    return stream.getvalue()


def test_a_terminal_shows_a_bar_of_records():
    assert "verifying" in show_records(True)
    assert "/300" in show_records(True)


def test_a_log_shows_no_bar_of_records():
    assert show_records(False) == ""
