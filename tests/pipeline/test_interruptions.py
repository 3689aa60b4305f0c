"""Runs that are ended from outside: `kill -9` at any moment, Ctrl-C, SIGTERM."""

import hashlib
import json
import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from recordmill.pipeline.verify import main as verify
from recordmill.storage.dataset_files import current_folder

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {
    "shards.count": 6,
    "splits.fractions": {"train": 0.6, "test": 0.4},
    "images.reencode": "always",
}


@pytest.fixture
def many(class_folders, tmp_path):
    """Enough for twelve shards."""
    root = class_folders(tmp_path / "photos", {"cat": 40, "dog": 40}, size=(200, 150))
    (root / "cat/text.jpg").write_bytes(b"no picture")
    return root


def flags(source, output, settings, processes=1):
    sets = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
    return [
        f"--input={source}",
        f"--output={output}",
        "--threads=1",
        f"--processes={processes}",
        *sets,
    ]


# Writes so many shards, and each of the others after three seconds: even on a busy machine it does
# not come to its end.
WRITE_SOME = """
import sys, time
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.transforms.shards.shard_files import WrittenShard

left, real = int(sys.argv[1]), WrittenShard.write

def write(*arguments):
    global left
    if not left:
        time.sleep(3)
    else:
        left -= 1
    return real(*arguments)

WrittenShard.write = write
sys.exit(launch(sys.argv[2:], build))
"""


def wait_until(condition, process, seconds=120.0):
    """True once the condition holds; False where the process ended first."""
    end = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            return False
        assert time.monotonic() < end, "timed out before reaching the step"
        time.sleep(0.02)
    return True


def finished_shards(output):
    return len(list(output.glob(".staging-*/*.done.json")))


@pytest.mark.slow
def test_kill_9_while_converting_then_a_rerun_gives_an_undisturbed_dataset(
    convert, spawn, many, tmp_path
):
    undisturbed = convert(many, settings=SETTINGS, output=tmp_path / "undisturbed")
    output, chance = tmp_path / "killed", random.Random(1)
    (tmp_path / "tmp").mkdir()
    for some, shards, processes in ((2, 1, 1), (4, 4, 1), (2, 6, 2), (5, 9, 1)):
        environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
        process = spawn(
            some, *flags(many, output, SETTINGS, processes), script=WRITE_SOME, env=environment
        )
        assert wait_until(lambda: finished_shards(output) >= shards, process)  # noqa: B023
        time.sleep(chance.random() / 50)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        assert not (output / "recordmill.json").exists()
    assert list((tmp_path / "tmp").iterdir()) == []
    survived = finished_shards(output)
    again = convert(many, settings=SETTINGS, output=output)
    assert (again.code, again.staging) == (0, [])
    assert 9 <= survived == again.marker["run"]["shards_reused"] < 12
    assert again.deterministic_files == undisturbed.deterministic_files
    assert again.lasting_marker == undisturbed.lasting_marker
    assert again.rejected == undisturbed.rejected
    assert again.files == undisturbed.files


# Kills itself at a moment of the switch, which takes a millisecond.
KILL = """
import sys
sys.path.insert(0, sys.argv[1])
from cut_switch import cut_switch, kill_self
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

with cut_switch(sys.argv[2], int(sys.argv[3]), kill_self):
    launch(sys.argv[4:], build)
"""
SUPPORT = Path(__file__).parents[1] / "support"
MOMENTS = {
    "old marker away": ("remove_files", 2),
    "first file in": ("move_file", 2),
    "last file in": ("write_file", 1),
    "marker in": ("remove_folder", 1),
}


