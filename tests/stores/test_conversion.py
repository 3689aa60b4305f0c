"""From and to a store: the same bytes as here, one request an image, resumed, replaced and refused
as on a disk."""

import json
import re
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import parse_qs, unquote, urlsplit

import orjson
import pytest

import recordmill
from recordmill import open_dataset, storage
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.pipeline.versions import main as versions
from recordmill.schemas.dataset.record_index import SECTION_BYTES, parse_origins, parse_table
from recordmill.schemas.features import Example
from recordmill.storage.stores.find_store import find_store
from recordmill.storage.stores.store import BLOCK_BYTES

pytestmark = pytest.mark.slow

LEDGER = {
    "listed": 62,
    "written": 60,
    "rejected": {"unknown_format": 2},
    "ignored": {},
    "left_out": {},
}
REENCODED = ["--set=images.reencode=always", "--set=images.resize.longest=100"]


def images_read(requests):
    """How often each image was asked for, whatever the question."""
    found = [
        unquote(path).partition("?")[0].rpartition("photos/")[2]
        for _, path in requests
        if "photos" in path
    ]
    names = [name for name in found if name.endswith(".jpg")]
    return {name: names.count(name) for name in names}


def times_asked_for(name, requests):
    """How often a file of the dataset was asked for, whatever the question."""
    return sum(unquote(path).partition("?")[0].endswith(f"/dataset/{name}") for _, path in requests)


def times_listed(folder, requests):
    """How often the names in a folder were asked for."""
    queries = [parse_qs(urlsplit(path).query) for _, path in requests]
    return sum(
        query.get("prefix", [""])[0].endswith(f"/{folder}") and "delimiter" in query
        for query in queries
    )


@pytest.mark.parametrize(
    "flags",
    [[], REENCODED, ["--set=images.check=header", "--set=compression=gzip"], ["--processes=3"]],
    ids=str,
)
def test_a_dataset_is_the_same_as_on_a_disk_and_each_image_is_one_request(folder, pictures, flags):
    before = len(folder.served.requests())
    done = folder.convert(*flags, "--overwrite")
    assert done.returncode == 0, done.stderr
    line = json.loads(done.stdout)
    assert (line["status"], line["ledger"]) == ("published", LEDGER)
    requests = folder.served.requests()[before:]
    assert images_read(requests) == {
        str(file.relative_to(pictures)): 1 for file in pictures.rglob("*.*")
    }

    assert (
        launch([f"--input={pictures}", "--output=here", "--set=shards.count=6", *flags], build) == 0
    )
    expected = {
        str(file.relative_to(folder.cwd / "here")): file
        for file in (folder.cwd / "here").rglob("*.*")
    }
    files = folder.files()
    assert set(files) == set(expected)  # no staging, no temporary file, no outcome file
    for name, content in files.items():
        # These contain places and times.
        if name not in (
            "recordmill.json",
            "records.versions",
            "rejected.jsonl",
            "report.html",
        ):
            assert content == expected[name].read_bytes(), name
    shards = [name for name in files if name.endswith((".tfrecord", ".gz"))]
    sections = parse_table(files["records.versions"][: len(shards) * SECTION_BYTES])
    lines = files["records.versions"][sections[0].offset :].splitlines()
    assert [origin.source for origin in parse_origins(lines)].count(
        0
    ) == 0  # both stores have versions


def test_an_update_asks_for_changed_objects_only(folder, pictures):
    assert folder.convert().returncode == 0
    copied = folder.cwd / "photos"
    shutil.copytree(pictures, copied)
    (copied / "cat" / "01.jpg").unlink()
    storage.remove_files([f"{folder.url}photos/cat/01.jpg"])
    for name, other in (("cat/03.jpg", "cat/05.jpg"), ("dog/new.jpg", "dog/02.jpg")):
        shutil.copyfile(pictures / other, copied / name)
        storage.write_file(f"{folder.url}photos/{name}", (pictures / other).read_bytes())
    before = len(folder.served.requests())
    updated = folder.convert("--update")
    assert updated.returncode == 0, updated.stderr
    requests = folder.served.requests()[before:]
    assert images_read(requests) == {"cat/03.jpg": 1, "dog/new.jpg": 1}
    assert launch([f"--input={copied}", "--output=here", "--set=shards.count=6"], build) == 0
    files = folder.files()
    for file in (folder.cwd / "here").rglob("*.*"):
        name = str(file.relative_to(folder.cwd / "here"))
        # These contain places and times.
        if name not in (
            "recordmill.json",
            "records.versions",
            "rejected.jsonl",
            "report.html",
        ):
            assert files[name] == file.read_bytes(), name


