"""A run that fails without a bug says so in one sentence."""

import json
import resource
import subprocess
import sys

import pytest

from recordmill.pipeline.explain_failure import check_address_space, explain_failure
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.errors import RecordmillError
from recordmill.transforms.shards.shard_writer import InputError

AGAIN = "run the same command again"
BEHIND = " [while running 'ConvertShards/ParDo(Convert)']"


def limits_at(monkeypatch, **soft):
    kinds = {resource.RLIMIT_AS: "space", resource.RLIMIT_NPROC: "processes"}
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (soft.get(kinds[kind], resource.RLIM_INFINITY), -1)
    )


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            InputError(
                "s3://b/in/a.jpg cannot be read: [Errno 5] InternalError: 's3://b/in/a.jpg'"
            ),
            "s3://b/in/a.jpg cannot be read: [Errno 5] InternalError: 's3://b/in/a.jpg'",
        ),
        (
            RuntimeError(
                "Traceback (most recent call last):\n  x\nrecordmill.transforms.shards.shard_writer"
                f".InputError: s3://b/in/a.jpg cannot be read: it was cut{BEHIND}"
            ),
            "s3://b/in/a.jpg cannot be read: it was cut",
        ),
        (
            RuntimeError(f"OSError: [Errno 5] An error occurred (500): 's3://b/in/x.csv'{BEHIND}"),
            "s3://b/in/x.csv cannot be read: An error occurred (500)",
        ),
        (
            OSError(5, "An error occurred (500)", "gs://b/in/x.csv"),
            "gs://b/in/x.csv cannot be read: An error occurred (500)",
        ),
        (
            OSError(5, "slow down", "s3://b/out/train-0.tfrecord"),
            "s3://b/out/train-0.tfrecord cannot be written: slow down",
        ),
        (KeyError("x"), None),
        (RuntimeError("OSError: [Errno 5] a local disk: '/mnt/x.jpg'"), None),
        (ValueError(""), None),
    ],
)
def test_a_store_that_fails_is_named(error, sentence):
    assert explain_failure(error, "s3://b/out") == (f"{sentence}: {AGAIN}" if sentence else None)


@pytest.mark.parametrize(
    ("why", "what", "place"),
    [
        ("NoSuchKey: the key does not exist", "read", "in/x.csv"),
        ("An error occurred (403) when calling GetObject: Forbidden", "read", "in/x.csv"),
        ("Access Denied", "write", "out/train-0.tfrecord"),
    ],
)
def test_the_same_command_is_not_advised_where_it_fails_again(why, what, place):
    sentence = explain_failure(OSError(5, why, f"s3://b/{place}"), "s3://b/out")
    verb = {"read": "read", "write": "written"}[what]
    assert sentence == (
        f"s3://b/{place} cannot be {verb}: {why}: check that it exists, and that this account may "
        f"{what} it"
    )


@pytest.mark.parametrize(
    ("error", "start"),
    [
        (RuntimeError("can't start new thread"), "no thread can be started ("),
        (
            RuntimeError(f"RuntimeError: can't start new thread{BEHIND}"),
            "no thread can be started (",
        ),
        (MemoryError(), "there is not enough memory ("),
        (OSError(12, "Cannot allocate memory"), "there is not enough memory ("),
        (RuntimeError(f"MemoryError{BEHIND}"), "there is not enough memory ("),
        (
            ImportError("libx.so: failed to map segment from shared object"),
            "there is not enough memory (",
        ),
        (BlockingIOError(11, "Resource temporarily unavailable"), "no process or thread can be"),
    ],
)
def test_a_machine_without_room_is_named(monkeypatch, error, start):
    limits_at(monkeypatch, space=400 * 2**20)
    sentence = explain_failure(error, "out")
    assert sentence.startswith(start)
    assert sentence.endswith(
        "(address space limited to 400.0 MiB): raise the limit, free memory, or lower --threads "
        "and --processes"
    )
    assert "unexpected" not in sentence
    limits_at(monkeypatch)
    assert "(no limit of this process is set)" in explain_failure(error, "out")


def test_an_error_that_another_one_caused_is_explained():
    error = RuntimeError("a step failed")
    error.__cause__ = MemoryError()
    assert explain_failure(error, "out").startswith("there is not enough memory (")


def test_too_little_address_space_is_refused_before_threads_start(monkeypatch):
    limits_at(monkeypatch)
    check_address_space()
    limits_at(monkeypatch, space=2**50)
    check_address_space()
    limits_at(monkeypatch, space=100 * 2**20)
    with pytest.raises(RecordmillError, match=r"is limited to 100\.0 MiB, which leaves no room"):
        check_address_space()


@pytest.mark.parametrize("mebibytes", [1, 240, 511])
def test_a_run_that_has_no_room_to_import_ends_before_it_does(
    monkeypatch, capsys, tmp_path, mebibytes
):
    limits_at(monkeypatch, space=mebibytes * 2**20)
    monkeypatch.setattr("recordmill.pipeline.launch._attempt", None)  # imports the rest
    summary = tmp_path / "summary.json"
    flags = [f"--input={tmp_path}", f"--output={tmp_path}/d", f"--summary-json={summary}"]
    assert launch(flags, build) == 1
    assert capsys.readouterr().err == (
        f"error: the address space of this process is limited to {mebibytes}.0 MiB, which is too "
        "little to begin: raise the limit (ulimit -v) to 1 GiB or more\n"
    )
    assert json.loads(summary.read_text())["exit_code"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("mebibytes", [150, 240, 252, 400, 520])
@pytest.mark.parametrize("processes", [1, 4])
def test_a_run_in_little_address_space_ends_in_one_sentence(photos, tmp_path, mebibytes, processes):
    command = [sys.executable, "-m", "pipeline.run", "--input", str(photos)]
    command += ["--output", str(tmp_path / "d"), f"--processes={processes}"]
    # Set by a shell: in a copy of this process, which may be larger, nothing would run.
    limited = ["sh", "-c", f'ulimit -v {mebibytes * 1024}; exec "$@"', "sh", *command]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("error: ")]
    assert "limited to" in line
    assert "unexpected" not in line
