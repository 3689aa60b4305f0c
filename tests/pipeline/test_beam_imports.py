"""A conversion of local files imports little of Beam, and everything can be imported after it."""

import json
import os
import subprocess
import sys

from recordmill.pipeline.attempt import UNUSED_OF_BEAM
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

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
answer = [code, loaded, GCSFileSystem.scheme(), os.environ["OPENBLAS_NUM_THREADS"]]
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
    flags = [f"--input={photos}", "--config=configs/class_folders.yaml"]
    out, (code, loaded, scheme, threads) = run(*flags, f"--output={tmp_path / 'command'}")
    assert (code, json.loads(out)["ledger"]["written"], scheme, threads) == (0, 10, "gs", "1")
    unused = (*UNUSED_OF_BEAM, "google.cloud.", "pymongo")
    assert [name for name in loaded if name.startswith(unused)] == []

    assert launch([*flags, f"--output={tmp_path / 'called'}"], build) == 0
    shards = sorted(path.name for path in (tmp_path / "called").glob("*.tfrecord"))
    assert len(shards) == 2
    for name in shards:
        assert (tmp_path / "command" / name).read_bytes() == (
            tmp_path / "called" / name
        ).read_bytes()


def test_threads_of_algebra_are_the_users_choice(tmp_path):
    out, (code, *_, threads) = run(
        "--input=nothing", f"--output={tmp_path}", OPENBLAS_NUM_THREADS="3"
    )
    assert (code, json.loads(out)["status"], threads) == (1, "failed", "3")
