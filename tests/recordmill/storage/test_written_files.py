"""The files that Beam wrote are moved into the output all together, whatever cuts the moves."""

import hashlib
import json
import os

import pytest

from recordmill import storage
from recordmill.storage.written_files import (
    MOVES,
    WrittenFile,
    find_moved,
    publish_written,
    take_back,
)

CONTENTS = {"train-0": b"one", "train-1": b"two", "test-0": b"three", "labels.txt": b"0:cat\n"}


@pytest.fixture
def staged(tmp_path):
    """Four files in staging, the staging folder and the output."""
    staging, output = tmp_path / "out/.staging-abc", tmp_path / "out"
    staging.mkdir(parents=True)
    files = []
    for name, content in CONTENTS.items():
        (staging / name).write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        files.append(WrittenFile(name, f"my-{name}", len(content), digest))
    return files, str(staging), str(output)


def files_in(output):
    return {path.name: path.read_bytes() for path in sorted(output.iterdir()) if path.is_file()}


class Cut(BaseException):
    """Ends the process, as far as the code can tell."""


def publish_until(number, files, staging, output):
    """Publishes until a rename, removal or forced write, by their number."""
    calls = [0]

    def counting(function):
        def call(*given):
            calls[0] += 1
            if calls[0] == number:
                raise Cut
            return function(*given)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("move_file", "write_file", "remove_files", "force_to_disk"):
            patch.setattr(storage, name, counting(getattr(storage, name)))
        with pytest.raises(Cut):
            publish_written(files, staging, output)


MOVED = {f"my-{name}": content for name, content in CONTENTS.items()}


@pytest.mark.parametrize("number", range(1, 11))
def test_a_cut_at_any_step_is_taken_back_or_completed(staged, tmp_path, number):
    publish_until(number, *staged)
    # Writing, forcing and renaming the list, forcing the folder, four files, forcing, the list.
    moved = dict([*MOVED.items()][: max(number - 5, 0)])
    assert files_in(tmp_path / "out") == moved
    assert find_moved(*staged[1:]) == tuple(moved)
    publish_written(*staged)
    assert files_in(tmp_path / "out") == MOVED
    assert not (tmp_path / "out/.staging-abc" / MOVES).exists()


@pytest.mark.parametrize("number", [5, 7, 10])
def test_what_a_cut_has_moved_is_deleted(staged, tmp_path, number):
    publish_until(number, *staged)
    (tmp_path / "out/notes.txt").write_bytes(b"mine")
    assert take_back(*staged[1:]) == min(number - 5, 4)
    assert files_in(tmp_path / "out") == {"notes.txt": b"mine"}


def test_files_that_cannot_all_be_moved_are_taken_back(staged, tmp_path, monkeypatch):
    move = storage.move_file

    def fail_late(source, target):
        if target.endswith("labels.txt"):
            raise OSError(28, "No space left on device", target)
        move(source, target)

    monkeypatch.setattr(storage, "move_file", fail_late)
    with pytest.raises(OSError, match="No space left"):
        publish_written(*staged)
    assert files_in(tmp_path / "out") == {}


def test_only_plain_names_with_the_listed_bytes_are_deleted(tmp_path):
    output = tmp_path / "dataset"
    (output / ".staging-abc").mkdir(parents=True)
    victim, mine = tmp_path / "victim.txt", output / "notes.txt"
    victim.write_text("precious")
    mine.write_text("mine")
    digest = hashlib.sha256(b"precious").hexdigest()
    names = ["../victim.txt", str(victim), "notes.txt", "link.txt", ".hidden", "", "..", "a\\b"]
    (output / "link.txt").symlink_to(victim)
    (output / ".hidden").write_text("precious")
    listed = [{"source": "x", "target": each, "bytes": 8, "sha256": digest} for each in names]
    before = sorted(os.listdir(output))
    for content in (json.dumps(listed), "[", "{}", "[1]", "null", '[{"target": 5}]'):
        (output / ".staging-abc" / MOVES).write_text(content)
        assert take_back(str(output / ".staging-abc"), str(output)) == 0
        assert (victim.read_text(), mine.read_text()) == ("precious", "mine")
        assert sorted(os.listdir(output)) == before