# test_publishing cuts at all of these moments, without a process.
@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(each, marks=() if each == "first file in" else pytest.mark.slow)
        for each in MOMENTS
    ],
)
def test_kill_9_while_switching_then_a_rerun_gives_the_new_dataset(
    convert, spawn, class_folders, tmp_path, moment
):
    root = class_folders(tmp_path / "photos", {"cat": 12, "dog": 12})
    one, other = {**SETTINGS, "shards.count": 2}, {**SETTINGS, "shards.count": 3}
    undisturbed = convert(root, settings=other, output=tmp_path / "undisturbed")
    output = tmp_path / "killed"
    convert(root, settings=one, output=output)
    process = spawn(
        SUPPORT, *MOMENTS[moment], *flags(root, output, other), "--overwrite", script=KILL
    )
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert (output / "recordmill.json").exists() == (moment == "marker in")
    again = convert(root, "--overwrite", settings=other, output=output)
    assert (again.code, again.staging) == (0, [])
    assert again.files == undisturbed.files
    assert again.deterministic_files == undisturbed.deterministic_files
    assert again.lasting_marker == undisturbed.lasting_marker


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(each, marks=() if each == "last file in" else pytest.mark.slow)
        for each in MOMENTS
    ],
)
def test_kill_9_while_an_update_switches_then_a_rerun_gives_a_rebuild(
    convert, spawn, class_folders, picture, tmp_path, moment
):
    root = class_folders(tmp_path / "photos", {"cat": 12, "dog": 12})
    output = tmp_path / "updated"
    before = convert(root, settings=SETTINGS, output=output)
    (root / "cat" / "new.jpg").write_bytes(picture("new"))
    (root / "dog" / "5.jpg").unlink(missing_ok=True)
    rebuilt = convert(root, settings=SETTINGS, output=tmp_path / "rebuilt")
    process = spawn(
        SUPPORT, *MOMENTS[moment], *flags(root, output, SETTINGS), "--update", script=KILL
    )
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    if moment == "marker in":  # all of the new dataset
        assert replace(before, output=output).lasting_marker == rebuilt.lasting_marker
    else:  # no dataset: the new one is complete in staging
        assert not (output / "recordmill.json").exists()
        assert len(list(output.glob(".staging-*/recordmill.json"))) == 1
    again = convert(root, "--update", settings=SETTINGS, output=output)
    assert (again.code, again.staging) == (0, [])
    assert again.files == rebuilt.files
    assert again.deterministic_files == rebuilt.deterministic_files
    assert again.lasting_marker == rebuilt.lasting_marker


def test_kill_9_while_an_update_converts_leaves_the_old_dataset_and_a_rerun_gives_a_rebuild(
    convert, spawn, many, picture, tmp_path
):
    output = tmp_path / "updated"
    before = convert(many, settings=SETTINGS, output=output)
    old = before.deterministic_files
    (many / "cat" / "new.jpg").write_bytes(picture("new"))
    rebuilt = convert(many, settings=SETTINGS, output=tmp_path / "rebuilt")
    process = spawn(4, *flags(many, output, SETTINGS), "--update", script=WRITE_SOME)
    assert wait_until(lambda: finished_shards(output) >= 3, process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    there = replace(before, output=output)
    assert there.lasting_marker["plan"] != rebuilt.lasting_marker["plan"]
    assert {name: there.deterministic_files[name] for name in old} == old
    again = convert(many, "--update", settings=SETTINGS, output=output)
    assert (again.code, again.staging) == (0, [])
    assert again.marker["run"]["shards_reused"] >= 3
    assert again.deterministic_files == rebuilt.deterministic_files
    assert again.lasting_marker == rebuilt.lasting_marker


# Kills itself before a file of the output is opened, moved or deleted: its first argument counts
# those before that.
KILL_SOMEWHERE = """
import os, signal, sys
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

left, output = int(sys.argv[1]), sys.argv[2]

def count(event, arguments):
    global left
    if not event.startswith(("open", "os.")):
        return
    if any(isinstance(each, str) and output in each for each in arguments):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(count)
sys.exit(launch(sys.argv[3:], build))
"""


@pytest.mark.slow
def test_kill_9_at_random_moments(convert, spawn, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 30, "dog": 30}, size=(400, 300))
    undisturbed = convert(root, settings=SETTINGS, output=tmp_path / "undisturbed")
    output, chance = tmp_path / "killed", random.Random()
    moments = [chance.randrange(500) for _ in range(3)]  # of almost 600 in a whole run
    for number, moment in enumerate(moments):
        process = spawn(moment, output, *flags(root, output, SETTINGS), script=KILL_SOMEWHERE)
        process.communicate()
        assert process.returncode in ((0, -signal.SIGKILL) if number else (-signal.SIGKILL,)), (
            moments
        )
    again = convert(root, settings=SETTINGS, output=output)
    assert (again.code, again.staging) == (0, []), moments
    assert again.deterministic_files == undisturbed.deterministic_files, moments
    assert again.lasting_marker == undisturbed.lasting_marker
    assert again.files == undisturbed.files