@pytest.fixture
def calls(folder, monkeypatch):
    """Copies as (source, target), what is uploaded, and ranges that are read, by paths below the
    folder."""
    store, found = type(find_store(folder.url)), SimpleNamespace(copies=[], uploads=[], reads=[])

    def note(name, into):
        method = getattr(store, name)

        def noted(self, *arguments):
            into.append(
                tuple(
                    each.removeprefix(folder.url) if isinstance(each, str) else each
                    for each in arguments
                )
            )
            return method(self, *arguments)

        monkeypatch.setattr(store, name, noted)

    for name in ("write", "open_to_write"):
        note(name, found.uploads)
    for name, into in (("copy", found.copies), ("read", found.reads)):
        note(name, into)
    return found


@pytest.mark.parametrize(
    ("flags", "is_damaged"), [([], False), (["--versions"], True)], ids=["in place", "versions"]
)
def test_untouched_shards_are_copied_by_the_store(folder, pictures, calls, flags, is_damaged):
    for name in ("dataset", "rebuilt"):  # of the test's other cases
        storage.remove_folder(f"{folder.url}{name}")
    settings = ["--set=shards={count: 4, cuts: fixed}", "--set=report=false"]
    first = json.loads(folder.convert(*settings, *flags).stdout)
    old = "/".join(["dataset", *filter(None, [first.get("version")])])
    before = folder.files(old)
    splits = orjson.loads(before["recordmill.json"])["splits"].values()
    sidecars = {
        shard["name"]: before[shard["sidecar"]] for split in splits for shard in split["shards"]
    }
    untouched = [name for name, rows in sidecars.items() if b'"cat/03.jpg"' not in rows]
    assert len(untouched) == len(sidecars) - 1 >= 3
    written = {*sidecars} - {*untouched}
    storage.write_file(f"{folder.url}photos/cat/03.jpg", (pictures / "cat/05.jpg").read_bytes())
    if is_damaged:
        content = before[untouched[0]]
        storage.write_file(f"{folder.url}{old}/{untouched[0]}", content[:60] + b"x" + content[61:])
        written.add(untouched[0])
    for each in vars(calls).values():
        each.clear()
    line = json.loads(folder.convert(*settings, *flags, "--update").stdout)
    assert line["status"] == "published", line
    copies, uploads, reads = ([*each] for each in (calls.copies, calls.uploads, calls.reads))

    def shard_of(path):
        """The shard whose file this is until it is finished."""
        found = re.fullmatch(
            r"dataset/(?:.+/)?\.staging-[^/]+/\.(\w+-\d+)\.tfrecord\.[0-9a-f]{12}\.tmp", path
        )
        return found and next(name for name in sidecars if name.startswith(found[1]))

    # The others are moves.
    kept = [(source, target) for source, target in copies if ".staging-" not in source]
    assert sorted(source for source, _ in kept) == sorted(f"{old}/{name}" for name in untouched)
    assert all(source == f"{old}/{shard_of(target)}" for source, target in kept)
    assert {shard_of(path) for path, *_ in uploads} - {None} == written
    expected = Counter(
        {(path, 0, BLOCK_BYTES): 1 + (shard_of(path) in written) for _, path in kept}
    )
    # What is written is read, too.
    assert Counter(each for each in reads if shard_of(each[0]) in untouched) == expected
    assert {
        name for name in untouched if any(each[0] == f"{old}/{name}" for each in reads)
    } <= written

    files = folder.files("/".join(["dataset", *filter(None, [line.get("version")])]))
    folder.places[1] = f"--output={folder.url}rebuilt"
    assert folder.convert(*settings).returncode == 0
    rebuilt = folder.files("rebuilt")
    assert {*files} == {*rebuilt}
    assert [name for name in files if files[name] != rebuilt[name]] == ["recordmill.json"]
    here, there = (orjson.loads(each["recordmill.json"]) for each in (files, rebuilt))
    assert here["run"]["images_reused"] == 59 - is_damaged
    assert {**here, "run": None} == {**there, "run": None}
    assert not [name for name in folder.files() if ".staging-" in name or ".tmp" in name]


