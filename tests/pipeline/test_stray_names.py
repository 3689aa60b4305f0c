"""A folder from another person: whatever its markers, links and notes name, no run and no command
touches a file outside it."""

import json
import os
import shutil
from pathlib import Path

import pytest

from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.pipeline.verify import main as verify
from recordmill.pipeline.versions import main as versions

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PLAN = "0123456789abcdef"
OUTSIDE = [
    "../victim.txt",
    "sidecars/../../victim.txt",
    "./../victim.txt",
    "{absolute}",
    "//{absolute}",
    "sidecars//../../victim.txt",
    "..\\victim.txt",
    "C:/victim.txt",
    "../victim.txt\0",
    "\x1b[2J",
    "",
    ".",
    "..",
    "sidecars/./a.jsonl",
    "file://{absolute}",
    "a" * 300,
]
"""Names that lead out of a folder, on this or another system, or that no file has."""


@pytest.fixture(scope="module")
def template(tmp_path_factory, class_folders):
    """A dataset, and its input."""
    place = tmp_path_factory.mktemp("template")
    class_folders(place / "photos", {"cat": 3, "dog": 2})
    flags = [f"--input={place}/photos", f"--output={place}/ds", "--set=report=false"]
    assert launch(flags, build) == 0
    return place


@pytest.fixture
def place(template, tmp_path):
    """A copy of it, next to a file that nobody may touch."""
    shutil.copytree(template, tmp_path / "home", symlinks=True)
    home = tmp_path / "home"
    (home / "victim.txt").write_text("precious")
    (home / "elsewhere").mkdir()
    (home / "elsewhere/kept.txt").write_text("precious")
    return home


def outside(home: Path) -> dict[str, bytes]:
    """All that lies next to the output."""
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and "ds" not in path.relative_to(home).parts[:1]
    }


def inside(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted((home / "ds").rglob("*"))
        if path.is_file()
    }


