import errno
import json
import os
import pickle
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recordmill import storage
from recordmill.schemas.dataset.file_names import staging_names
from recordmill.transforms.planning.runs import (
    RunSettings,
    claim_output,
    find_busy,
    release_claim,
    release_claims,
    remove_staging,
)


def test_staging_folders_are_known_by_their_names():
    names = [".staging-b", "x.staging-a", ".stagin", ".staging-a"]
    assert staging_names(names) == [".staging-b", ".staging-a"]


def test_a_claim_is_a_file_in_the_plans_staging(tmp_path, tree):
    output = tmp_path / "out"
    (output / ".staging-aaa").mkdir(parents=True)
    # How the plan's last run failed: that is over.
    (output / ".staging-aaa" / "outcome.json").write_text("{}")
    claim_output(str(output), "aaa", "1")
    before = datetime.now(UTC)
    # Two runs of one plan work together.
    claim_output(str(output), "aaa", "2", shards=3, references=40)
    files = tree(output)
    assert list(files) == [".staging-aaa/claim-1.json", ".staging-aaa/claim-2.json"]
    claim = json.loads(files[".staging-aaa/claim-2.json"])
    since = datetime.fromisoformat(claim.pop("since"))
    assert before - timedelta(seconds=1) < since <= datetime.now(UTC)
    born = (
        Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        if Path("/proc").is_dir()
        else ""
    )
    expected = {
        "plan": "aaa",
        "run": "2",
        "host": socket.gethostname(),
        "process": os.getpid(),
        "born": born,
    }
    assert claim == {**expected, "shards": 3, "references": 40}


def test_a_claim_that_is_taken_back_leaves_nothing_but_work(tmp_path, tree):
    output = tmp_path / "out"
    claim_output(str(output), "aaa", "1")
    claim_output(str(output), "aaa", "2")
    release_claim(str(output), "aaa", "1")
    assert list(tree(output)) == [".staging-aaa/claim-2.json"]
    release_claim(str(output), "aaa", "2")
    release_claim(str(output), "aaa", "2")
    assert list(output.iterdir()) == []


def test_a_run_that_ends_early_takes_its_claim_back_whatever_its_plan(tmp_path, tree):
    output = tmp_path / "out"
    for plan, run in (("aaa", "1"), ("bbb", "2")):
        claim_output(str(output), plan, run)
    (output / ".staging-aaa" / "train-00000.done.json").write_text("{}")
    release_claims(str(output), "1")
    assert list(tree(output)) == [".staging-aaa/train-00000.done.json", ".staging-bbb/claim-2.json"]
    release_claims(str(tmp_path / "absent"), "1")


def test_staging_is_deleted_by_the_last_run_that_works_there(tmp_path, tree):
    output = tmp_path / "out"
    for run in ("1", "2"):
        claim_output(str(output), "aaa", run)
    leave_claim(output, "aaa", host="elsewhere")
    remove_staging(str(output), "aaa", "1")
    assert list(tree(output)) == [".staging-aaa/claim-2.json", ".staging-aaa/claim.json"]
    remove_staging(str(output), "aaa", "2")
    assert list(output.iterdir()) == []


def test_a_claim_is_written_again_where_another_run_deletes_the_folder(tmp_path, monkeypatch, tree):
    # The folder goes between the two, for the dataset has just been published.
    real, removed = storage.write_file, []

    def write(path, content):
        if len(removed) < 3:
            removed.append(path)
            storage.remove_folder(os.path.dirname(path))
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        real(path, content)

    monkeypatch.setattr(storage, "write_file", write)
    claim_output(str(tmp_path), "aaa", "1")
    assert (len(removed), list(tree(tmp_path))) == (3, [".staging-aaa/claim-1.json"])


def busy(output, plan):
    names = staging_names(storage.folder_names(output))
    return find_busy(output, [name for name in names if name != f".staging-{plan}"])


def test_of_two_plans_that_claim_at_once_at_most_one_finds_no_other(tmp_path):
    for attempt in range(30):
        output = str(tmp_path / f"{attempt}")
        gate, answers = threading.Barrier(2), {}

        def claim(plan, output=output, gate=gate, answers=answers):
            gate.wait()
            claim_output(output, plan, "run")
            answers[plan] = busy(output, plan)

        threads = [threading.Thread(target=claim, args=(plan,)) for plan in ("aaa", "bbb")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 2
        assert len([plan for plan, refused in answers.items() if not refused]) <= 1


@pytest.fixture
def neighbor():
    """Another process of this machine."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.stdin.close()


def leave_claim(output, plan, **claim):
    (output / f".staging-{plan}").mkdir(parents=True, exist_ok=True)
    stated = {
        "plan": plan,
        "run": "r",
        "host": socket.gethostname(),
        "since": "2026-03-04T02:15:00+00:00",
        **claim,
    }
    (output / f".staging-{plan}/claim.json").write_text(json.dumps(stated))


def test_a_run_that_is_at_work_is_named(tmp_path, neighbor):
    leave_claim(tmp_path, "aaa", process=neighbor.pid)
    assert find_busy(str(tmp_path), [".staging-absent", ".staging-aaa"]) == (
        f"{tmp_path} is in use by another run (.staging-aaa, process {neighbor.pid} on "
        f"{socket.gethostname()} since "
        "2026-03-04T02:15:00+00:00): wait for it, or choose another output; if that run has ended, "
        "use --discard or "
        "delete .staging-aaa"
    )


def test_a_run_on_another_machine_may_be_at_work(tmp_path):
    leave_claim(tmp_path, "aaa", process=1, host="worker-7")
    assert find_busy(str(tmp_path), [".staging-aaa"]) is None
    assert find_busy(str(tmp_path), [".staging-aaa"], elsewhere=True) == (
        f"{tmp_path} is in use by another run (.staging-aaa, process 1 on worker-7 since "
        "2026-03-04T02:15:00+00:00): "
        "wait for it, or choose another output; if that run has ended, use --discard or delete "
        ".staging-aaa"
    )


def test_no_other_run_is_known_to_be_at_work(tmp_path, neighbor):
    leave_claim(tmp_path, "old")
    leave_claim(tmp_path, "reborn", process=neighbor.pid, born="1")
    # As in a container that was started anew.
    leave_claim(tmp_path, "mine", process=os.getpid(), born="1")
    neighbor.stdin.close()
    neighbor.wait()
    leave_claim(tmp_path, "dead", process=neighbor.pid)
    (tmp_path / ".staging-cut").mkdir()
    (tmp_path / ".staging-cut/claim.json").write_bytes(b"")
    (tmp_path / ".staging-list").mkdir()
    (tmp_path / ".staging-list/claim.json").write_text("[]")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 6
    assert find_busy(str(tmp_path), names, elsewhere=True) is None


def test_it_travels_to_workers_and_has_quiet_defaults():
    run = RunSettings(run_id="r", output="o", outcome_file="f")
    assert pickle.loads(pickle.dumps(run)) == run
    assert (run.overwrite, run.preview, run.threads, run.inputs, run.facts) == (
        False,
        False,
        0,
        {},
        {},
    )


def test_its_fields_are_named():
    with pytest.raises(TypeError):
        RunSettings("r", "o", "f")
