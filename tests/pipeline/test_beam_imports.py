"""A conversion imports Beam as it is installed, and leaves the modules of the process alone."""

import json
import os
import subprocess
import sys

CONVERT_AND_SAY_WHAT_IS_LOADED = """
import json, os, sys
from recordmill.pipeline.run import main
code = None
try:
    main()
except SystemExit as end:
    code = end.code
from apache_beam.io.filesystem import FileSystem
schemes = [kind.scheme() for kind in FileSystem.get_all_subclasses()]
answer = {
    "code": code,
    "hidden": [name for name, module in sys.modules.items() if module is None],
    "google": "gs" in schemes,
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


def test_beam_has_all_its_file_systems_after_a_conversion_of_local_files(photos, tmp_path):
    flags = [f"--input={photos}", "--config=configs/class_folders.yaml"]
    out, answer = run(*flags, f"--output={tmp_path / 'dataset'}")
    assert json.loads(out)["ledger"]["written"] == 10
    assert answer == {"code": 0, "hidden": [], "google": True, "algebra": "1"}


def test_beam_starts_no_thread_of_python_when_it_is_imported():
    # Worker processes are forked after the import.
    code = "import recordmill.pipeline.runners, threading; print(threading.active_count())"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout == "1\n"


def test_threads_of_algebra_are_the_users_choice(tmp_path):
    out, answer = run("--input=nothing", f"--output={tmp_path}", OPENBLAS_NUM_THREADS="3")
    assert (json.loads(out)["status"], answer["code"], answer["algebra"]) == ("failed", 1, "3")