@pytest.mark.parametrize("processes", [pytest.param(1, marks=pytest.mark.slow), 3])
@pytest.mark.parametrize(
    ("number", "code", "how"),
    [
        pytest.param(signal.SIGINT, 130, "interrupted", marks=pytest.mark.slow),
        (signal.SIGTERM, 143, "stopped by a signal"),
    ],
)
def test_a_signal_ends_a_run_with_one_sentence(
    spawn, convert, many, tmp_path, number, code, how, processes
):
    output = tmp_path / "stopped"
    process = spawn(3, *flags(many, output, SETTINGS, processes), script=WRITE_SOME)
    assert wait_until(lambda: finished_shards(output) >= 3, process)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == code
    assert "Traceback" not in stderr
    (sentence,) = [line for line in stderr.splitlines() if line.startswith("error: ")]
    assert sentence.startswith(f"error: {how} after ")
    assert sentence.endswith(" images: run the same command again")
    assert stdout.count("\n") == 1
    line = json.loads(stdout)
    assert (line["exit_code"], line["status"]) == (code, "failed")
    assert f"error: {line['message']}" == sentence
    assert not (output / "recordmill.json").exists()
    again = convert(many, settings=SETTINGS, output=output)
    assert again.code == 0
    assert 3 <= again.marker["run"]["shards_reused"] < 12


KILL_EVERYWHERE = """
import sys
sys.path.insert(0, sys.argv[1])
import kill_at_operations
kill_at_operations.main(int(sys.argv[2]), sys.argv[3], sys.argv[4:])
"""
KILLS = 20


def current_of(output):
    return Path(current_folder(str(output)))


def digests_of(files):
    return {hashlib.sha256(content).hexdigest() for content in files.values()}


def shards_of(files):
    return digests_of(
        {name: content for name, content in files.items() if name.endswith(".tfrecord")}
    )


@pytest.mark.slow
@pytest.mark.parametrize("cuts", ["even", "fixed"])
@pytest.mark.parametrize("place", ["in place", "versions"])
def test_kill_9_at_twenty_operations_of_an_update(
    convert, spawn, class_folders, picture, tree, tmp_path, place, cuts
):
    root, output = class_folders(tmp_path / "photos", {"cat": 12, "dog": 12}), tmp_path / "updated"
    for path in root.rglob("*.jpg"):
        # Their versions are sure, so that untouched shards are linked.
        os.utime(path, (1_700_000_000, 1_700_000_000))
    settings = {**SETTINGS, "shards.count": 4, "shards.cuts": cuts}
    how = ["--versions"] if place == "versions" else []
    old = replace(convert(root, *how, settings=settings, output=output), output=current_of(output))
    old_marker, old_files, old_tree = old.lasting_marker, old.deterministic_files, tree(old.output)
    (root / "cat" / "new.jpg").write_bytes(picture("new"))
    (root / "cat" / "bad.jpg").write_bytes(b"no picture")
    (root / "dog" / "05.jpg").unlink()
    new = convert(root, settings=settings, output=tmp_path / "rebuilt")
    assert (
        len(shards_of(old_files) & shards_of(new.deterministic_files))
        == {"even": 1, "fixed": 6}[cuts]
    )
    sets = [each for each in flags(root, "", settings) if not each.startswith("--output")]
    process = spawn(SUPPORT, KILLS, output, *sets, "--update", *how, script=KILL_EVERYWHERE)
    stdout, stderr = process.communicate(timeout=3_000)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["count"] > 100
    seen = set()
    for number in ("all", *(f"{each:02}" for each in range(KILLS))):
        copy = tmp_path / f"updated-{number}"
        there = digests_of(tree(copy))
        is_complete = digests_of(new.deterministic_files) <= there
        assert shards_of(old_files) <= there or is_complete
        if place == "versions":
            assert tree(copy / old.output.name) == old_tree
        if (copy / "recordmill.json").exists():
            assert verify([str(copy)]) == 0
            marker = replace(old, output=current_of(copy)).lasting_marker
            assert marker in (old_marker, new.lasting_marker)
            seen.add("old" if marker == old_marker else "new")
        else:
            assert is_complete
            seen.add("none")
        again = convert(root, "--update", *how, settings=settings, output=copy)
        result = replace(again, output=current_of(copy))
        assert (again.code, again.staging, result.staging) == (0, [], [])
        assert result.deterministic_files == new.deterministic_files
        assert result.lasting_marker == new.lasting_marker
        assert result.files == new.files
        if place == "versions":
            assert sorted(os.listdir(copy)) == sorted(
                {old.output.name, result.output.name, "recordmill.json"}
            )
            assert tree(copy / old.output.name) == old_tree
    assert seen == {"old", "new"} | ({"none"} if place == "in place" else set())
