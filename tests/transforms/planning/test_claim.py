import json
import os
import socket
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

from recordmill.transforms.files import storage
from recordmill.transforms.planning.claim import claim_output, find_busy, other_stagings, staging_names


def test_staging_folders_are_known_by_their_names():
    names = [".staging-b", "x.staging-a", ".stagin", ".staging-a"]
    assert staging_names(names) == [".staging-b", ".staging-a"]
    assert other_stagings(names, "a") == [".staging-b"]
    assert other_stagings(names, "b") == [".staging-a"]
    assert other_stagings(names, "") == [".staging-b", ".staging-a"]


def refusal(output, other):
    return f"{output} is being written by another run (.staging-{other}): wait for it, or choose another output"


def test_a_claim_is_a_file_in_the_plans_staging(tmp_path, tree):
    output = tmp_path / "out"
    assert claim_output(str(output), "aaa", "run 1") == ""
    assert claim_output(str(output), "aaa", "run 2") == ""  # two runs of one plan work together
    files = tree(output)
    assert list(files) == [".staging-aaa/claim.json"]
    claim = json.loads(files[".staging-aaa/claim.json"])
    since = datetime.fromisoformat(claim.pop("since"))
    assert abs((datetime.now(UTC) - since).total_seconds()) < 60
    assert claim == {"plan": "aaa", "run": "run 2", "host": socket.gethostname(), "process": os.getpid()}


def test_the_second_of_two_plans_is_refused_and_leaves_nothing(tmp_path, tree):
    output = tmp_path / "out"
    claim_output(str(output), "aaa", "run 1")
    before = tree(output)
    assert claim_output(str(output), "bbb", "run 2") == refusal(output, "aaa")
    assert tree(output) == before
    assert sorted(path.name for path in output.iterdir()) == [".staging-aaa"]


def test_staging_that_was_there_before_stays_with_its_shards(tmp_path):
    output = tmp_path / "out"
    for name in ("aaa", "bbb"):
        (output / f".staging-{name}").mkdir(parents=True)
    (output / ".staging-bbb/train-00000.done.json").write_text("{}")
    assert claim_output(str(output), "bbb", "run") == refusal(output, "aaa")
    assert (output / ".staging-bbb/train-00000.done.json").exists()


def test_of_two_plans_that_claim_within_each_other_one_is_refused(tmp_path, monkeypatch):
    # The second claims after the first has left its claim and before that one looks.
    output = str(tmp_path / "out")
    real, inner = storage.folder_names, []

    def look(folder):
        if not inner:
            inner.append("begun")
            inner[:] = [claim_output(output, "bbb", "run 2")]
        return real(folder)

    monkeypatch.setattr(storage, "folder_names", look)
    assert (claim_output(output, "aaa", "run 1"), inner) == ("", [refusal(output, "aaa")])


def test_of_two_plans_that_claim_at_once_at_most_one_gets_the_output(tmp_path):
    for attempt in range(30):
        output = tmp_path / f"{attempt}"
        gate, answers = threading.Barrier(2), {}

        def claim(plan, output=output, gate=gate, answers=answers):
            gate.wait()
            answers[plan] = claim_output(str(output), plan, "run")

        threads = [threading.Thread(target=claim, args=(plan,)) for plan in ("aaa", "bbb")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners = [plan for plan, refused in answers.items() if not refused]
        assert len(answers) == 2
        assert len(winners) <= 1
        assert [path.name for path in output.iterdir()] == [f".staging-{plan}" for plan in winners]


@pytest.fixture
def neighbour():
    """Another process of this machine."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.stdin.close()


def leave_claim(output, plan, **claim):
    (output / f".staging-{plan}").mkdir(parents=True)
    stated = {"plan": plan, "run": "r", "host": socket.gethostname(), "since": "2026-03-04T02:15:00+00:00", **claim}
    (output / f".staging-{plan}/claim.json").write_text(json.dumps(stated))


def test_a_run_that_is_at_work_is_named(tmp_path, neighbour):
    leave_claim(tmp_path, "aaa", process=neighbour.pid)
    expected = (
        f"{tmp_path} is being written by another run (.staging-aaa, process {neighbour.pid} since "
        "2026-03-04T02:15:00+00:00): wait for it, or choose another output "
        "(if that process is no run of Recordmill, delete .staging-aaa)"
    )
    assert find_busy(str(tmp_path), [".staging-absent", ".staging-aaa"]) == expected
    assert claim_output(str(tmp_path), "bbb", "run") == expected


def test_nobody_is_known_to_be_at_work(tmp_path, neighbour):
    leave_claim(tmp_path, "mine", process=os.getpid())
    leave_claim(tmp_path, "elsewhere", process=neighbour.pid, host=f"not-{socket.gethostname()}")
    leave_claim(tmp_path, "old")
    neighbour.stdin.close()
    neighbour.wait()
    leave_claim(tmp_path, "dead", process=neighbour.pid)
    (tmp_path / ".staging-cut").mkdir()
    (tmp_path / ".staging-cut/claim.json").write_bytes(b"")
    (tmp_path / ".staging-list").mkdir()
    (tmp_path / ".staging-list/claim.json").write_text("[]")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 6
    assert find_busy(str(tmp_path), names) == ""
