import logging
import subprocess
import sys
import threading

import pytest

from recordmill.pipeline.quiet_beam import quiet_beam

WITHOUT_GOOGLES_EXTRA = """
import sys
sys.modules["apitools"] = None
sys.modules["pymongo"] = None
from recordmill.pipeline.run import main
main()
"""


def test_beam_is_quiet_within_the_block_and_others_are_not(caplog):
    with quiet_beam():
        logging.getLogger("apache_beam.runners").error("beam's")
        logging.error("a job server's")  # so does Beam
        logging.getLogger("other").error("another's")
    assert caplog.messages == ["another's"]
    logging.error("a job server's")
    assert caplog.messages == ["another's", "a job server's"]


def test_a_thread_that_grpc_ends_says_nothing_within_the_block(monkeypatch):
    said = []
    monkeypatch.setattr(threading, "excepthook", lambda error: said.append(error.exc_value))

    def fail(error):
        def work():
            raise error

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    hung_up = type("RpcError", (Exception,), {"__module__": "grpc._channel"})("hung up")
    ours = ValueError("ours")
    with quiet_beam():
        fail(hung_up)
        fail(ours)
    assert said == [ours]
    fail(hung_up)
    assert said == [ours, hung_up]


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_the_process_is_as_before_after_the_block(error):
    root, beam = logging.getLogger(), logging.getLogger("apache_beam")
    before = root.filters[:], beam.level, logging.getLogger("PIL").level, threading.excepthook
    try:
        with quiet_beam():
            if error:
                raise error
    except KeyboardInterrupt:
        pass
    after = root.filters[:], beam.level, logging.getLogger("PIL").level, threading.excepthook
    assert after == before


def test_importing_the_commands_changes_no_logging():
    code = (
        "import logging, threading, recordmill.pipeline.run, recordmill.pipeline.launch; "
        "print(logging.getLogger().filters, threading.excepthook is threading.__excepthook__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"


@pytest.mark.parametrize(
    ("flags", "last"),
    [
        (
            ["--input=s3://bucket/photos", "--output=dataset", "--s3-region-name=x"],
            "error: there is no flag --s3-region-name: did you mean --s3_region_name?",
        ),
        (["verify", "shelf://bucket/dataset"], "error: shelf://bucket/dataset cannot be read: "),
        (
            ["--input=nothing", "--output=dataset", "--plan"],
            "error: the input nothing does not exist",
        ),
    ],
)
def test_missing_extras_of_beam_are_not_mentioned(flags, last, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_GOOGLES_EXTRA, *flags],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith(last)