def tree(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def run(home: Path, *flags: str) -> int:
    words = [f"--input={home}/photos", f"--output={home}/ds", "--set=report=false", *flags]
    return launch(words, build)


def marker_of(home: Path):
    return json.loads((home / "ds/recordmill.json").read_bytes())


def stage(home: Path, change=lambda marker: None, **switch) -> Path:
    """A staging folder with a marker, as if the publishing of a dataset had been cut."""
    staging = home / "ds" / f".staging-{PLAN}"
    staging.mkdir(exist_ok=True)
    marker = marker_of(home)
    marker["plan"]["id"] = PLAN
    marker["switch"] = {"moves": [], "removes": [], **switch}
    change(marker)
    (staging / "train-00000.tfrecord").write_bytes(b"payload")
    (staging / "recordmill.json").write_text(json.dumps(marker))
    return staging


def spell(name: str, home: Path) -> str:
    return name.replace("{absolute}", str(home / "victim.txt"))


@pytest.mark.parametrize(
    ("entry", "name"),
    [(("removes", "target", "source")[at % 3], name) for at, name in enumerate(OUTSIDE)],
)
def test_a_staging_marker_moves_and_removes_nothing_outside(place, capsys, entry, name):
    spelled = spell(name, place)
    switch = {
        "removes": {"removes": [spelled]},
        "target": {"moves": [["train-00000.tfrecord", spelled]]},
        "source": {"moves": [[spelled, "labels.txt"]]},
    }[entry]
    stage(place, **switch)
    before, ours = outside(place), inside(place)
    assert run(place) == 1
    errors = capsys.readouterr().err
    assert f".staging-{PLAN}/recordmill.json is not safe to use: switch." in errors
    assert "Traceback" not in errors
    assert "\x1b" not in errors
    assert (outside(place), inside(place)) == (before, ours)
    assert run(place, "--discard") == 0
    assert outside(place) == before
    assert not list((place / "ds").glob(".staging-*"))
    assert verify([str(place / "ds")]) == 0


@pytest.mark.parametrize(
    ("path", "name"),
    [(("files", "shard", "sidecar", "index")[at % 4], name) for at, name in enumerate(OUTSIDE[:8])],
)
def test_a_published_marker_removes_nothing_outside(place, capsys, path, name):
    marker, spelled = marker_of(place), spell(name, place)
    shard = marker["splits"]["train"]["shards"][0]
    if path == "files":
        marker["files"].append(spelled)
    elif path == "index":
        marker["index"] = spelled
    else:
        shard["name" if path == "shard" else "sidecar"] = spelled
    (place / "ds/recordmill.json").write_text(json.dumps(marker))
    before, ours = outside(place), inside(place)
    for flags in ([], ["--overwrite"], ["--update"], ["--overwrite", "--set=seed=7"]):
        assert run(place, *flags) == 1, flags
        assert "recordmill.json is not safe to use: " in capsys.readouterr().err
        assert (outside(place), inside(place)) == (before, ours)
    for command in (verify, inspect):
        assert command([str(place / "ds")]) == 1
    assert (outside(place), inside(place)) == (before, ours)


@pytest.mark.parametrize("name", ["sub/notes.txt", "recordmill.json"])
def test_only_files_of_our_patterns_are_deleted_inside_too(place, capsys, name):
    (place / "ds/sub").mkdir()
    for own in ("notes.txt", "sub/notes.txt", ".hidden"):
        (place / "ds" / own).write_text("mine")
    stage(place, removes=[name])
    ours = inside(place)
    assert run(place) == 1
    assert "is not a file of a dataset" in capsys.readouterr().err
    assert inside(place) == ours
    shutil.rmtree(place / f"ds/.staging-{PLAN}")
    marker = marker_of(place)
    marker["files"].append(name)
    (place / "ds/recordmill.json").write_text(json.dumps(marker))
    ours = inside(place)
    assert run(place, "--overwrite", "--set=seed=7") == 1
    errors = capsys.readouterr().err
    assert "which is not a file of a dataset: choose another output, or remove this entry" in errors
    assert inside(place) == ours
    marker["files"].remove(name)  # as advised
    (place / "ds/recordmill.json").write_text(json.dumps(marker))
    assert run(place, "--overwrite", "--set=seed=7") == 0
    assert verify([str(place / "ds")]) == 0
    for own in ("notes.txt", "sub/notes.txt", ".hidden"):
        assert (place / "ds" / own).read_text() == "mine"


def test_a_user_s_file_that_a_marker_calls_a_shard_stays(place, capsys):
    (place / "ds/thesis.doc").write_text("mine")
    marker = marker_of(place)
    shard = dict(marker["splits"]["train"]["shards"][0])
    shard |= {"name": "thesis.doc", "sidecar": "sidecars/thesis.doc.jsonl"}
    marker["splits"]["train"]["shards"].append(shard)
    (place / "ds/recordmill.json").write_text(json.dumps(marker))
    assert run(place, "--overwrite", "--set=seed=7") == 1
    assert "it lists 'thesis.doc' as a shard, and the file of that name is none" in (
        capsys.readouterr().err
    )
    assert (place / "ds/thesis.doc").read_text() == "mine"


@pytest.mark.parametrize("pair", [[], ["a"], ["a", "b", "c"], ["train-00000.tfrecord"] * 3])
def test_moves_that_are_not_pairs_are_refused(place, capsys, pair):
    stage(place, moves=[pair])
    before, ours = outside(place), inside(place)
    assert run(place) == 1
    assert "switch.moves has an entry that is not a pair" in capsys.readouterr().err
    assert (outside(place), inside(place)) == (before, ours)


@pytest.mark.parametrize("value", [None, 3, "x", [], {"moves": 3, "removes": []}])
def test_a_switch_of_another_kind_is_refused(place, capsys, value):
    stage(place, lambda marker: marker.update(switch=value))
    before, ours = outside(place), inside(place)
    assert run(place) == 1
    assert "cannot be completed" in capsys.readouterr().err
    assert (outside(place), inside(place)) == (before, ours)


def test_a_staging_marker_of_another_plan_is_refused(place, capsys):
    stage(place, lambda marker: marker["plan"].update(id="f" * 16))
    before, ours = outside(place), inside(place)
    assert run(place) == 1
    assert "plan.id is 'ffffffffffffffff', not the folder's" in capsys.readouterr().err
    assert (outside(place), inside(place)) == (before, ours)


LINKED = ["sidecars", "transform_fn", f".staging-{PLAN}"]


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize(
    "flags", [[], ["--overwrite"], ["--update"], ["--overwrite", "--set=seed=7"]]
)
def test_nothing_is_written_or_deleted_through_a_link(place, capsys, name, flags):
    theirs = place / "elsewhere"
    if name == "sidecars":
        for path in (place / "ds/sidecars").iterdir():
            path.rename(theirs / path.name)
        (place / "ds/sidecars").rmdir()
    for own in ("analysis.json", "saved_model.pb", "claim-x.json", "outcome.json"):
        (theirs / own).write_text('{"split": "train", "size": [1, 1], "contents": ""}')
    (place / "ds" / name).symlink_to(theirs)
    before, ours = outside(place), inside(place)
    assert run(place, *flags) == 1
    assert f"/ds/{name} is a link: " in capsys.readouterr().err
    assert (outside(place), inside(place)) == (before, ours)


def test_discard_removes_a_link_in_place_of_staging_alone(place):
    (place / f"ds/.staging-{PLAN}").symlink_to(place / "elsewhere")
    shutil.copy(place / "ds/recordmill.json", place / "elsewhere/recordmill.json")
    before = outside(place)
    assert run(place, "--discard") == 0
    assert not os.path.lexists(place / f"ds/.staging-{PLAN}")
    assert outside(place) == before


def test_discard_empties_staging_of_links_without_following_them(place):
    staging = stage(place, removes=["../victim.txt"])
    (staging / "folder").symlink_to(place / "elsewhere")
    (staging / "claim-a.json").symlink_to(place / "victim.txt")
    before = outside(place)
    assert run(place, "--discard") == 0
    assert not staging.exists()
    assert outside(place) == before


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_temporary_files_of_known_names_are_not_written_through(place, kind):
    target = place / "ds/.report.html.tmp"
    if kind == "link":
        target.symlink_to(place / "victim.txt")
    else:
        os.mkfifo(target)
    before = outside(place)
    assert inspect([str(place / "ds"), "--report"]) == 0
    assert (place / "ds/report.html").is_file()
    assert not (place / "ds/report.html").is_symlink()
    assert outside(place) == before


@pytest.mark.parametrize(
    ("split", "index"), [("../../elsewhere/x", 0), ("../x", 0), ("all", 7), ("train", -1)]
)
def test_a_note_on_a_finished_shard_names_no_other_files(place, capsys, split, index):
    # A run that was killed leaves finished shards; their notes say which.
    shutil.rmtree(place / "ds")
    assert run(place, "--set=max_rejected.classes=0") in (0, 2)
    before = outside(place)
    notes = {"format": 2, "fingerprint": ["0", "0"], "report": {"split": split, "index": index}}
    staging = place / f"ds/.staging-{PLAN}"
    staging.mkdir(parents=True)
    (staging / "train-00000.done.json").write_text(json.dumps(notes))
    run(place)
    assert outside(place) == before


@pytest.fixture
def nights(place, picture):
    """An output with two versions, the older one moved elsewhere and replaced by a link."""
    output = place / "nightly"
    words = [f"--input={place}/photos", f"--output={output}", "--versions", "--set=report=false"]
    assert launch(words, build) == 0
    (place / "photos/cat/new.jpg").write_bytes(picture("new"))
    assert launch([*words, "--update"], build) == 0
    current = json.loads((output / "recordmill.json").read_bytes())["current"]
    (old,) = [path.name for path in output.iterdir() if path.is_dir() and path.name != current]
    (output / old).rename(place / "elsewhere/moved")
    (output / old).symlink_to(place / "elsewhere/moved")
    return words, output, old


def elsewhere(home):
    return {
        str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted((home / "elsewhere").rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("flags", [["--drop"], ["--keep=1"]])
def test_of_a_version_that_is_a_link_only_the_link_is_deleted(place, nights, flags):
    _, output, old = nights
    before = elsewhere(place)
    assert versions([str(output), *flags, *([old] if flags == ["--drop"] else [])]) == 0
    assert not os.path.lexists(output / old)
    assert elsewhere(place) == before


@pytest.mark.parametrize("flags", [["--use"], ["--rollback"], []])
def test_a_version_that_is_a_link_can_become_the_current_one(place, nights, flags):
    _, output, old = nights
    before = elsewhere(place)
    assert versions([str(output), *flags, *([old] if flags == ["--use"] else [])]) == 0
    assert elsewhere(place) == before
    assert verify([str(output)]) == 0


def test_a_run_keeps_off_versions_that_are_links(place, nights, capsys):
    words, _output, _old = nights
    (place / "elsewhere/moved/.staging-fedcba9876543210").mkdir()
    (place / "elsewhere/moved/.staging-fedcba9876543210/part").write_text("theirs")
    before = elsewhere(place)
    assert launch([*words, "--update"], build) == 0  # the newer one is kept
    assert launch([*words, "--discard"], build) == 0
    assert elsewhere(place) == before
    (place / "photos/cat/new.jpg").unlink()
    launch(words, build)  # the older one again
    assert "Traceback" not in capsys.readouterr().err
    assert elsewhere(place) == before


@pytest.mark.parametrize("name", ["../../victim.txt", "notes.txt"])
def test_staging_in_another_version_that_names_other_files_stops_a_run(place, capsys, name):
    output = place / "nightly"
    words = [f"--input={place}/photos", f"--output={output}", "--versions", "--set=report=false"]
    assert launch(words, build) == 0
    (version,) = [path for path in output.iterdir() if path.is_dir()]
    (version / "notes.txt").write_text("mine")
    staging = version / f".staging-{PLAN}"
    staging.mkdir()
    marker = json.loads((version / "recordmill.json").read_bytes())
    marker["plan"]["id"] = PLAN
    marker["switch"] = {"moves": [], "removes": [name]}
    (staging / "recordmill.json").write_text(json.dumps(marker))
    before = tree(place)
    assert launch([*words, "--set=seed=7"], build) == 1
    errors = capsys.readouterr().err
    assert "is not safe to use: switch.removes[0] is " in errors
    assert "delete it with --discard" in errors
    assert tree(place) == before
    assert launch([*words, "--set=seed=7", "--discard"], build) == 0
    assert not list(output.rglob(".staging-*"))
    assert (version / "notes.txt").read_text() == "mine"
    assert (place / "victim.txt").read_text() == "precious"


@pytest.mark.parametrize(
    "pointer",
    [
        {"recordmill": 2, "current": "../elsewhere"},
        {"recordmill": 2, "current": PLAN, "previous": "../elsewhere"},
    ],
)
def test_a_pointer_leads_nowhere_outside(place, nights, pointer):
    words, output, _ = nights
    (output / "recordmill.json").write_text(json.dumps(pointer))
    before = elsewhere(place)
    for flags in (["--rollback"], ["--keep=1"], ["--drop=../elsewhere"], ["--use=../elsewhere"]):
        assert versions([str(output), *flags]) in (1, 2)
    launch([*words, "--overwrite"], build)
    assert elsewhere(place) == before
    assert (place / "victim.txt").read_text() == "precious"


@pytest.mark.parametrize("name", ["../../victim", "/tmp/x", "..", "a/../../b", "a\\b", "\x1b[2J"])
def test_a_folder_of_tfds_names_no_file_outside(tmp_path, capsys, name):
    (tmp_path / "tfds").mkdir()
    info = {
        "name": "x",
        "splits": [{"name": "train", "shardLengths": ["1"], "filepathTemplate": name}],
    }
    (tmp_path / "tfds/dataset_info.json").write_text(json.dumps(info))
    for flags in ([], [f"--index={tmp_path}/indexes"], [f"--extract={tmp_path}/images"]):
        assert inspect([str(tmp_path / "tfds"), *flags]) == 1
        assert "cannot be understood" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path)) == ["tfds"]
