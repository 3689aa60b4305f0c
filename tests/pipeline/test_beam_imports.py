"""A conversion of local files imports little of Beam, and everything can be imported after it."""

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest

from recordmill.pipeline.import_beam import UNUSED_OF_BEAM

CONVERT_AND_SAY_WHAT_IS_LOADED = """
import json, os, sys
from recordmill.pipeline.run import main
code = None
try:
    main()
except SystemExit as end:
    code = end.code
loaded = sorted(sys.modules)
from apache_beam.io.gcp.gcsfilesystem import GCSFileSystem
answer = {
    "code": code,
    "loaded": loaded,
    "google": GCSFileSystem.scheme(),
    "algebra": os.environ["OPENBLAS_NUM_THREADS"],
}
print(json.dumps(answer), file=sys.stderr)
"""


def run(*flags, **environment):
    child = subprocess.run(
        [sys.executable, "-c", CONVERT_AND_SAY_WHAT_IS_LOADED, *flags],
        env={
            **{name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"},
            **environment,
        },
        capture_output=True,
        text=True,
    )
    return child.stdout, json.loads(child.stderr.splitlines()[-1])


def test_modules_for_other_services_are_not_loaded_but_can_be(photos, tmp_path):
    # With another version of Beam, read again which of its imports are optional.
    assert version("apache-beam").startswith("2.77.")
    flags = [f"--input={photos}", "--config=configs/class_folders.yaml"]
    out, answer = run(*flags, f"--output={tmp_path / 'dataset'}")
    assert json.loads(out)["ledger"]["written"] == 10
    assert (answer["code"], answer["google"], answer["algebra"]) == (0, "gs", "1")
    unused = (*UNUSED_OF_BEAM, "google.cloud.", "pymongo")
    assert [name for name in answer["loaded"] if name.startswith(unused)] == []


@pytest.mark.slow
def test_a_process_of_the_users_has_all_of_beam(photos, tmp_path):
    code = f"""
import sys, recordmill
recordmill.convert({str(photos)!r}, {str(tmp_path / "dataset")!r}, processes=1)
assert sys.modules["apache_beam.io.gcp.bigquery"] and sys.modules["pandas"]
"""
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_beam_starts_no_thread_of_python_when_it_is_imported():
    # Worker processes are forked after the import.
    code = "import recordmill.pipeline.runners, threading; print(threading.active_count())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "1\n"


@pytest.mark.slow
def test_threads_of_algebra_are_the_users_choice(tmp_path):
    out, answer = run("--input=nothing", f"--output={tmp_path}", OPENBLAS_NUM_THREADS="3")
    assert (json.loads(out)["status"], answer["code"], answer["algebra"]) == ("failed", 1, "3")
