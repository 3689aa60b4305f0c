import json
import os
from dataclasses import replace

import pytest
from make_marker import make_marker

from recordmill import storage
from recordmill.schemas.errors import RecordmillError
from recordmill.storage.dataset_files import (
    analysis_fits,
    contents_digest,
    publish_transform_fn,
    read_analysis,
    remove_stale_analysis,
)


def marker_of(labels=("cat", "dog"), shards=("aa", "bb"), catch_all=None):
    ids = {name: index for index, name in enumerate(labels)}
    shards = {"train": shards, "test": ["cc"]}
    splits = {
        name: {"shards": [{"sidecar_sha256": digest} for digest in each]}
        for name, each in shards.items()
    }
    return make_marker({"labels": {"catch_all": catch_all}}, labels=ids, splits=splits)


def note_of(marker, split="train", size=(4, 6)):
    return {"split": split, "size": list(size), "contents": contents_digest(marker, split)}


@pytest.fixture
def built(tmp_path):
    def build(word="model"):
        folder = tmp_path / f"built-{word}"
        (folder / "variables").mkdir(parents=True)
        (folder / "saved_model.pb").write_text(word)
        (folder / "variables" / "data").write_text(f"{word}'s variables")
        return folder

    return build


@pytest.fixture
def output(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "train.tfrecord").write_text("records")
    return folder


def expected(word, note):
    return {
        "train.tfrecord": b"records",
        "transform_fn/saved_model.pb": word.encode(),
        "transform_fn/variables/data": f"{word}'s variables".encode(),
        "transform_fn/analysis.json": note,
    }


def test_publishing_replaces_the_whole_folder(built, output, tree):
    publish_transform_fn(built("old"), note_of(marker_of()), str(output))
    (output / "transform_fn" / "assets").mkdir()
    (output / "transform_fn" / "assets" / "left").write_text("of the old one")
    note = note_of(marker_of(), size=(1, 1))
    publish_transform_fn(built("new"), note, str(output))
    files = tree(output)
    assert files == expected("new", files["transform_fn/analysis.json"])
    assert read_analysis(str(output)) == json.loads(files["transform_fn/analysis.json"]) == note


@pytest.mark.parametrize(
    ("marker", "fit"),
    [
        (marker_of(), True),
        (marker_of(shards=("aa", "xx")), False),
        (marker_of(shards=("bb", "aa")), False),
        (marker_of(labels=("cat", "eel")), False),
        (marker_of(labels=("dog", "cat")), False),
        (marker_of(catch_all="dog"), False),
        (replace(marker_of(), splits={}), False),
    ],
)
def test_a_note_fits_the_rows_and_labels_that_it_was_made_of(marker, fit):
    assert analysis_fits(note_of(marker_of()), marker) is fit


def test_no_note_fits_nothing():
    assert analysis_fits(None, marker_of()) is False


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"split": "train"'])
def test_a_damaged_note_is_none(built, output, content):
    publish_transform_fn(built(), note_of(marker_of()), str(output))
    (output / "transform_fn" / "analysis.json").write_bytes(content)
    assert read_analysis(str(output)) is None


@pytest.mark.parametrize("missing", ["saved_model.pb", "analysis.json"])
def test_half_a_folder_has_no_note(built, output, missing):
    publish_transform_fn(built(), note_of(marker_of()), str(output))
    (output / "transform_fn" / missing).unlink()
    assert read_analysis(str(output)) is None


def test_there_is_no_note_without_a_folder(output):
    assert read_analysis(str(output)) is None


def test_what_fits_stays_and_what_does_not_goes(built, output, tree):
    publish_transform_fn(built(), note_of(marker_of()), str(output))
    before = tree(output)
    remove_stale_analysis(str(output), marker_of())
    assert tree(output) == before
    remove_stale_analysis(str(output), marker_of(shards=("new",)))
    assert os.listdir(output) == ["train.tfrecord"]
    remove_stale_analysis(str(output), marker_of(shards=("new",)))


def test_a_strangers_folder_is_neither_removed_nor_replaced(built, output, tree):
    (output / "transform_fn").mkdir()
    (output / "transform_fn" / "saved_model.pb").write_text("somebody's")
    before = tree(output)
    remove_stale_analysis(str(output), marker_of())
    with pytest.raises(
        RecordmillError, match=r"out/transform_fn was not written by Recordmill: move it elsewhere"
    ):
        publish_transform_fn(built(), note_of(marker_of()), str(output))
    assert tree(output) == before


def test_a_failure_leaves_no_model(built, output, monkeypatch):
    publish_transform_fn(built("old"), note_of(marker_of()), str(output))
    real = storage.write_file

    def fail(path, content):
        if path.endswith("saved_model.pb"):
            raise OSError("no space left")
        real(path, content)

    monkeypatch.setattr(storage, "write_file", fail)
    with pytest.raises(OSError, match="no space"):
        publish_transform_fn(built("new"), note_of(marker_of()), str(output))
    assert read_analysis(str(output)) is None
    monkeypatch.undo()
    publish_transform_fn(built("newer"), note_of(marker_of()), str(output))
    assert read_analysis(str(output))


class Store:
    """An object store that can be cut: the n-th change and all later ones do not happen."""

    def __init__(self, changes_left=10**6):
        self.objects, self.changes_left = {}, changes_left

    def change(self):
        if not self.changes_left:
            raise InterruptedError
        self.changes_left -= 1

    def install(self, patch):
        patch.setattr(storage, "is_local", lambda path: False)
        patch.setattr(storage, "join", lambda folder, *names: "/".join([folder, *names]))
        patch.setattr(storage, "exists", self.objects.__contains__)
        patch.setattr(storage, "read_range", self.read)
        patch.setattr(storage, "list_below", self.list_below)
        patch.setattr(storage, "remove_files", self.remove_files)
        patch.setattr(storage, "write_file", self.write)

    def read(self, path):
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path]

    def write(self, path, content):
        self.change()
        self.objects[path] = content

    def list_below(self, folder):
        for path in sorted(self.objects):
            if path.startswith(f"{folder}/"):
                yield type("File", (), {"path": path})

    def remove_files(self, paths):
        for path in paths:
            if path in self.objects:
                self.change()
                del self.objects[path]


def test_in_a_store_a_cut_at_any_step_leaves_one_whole_model_or_none(built, tmp_path, monkeypatch):
    store = Store()
    store.install(monkeypatch)
    old, new = built("old"), built("new")
    publish_transform_fn(old, {**note_of(marker_of()), "word": "old"}, "store://out")
    whole, seen, steps = dict(store.objects), [], 0
    assert len(whole) == 3
    while True:
        store.objects.clear()
        store.objects.update(whole)
        store.changes_left = steps
        try:
            publish_transform_fn(new, {**note_of(marker_of()), "word": "new"}, "store://out")
            break
        except InterruptedError:
            note = read_analysis("store://out")
            seen.append(note and note["word"])
            if note:
                assert store.objects == whole
            steps += 1
        store.changes_left = 10**6
        publish_transform_fn(new, {**note_of(marker_of()), "word": "new"}, "store://out")
        assert read_analysis("store://out")["word"] == "new"
    assert seen == ["old", None, None, None, None, None]
    assert {path: content for path, content in store.objects.items() if "json" not in path} == {
        "store://out/transform_fn/saved_model.pb": b"new",
        "store://out/transform_fn/variables/data": b"new's variables",
    }
