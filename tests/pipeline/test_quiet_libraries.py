import logging
import subprocess
import sys
import threading
import warnings

import pytest
from PIL import Image

from recordmill.pipeline.quiet_libraries import quiet_libraries, show_libraries

WITHOUT_GOOGLES_EXTRA = """
import sys
sys.modules["apitools"] = None
sys.modules["pymongo"] = None
from recordmill.pipeline.run import main
main()
"""


def test_beam_is_quiet_within_the_block_and_others_are_not(caplog):
    with show_libraries(False):
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
    with show_libraries(False):
        fail(hung_up)
        fail(ours)
    assert said == [ours]
    fail(hung_up)
    assert said == [ours, hung_up]


def warn_as_pillow(category):
    warnings.warn_explicit("odd", category, "TiffImagePlugin.py", 1, module="PIL.TiffImagePlugin")


def test_pillows_warnings_are_ignored_in_all_threads_within_the_block():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with quiet_libraries():
            for category in (UserWarning, Image.DecompressionBombWarning):
                thread = threading.Thread(target=warn_as_pillow, args=(category,))
                thread.start()
                thread.join()
            warnings.warn_explicit("another's", UserWarning, "other.py", 1, module="other")
        warn_as_pillow(UserWarning)
    assert [str(each.message) for each in heard] == ["another's", "odd"]


def test_importing_the_library_changes_no_filter_of_warnings():
    code = (
        "import warnings, recordmill.imaging; "
        "print([each for each in warnings.filters if 'PIL' in str(each)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_the_process_is_as_before_after_the_block(error):
    root, beam = logging.getLogger(), logging.getLogger("apache_beam")
    before = root.filters[:], beam.level, logging.getLogger("PIL").level, threading.excepthook
    try:
        with show_libraries(False):
            if error:
                raise error
    except KeyboardInterrupt:
        pass
    after = root.filters[:], beam.level, logging.getLogger("PIL").level, threading.excepthook
    assert after == before


def test_a_conversion_in_a_users_process_leaves_its_root_logger_and_threads_alone(caplog):
    hook = threading.excepthook
    with quiet_libraries():
        logging.getLogger("apache_beam.runners").error("beam's")
        logging.warning("of a user's function")
        assert threading.excepthook is hook
    assert caplog.messages == ["of a user's function"]


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
        pytest.param(
            ["--input=s3://bucket/photos", "--output=dataset", "--s3-region-name=x"],
            "error: there is no flag --s3-region-name: did you mean --s3_region_name?",
            marks=pytest.mark.slow,
        ),
        (["verify", "shelf://bucket/dataset"], "error: shelf://bucket/dataset cannot be read: "),
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
