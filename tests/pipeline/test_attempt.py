import io

import pytest

from recordmill.pipeline import attempt as module
from recordmill.pipeline.attempt import attempt
from recordmill.pipeline.configuration.options import LaunchOptions
from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.schemas.errors import LoadError, RecordmillError, UsageError
from recordmill.schemas.outcome import Terminated
from recordmill.transforms.shards.progress import Progress

AGAIN = "run the same command again to go on from there"


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (UsageError("the flags"), 2, "the flags"),
        (LoadError("the dataset"), 1, "the dataset"),
        (UsageError("seed is x\nlimit is y"), 2, "seed is x\nlimit is y"),
        (RecordmillError("the input"), 1, "the input"),
        (KeyboardInterrupt(), 130, f"interrupted after 7 images: {AGAIN}"),
        (KeyboardInterrupt("the job was cancelled"), 130, "interrupted: the job was cancelled"),
        (Terminated(), 143, f"stopped by a signal after 7 images: {AGAIN}"),
        (
            ZeroDivisionError("first line\nlast line"),
            1,
            "unexpected ZeroDivisionError: last line (--traceback shows where; a rerun goes on from finished shards)",
        ),
    ],
)
def test_whatever_goes_wrong_is_an_outcome(monkeypatch, error, code, sentence):
    def fail(*_):
        raise error

    monkeypatch.setattr(module, "prepare_job", fail)
    monkeypatch.setattr(module, "PROGRESS", work := Progress())
    work.add_done(7)
    outcome, job = attempt(LaunchOptions(), None, Terminal(io.StringIO()))
    assert (outcome.status, outcome.exit_code, outcome.sentence, job) == ("failed", code, sentence, None)
