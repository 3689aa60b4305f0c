import io

from rich.console import Console

from recordmill.pipeline.terminal.record_progress import record_progress
from recordmill.reading.dataset import Dataset
from recordmill.reading.shard import Shard

DATASET = Dataset("/x", "files", (Shard("train", "a", "/x/a", records=300),))


def show(terminal):
    stream = io.StringIO()
    with record_progress(Console(file=stream, force_terminal=terminal, width=100), "verifying", DATASET) as progress:
        progress(256)
        progress(44)
    return stream.getvalue()


def test_a_terminal_shows_a_bar():
    assert "verifying" in show(True)
    assert "/300" in show(True)


def test_a_log_shows_nothing():
    assert show(False) == ""
