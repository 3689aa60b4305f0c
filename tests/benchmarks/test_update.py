import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import measure, photographs, update
from benchmarks.measure import BenchmarkError, Run


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Folders of small files in place of photographs."""

    def write(count, **_):
        folder = tmp_path / f"pool-{count}"
        for number in range(count):
            path = folder / f"class_{number % 2}" / f"photograph_{number:06}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"photograph %d" % number)
        return folder

    monkeypatch.setattr(photographs, "make", write)
    return write


def names(folder):
    return {path.name for path in folder.rglob("*.jpg")}


def test_one_in_fifty_photographs_is_edited(make, tmp_path):
    found = update.edit(400, make, tmp_path)
    added, removed = (
        names(found.after) - names(found.before),
        names(found.before) - names(found.after),
    )
    assert (len(names(found.before)), len(added), len(removed)) == (400, 4, 2)
    assert (found.edits, found.images) == (6, 402)
    assert names(found.emptied) == names(found.after)
    changed, zeros = [], 0
    for path in found.after.rglob("*.jpg"):
        before, emptied = (
            folder / path.relative_to(found.after) for folder in (found.before, found.emptied)
        )
        if before.exists() and before.read_bytes() != path.read_bytes():
            changed.append(path.name)
        assert emptied.stat().st_size == path.stat().st_size
        assert emptied.stat().st_mtime_ns == path.stat().st_mtime_ns
        zeros += not any(emptied.read_bytes())
    assert (changed, zeros) == (sorted(changed), 402 - 6)
    assert len(changed) == 2


def test_an_update_that_gives_other_bytes_is_an_error(monkeypatch, tmp_path):
    contents = iter([b"a", b"a", b"b"])
    marker = {"run": {"images_reused": 1}, "ledger": {"written": 3}}

    def run(command):
        output = Path(command[command.index("--output") + 1])
        output.mkdir()
        (output / "recordmill.json").write_text(json.dumps(marker))
        (output / "shard").write_bytes(next(contents))
        return Run(1, 1, 1, 0, {})

    monkeypatch.setattr(measure, "run", run)
    collection = update.Collection(tmp_path, tmp_path, tmp_path, 2, 3)
    with pytest.raises(BenchmarkError, match="other files than a rebuild: shard"):
        update.check([], collection, tmp_path)
    contents = iter([b"a"] * 6)
    assert update.check([], collection, tmp_path) == {"files_compared": 2, "converted": 2}
    with pytest.raises(BenchmarkError, match="2 images were converted, and 3 are new or changed"):
        update.check([], replace(collection, edits=3), tmp_path)