DIES_AFTER_A_COPY = """
import os, runpy, signal, sys
from recordmill.storage.stores import find_store

make = find_store._make_store

def make_store(*arguments):
    store = make(*arguments)
    copy = type(store).copy

    def copy_and_die(source, target):
        copy(store, source, target)
        if ".staging-" not in source:
            os.kill(os.getpid(), signal.SIGKILL)

    store.copy = copy_and_die
    return store

find_store._make_store = make_store
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def test_an_update_that_is_killed_after_a_copy_is_resumed(folder, pictures):
    settings = ["--set=shards={count: 4, cuts: fixed}", "--set=report=false"]
    assert folder.convert(*settings).returncode == 0
    before = folder.files()
    storage.write_file(f"{folder.url}photos/cat/03.jpg", (pictures / "cat/05.jpg").read_bytes())
    (folder.cwd / "dies.py").write_text(DIES_AFTER_A_COPY)
    process = folder.start(
        *settings, "--update", "--processes=1", script=str(folder.cwd / "dies.py")
    )
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    there = folder.files()
    left = {name: content for name, content in there.items() if name not in before}
    assert {name: there.get(name) for name in before} == before
    (copied,) = (name for name in left if ".tfrecord." in name and left[name] in before.values())
    assert copied.endswith(".tmp")
    assert folder.convert(*settings, "--update").returncode == 0
    files = folder.files()
    folder.places[1] = f"--output={folder.url}rebuilt"
    assert folder.convert(*settings).returncode == 0
    rebuilt = folder.files("rebuilt")
    assert {*files} == {*rebuilt}
    assert [name for name in files if files[name] != rebuilt[name]] == ["recordmill.json"]


def test_a_second_run_keeps_another_is_refused_and_overwriting_replaces(folder):
    assert folder.convert().returncode == 0
    files = folder.files()
    before = len(folder.served.requests())
    kept = folder.convert()
    assert (kept.returncode, json.loads(kept.stdout)["status"]) == (0, "kept")
    requests = folder.served.requests()[before:]
    assert images_read(requests) == {}
    asked = {times_asked_for(name, requests) for name in files if name != "recordmill.json"}
    assert asked == {1, 2}  # for the size, and for the contents of small files
    assert times_listed("dataset/", requests) == 2  # in case the names change meanwhile
    refused = folder.convert("--set=seed=1")
    assert (refused.returncode, json.loads(refused.stdout)["status"]) == (1, "refused")
    assert "seed: 0 -> 1" in refused.stderr
    assert folder.files() == files
    replaced = folder.convert("--set=seed=1", "--overwrite", "--set=shards.count=3")
    assert replaced.returncode == 0, replaced.stderr
    there = folder.files()
    marker = orjson.loads(there["recordmill.json"])
    shards = {shard["name"] for split in marker["splits"].values() for shard in split["shards"]}
    assert shards == {name for name in there if name.endswith(".tfrecord")}
    assert not [name for name in there if ".staging" in name]


def test_a_run_that_is_killed_is_resumed(folder):
    process = folder.start(*REENCODED, "--threads=1")
    staging = f"{folder.url}dataset/.staging-"
    deadline = time.monotonic() + 120
    while not (
        done := [
            file.path
            for file in storage.list_below(staging.rpartition("/")[0])
            if "done.json" in file.path
        ]
    ):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
    process.kill()
    process.communicate()
    assert len(done) >= 1
    before = len(folder.served.requests())
    resumed = folder.convert(*REENCODED)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["ledger"] == LEDGER
    assert "had been finished by an earlier run" in resumed.stderr
    assert len(images_read(folder.served.requests()[before:])) < 62
    assert not [name for name in folder.files() if ".staging" in name or ".tmp" in name]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_local_table_may_name_images_on_a_store(folder, pictures, tmp_path, processes):
    """The command imports Beam without its own clients of stores then."""
    paths = sorted(pictures.rglob("[0-9]*.jpg"))
    rows = [
        f"{folder.url}photos/{path.relative_to(pictures)},{path.parent.name}\n" for path in paths
    ]
    (tmp_path / "table.csv").write_text("".join(["image,label\n", *rows]))
    local = replace(
        folder, places=[f"--input={tmp_path / 'table.csv'}", f"--output={tmp_path / 'dataset'}"]
    )
    source = (
        f"--set=source={{kind: manifest, columns: {{uri: image, label: label}}, root: "
        f"'{folder.url}'}}"
    )
    child = local.start(source, f"--processes={processes}")
    out, err = child.communicate()
    assert child.returncode == 0, err
    assert json.loads(out)["ledger"] == {**LEDGER, "listed": 60, "rejected": {}}
    records = recordmill.open(str(tmp_path / "dataset"), form="raw")
    examples = [
        Example.FromString(record) for split in ("train", "test") for record in records[split]
    ]
    found = Counter(
        example.features.feature["image/encoded"].bytes_list.value[0] for example in examples
    )
    assert found == Counter(path.read_bytes() for path in paths)


def test_a_switch_that_was_cut_is_finished(folder):
    """A copy whose source was not yet deleted, an old marker gone, half of the files moved: what a
    kill leaves."""
    assert folder.convert().returncode == 0
    files = folder.files()
    marker = orjson.loads(files["recordmill.json"])
    staging = f"{folder.url}dataset/.staging-{marker['plan']['id']}/"
    moves = []
    moved = sorted({*files} - {"recordmill.json", "report.html"})
    for number, name in enumerate(moved):
        source = f"moved-{number:05}.tfrecord"
        moves.append([source, name])
        if number % 3:
            storage.write_file(staging + source, files[name])
        if number % 3 == 1:
            storage.remove_files([f"{folder.url}dataset/{name}"])
    storage.remove_files([f"{folder.url}dataset/recordmill.json"])
    pending = {**marker, "switch": {"moves": moves, "removes": []}}
    storage.write_file(f"{staging}recordmill.json", orjson.dumps(pending))
    finished = folder.convert()
    assert finished.returncode == 0, finished.stderr
    assert (
        json.loads(finished.stdout)["message"]
        == "an earlier run was interrupted while publishing: its dataset is now in place"
    )
    assert folder.files() == files


@pytest.mark.parametrize(
    ("source", "target", "why"),
    [
        (
            "no-such-bucket/photos",
            "recordmill/out",
            "the input cannot be read (no such file or directory)",
        ),
        ("recordmill/misspelled", "recordmill/out", "the input cannot be read (nothing is there)"),
        ("{url}photos", "no-such-bucket/out", "cannot be written: no such file or directory"),
    ],
)
def test_a_place_that_is_not_there_is_one_sentence(folder, source, target, why):
    scheme, _, url = folder.url.partition("://")
    folder.places = [
        f"--input={scheme}://{source.format(url=url)}",
        f"--output={scheme}://{target}",
    ]
    failed = folder.convert()
    assert failed.returncode == 1, failed.stdout
    assert why in failed.stderr
    assert "Traceback" not in failed.stderr


def test_versions_and_the_pointer(folder):
    flags = ["--versions", "--update", "--set=shards={count: 4, cuts: fixed}", "--set=report=false"]
    first = json.loads(folder.convert(*flags).stdout)
    assert first["status"] == "published", first["message"]
    old = open_dataset(f"{folder.url}dataset")
    assert old.folder == f"{folder.url}dataset/{first['version']}"
    second = json.loads(folder.convert(*flags, "--set=limit=40").stdout)
    new = open_dataset(f"{folder.url}dataset/")
    assert new.folder == f"{folder.url}dataset/{second['version']}"
    # Of 40, one is not an image.
    assert new.marker.ledger.written == new.marker.run.images_reused == 39
    assert not [name for name in folder.files() if ".staging-" in name or ".tmp" in name]
    assert (
        versions([f"{folder.url}dataset", "--rollback"])
        == versions([f"{folder.url}dataset", "--keep=1"])
        == 0
    )
    assert {name.partition("/")[0] for name in folder.files()} == {
        "recordmill.json",
        first["version"],
    }
