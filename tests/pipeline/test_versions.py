"""`--versions`: complete datasets in folders of their own, and a pointer that is replaced in one
step."""

import errno
import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from cut_switch import cut_switch

from recordmill import open_dataset, storage
from recordmill.pipeline import versions as manage_versions
from recordmill.pipeline.analyze import main as analyze
from recordmill.pipeline.diff import main as diff
from recordmill.pipeline.inspect import main as inspect
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.pipeline.verify import main as verify
from recordmill.pipeline.versions import main as versions
from recordmill.reading.dataset import describe_by_marker, match_files
from recordmill.reading.report import write_report
from recordmill.storage.dataset_files import point_to
from recordmill.transforms import publish_dataset
from recordmill.transforms.planning.runs import claim_output

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {"shards.count": 2, "splits.fractions": {"train": 0.6, "test": 0.4}, "report": False}
SUPPORT = Path(__file__).parents[1] / "support"


def pointer(output):
    return json.loads((output / "recordmill.json").read_bytes())


def backdate(version, days):
    """A night is a second here, which is as fine as the markers' times are."""
    path = version / "recordmill.json"
    marker = json.loads(path.read_bytes())
    marker["run"]["finished"] = f"2026-01-{10 - days:02}T02:15:00+00:00"
    path.write_text(json.dumps(marker))


@pytest.fixture
def tonight(convert, photos):
    """Converts the photos of one more night."""

    def run(*flags, settings=None):
        return convert(photos, "--versions", *flags, settings=SETTINGS | (settings or {}))

    return run


@pytest.fixture(scope="module")
def two_nights(tmp_path_factory, class_folders, picture):
    """An output with the versions of two nights, and their names."""
    place = tmp_path_factory.mktemp("nights")
    photos = class_folders(place / "photos", {"cat": 6, "dog": 4})
    words = [f"--input={photos}", f"--output={place / 'dataset'}", "--versions"]
    words += [f"--set={key}={json.dumps(value)}" for key, value in SETTINGS.items()]
    assert launch(words, build) == 0
    first = pointer(place / "dataset")["current"]
    backdate(place / "dataset" / first, 2)
    (photos / "cat/new.jpg").write_bytes(picture("new"))
    assert launch([*words, "--update"], build) == 0
    return place / "dataset", first, pointer(place / "dataset")["current"]


@pytest.fixture
def two(two_nights, photos, picture, tmp_path):
    """A copy of them, made of the photos and one more."""
    (photos / "cat/new.jpg").write_bytes(picture("new"))
    output, first, second = two_nights
    return shutil.copytree(output, tmp_path / "dataset"), first, second


def test_a_version_is_the_dataset_that_a_run_without_versions_makes(
    tonight, convert, photos, tree, tmp_path
):
    (photos / "cat/copy.jpg").write_bytes((photos / "cat/00.jpg").read_bytes())
    (photos / "cat/broken.jpg").write_bytes(b"no picture")
    done = tonight()
    plain = convert(photos, settings=SETTINGS, output=tmp_path / "plain")
    name = plain.marker["plan"]["id"]
    assert (done.code, done.line["status"], done.line["version"]) == (0, "published", name)
    assert f"{done.output}/{name}/recordmill.json" in done.stderr
    assert sorted(os.listdir(done.output)) == sorted([name, "recordmill.json"])
    assert pointer(done.output) == {"recordmill": 2, "current": name}
    version, alone = tree(done.output / name), tree(plain.output)
    for each in (version, alone):
        assert each.pop("records.versions")  # it depends on when the files were written
        each["recordmill.json"] = {**json.loads(each["recordmill.json"]), "run": {}}
    assert version == alone


def test_a_users_file_in_the_folder_of_a_version_is_not_overwritten(tonight, tmp_path):
    named = {"shards.name": "my-{split}-{index}-{count}.bin"}
    version = tonight("--plan", settings=named).line["plan_id"]
    mine = tmp_path / "dataset" / version / "my-test-0-2.bin"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    refused = tonight(settings=named)
    sentence = (
        f"{mine.parent} holds {mine.name}, which is not part of a Recordmill dataset: move it "
        "away, "
        "or choose another output"
    )
    assert (refused.code, refused.errors) == (1, [sentence])
    assert (os.listdir(refused.output), os.listdir(mine.parent), mine.read_text()) == (
        [version],
        [mine.name],
        "mine",
    )


def test_readers_open_the_current_version(two, capsys):
    output, old, new = two
    assert pointer(output) == {"recordmill": 2, "current": new, "previous": old}
    opened = open_dataset(f"{output}/")
    assert (opened.folder, sum(opened.counts.values())) == (str(output / new), 11)
    assert opened.marker.run.images_reused == 10
    capsys.readouterr()
    for command in (verify, inspect):
        assert command([str(output)]) == 0
        assert json.loads(capsys.readouterr().out)["path"] == str(output / new)
    assert len(match_files(f"{output}/{new}/*.tfrecord*")) == 4
    assert sum(open_dataset(str(output / old)).counts.values()) == 10


def test_the_same_images_again_are_the_version_that_is_there(two, tonight, photos, tree):
    output, old, new = two
    before = tree(output)
    assert (tonight("--update").line["status"], tree(output)) == ("kept", before)
    (photos / "cat/new.jpg").unlink()
    again = tonight("--update")
    assert (again.line["status"], again.line["version"]) == ("kept", old)
    assert f"{old} is the current version again" in again.line["notes"]
    assert pointer(output) == {"recordmill": 2, "current": old, "previous": new}


def test_a_file_with_another_modification_time_makes_no_version(
    two, tonight, photos, state_of, capsys
):
    output, _old, new = two
    os.utime(photos / "cat/new.jpg", (1, 1))
    before = state_of(output)
    again = tonight("--update")
    assert (again.line["status"], again.line["version"]) == ("kept", new)
    same = "already holds this dataset: converting it again made the same, so no version was added"
    assert again.line["message"] == f"{output}/{new} {same}"
    assert state_of(output) == before


def test_the_work_of_a_second_run_stays_if_the_first_one_finds_the_same_files(
    two, tonight, photos, monkeypatch
):
    output, _old, new = two
    os.utime(photos / "cat/new.jpg", (1, 1))
    find_same = publish_dataset._Publication._keep_same_version

    def begin_another(publication, marker):
        decision = publication.plan.decision
        claim_output(decision.output, decision.staged_as, "other")
        return find_same(publication, marker)

    monkeypatch.setattr(publish_dataset._Publication, "_keep_same_version", begin_another)
    again = tonight("--update")
    assert (again.line["status"], again.line["version"]) == ("kept", new)
    assert [path.name for path in output.glob("*/.staging-*/claim-*")] == ["claim-other.json"]
    assert len(list(output.glob(f"{new}-2/.staging-{new}/*.done.json"))) == 4


@pytest.fixture
def unreadable(monkeypatch):
    """The names of files that cannot be read."""
    names: set[str] = set()
    real = storage.read_range

    def read(path, *arguments):
        if os.path.basename(path) in names:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, *arguments)

    monkeypatch.setattr(storage, "read_range", read)
    return names


def test_a_file_that_stays_unreadable_makes_one_version(
    two, tonight, photos, unreadable, tree, picture
):
    output, old, new = two
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    unreadable.add("new.jpg")
    first = tonight("--update")
    third = first.line["version"]
    assert (first.line["status"], first.line["ledger"]["rejected"]) == (
        "published",
        {"unreadable": 2},
    )
    before = tree(output)
    for _ in range(2):
        again = tonight("--update")
        assert (again.line["status"], again.line["version"]) == ("kept", third)
        assert again.line["message"].endswith(
            "converting it again made the same, so no version was added"
        )
        assert tree(output) == before
    assert tonight("--update", "--set", "name=other").line["version"] not in (old, new, third)
    back = tonight("--update")
    assert (back.line["status"], back.line["version"], pointer(output)["current"]) == (
        "kept",
        third,
        third,
    )
    unreadable.clear()
    healed = tonight("--update")
    assert (healed.line["status"], healed.line["version"]) == ("published", f"{third}-2")
    assert sum(open_dataset(str(output)).counts.values()) == 12


def test_a_version_that_lacks_a_file_is_made_again(two, tonight):
    output, _, new = two
    next((output / new).glob("train*.tfrecord")).unlink()
    again = tonight("--update")
    assert (again.line["status"], again.line["version"]) == ("published", f"{new}-2")
    assert (verify([str(output)]), tonight("--update").line["status"]) == (0, "kept")


# A cut at each moment of the publication: the first two while files are moved, then before and
# after the marker of the version, and before the pointer.
MOMENTS = [
    ("move_file", 1),
    ("move_file", 2),
    ("write_file", 1),
    ("remove_files", 2),
    ("write_file", 2),
]


@pytest.mark.parametrize(("name", "count"), MOMENTS[1:4])
def test_a_cut_leaves_the_old_version_and_the_next_night_the_new_one(
    two, tonight, photos, picture, name, count
):
    output, _, current = two
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    with cut_switch(name, count):
        cut = tonight("--update")
    assert (cut.code, pointer(output)["current"]) == (1, current)
    assert verify([str(output)]) == 0
    (photos / "dog/newer.jpg").write_bytes(picture("fourth"))
    night = tonight("--update")  # another plan, without --discard
    assert (night.code, night.line["status"], pointer(output)["current"]) == (
        0,
        "published",
        night.line["version"],
    )
    assert verify([str(output)]) == 0
    assert list(output.glob("*/.staging-*")) == []
    (third,) = {path.name for path in output.iterdir()} - {
        "recordmill.json",
        *two[1:],
        night.line["version"],
    }
    assert sum(open_dataset(str(output / third)).counts.values()) == 12


@pytest.mark.parametrize(("name", "count"), MOMENTS[::4])
def test_after_a_cut_the_same_command_publishes(two, tonight, photos, picture, name, count):
    output = two[0]
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    with cut_switch(name, count):
        tonight("--update")
    again = tonight("--update")
    assert (again.code, pointer(output)["current"]) == (0, again.line["version"])
    assert verify([str(output)]) == 0
    assert list(output.glob("*/.staging-*")) == []


KILL = """
import sys
sys.path.insert(0, sys.argv[1])
from cut_switch import cut_switch, kill_self
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

with cut_switch(sys.argv[2], int(sys.argv[3]), kill_self):
    launch(sys.argv[4:], build)
"""


@pytest.mark.parametrize(
    ("name", "count"),
    [
        pytest.param(*each, marks=() if each == MOMENTS[-1] else pytest.mark.slow)
        for each in MOMENTS
    ],
)
def test_kill_9_is_all_old_or_all_new(two, tonight, photos, picture, spawn, name, count):
    output, _, current = two
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    flags = [f"--set={key}={json.dumps(value)}" for key, value in SETTINGS.items()]
    places = [f"--input={photos}", f"--output={output}", "--versions", "--update"]
    process = spawn(SUPPORT, name, count, *places, *flags, script=KILL)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert (verify([str(output)]), pointer(output)["current"]) == (0, current)
    (photos / "dog/newer.jpg").write_bytes(picture("fourth"))
    night = tonight("--update")
    assert (night.code, pointer(output)["current"]) == (0, night.line["version"])
    assert list(output.glob("*/.staging-*")) == []


def test_the_night_after_a_breach_runs_and_deletes_the_work_of_the_breach(
    two, tonight, photos, picture
):
    output, _, current = two
    expect = {"expect.images": {"*": {"change": 20}}}
    for number in range(12):
        (photos / f"cat/more{number}.jpg").write_bytes(picture(("more", number)))
    breach = tonight("--update", settings=expect)
    assert (breach.code, pointer(output)["current"]) == (4, current)
    assert "the previous dataset has" in breach.line["message"]
    for number in range(12):
        (photos / f"cat/more{number}.jpg").unlink()
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    night = tonight("--update", settings=expect)
    assert (night.code, pointer(output)["current"]) == (0, night.line["version"])
    assert {path.name for path in output.iterdir()} == {
        "recordmill.json",
        *two[1:],
        night.line["version"],
    }
    assert any("no run will resume from it" in note for note in night.line["notes"])


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        (
            {"expect.images": {"*": {"change": 5}}},
            4,
            "the previous dataset has 4, and expect.images.*.change is 5%",
        ),
        ({"expect.images": {"train": {"at_least": 9}}}, 4, "and expect.images.train.at_least is 9"),
        (
            {"max_rejected": {"count": 0, "share": 0}},
            3,
            "1 of 11 images (9.09%) was rejected (1 unknown_format), which is over",
        ),
    ],
)
def test_an_earlier_version_becomes_current_again_only_within_the_limits(
    tonight, photos, picture, tree, settings, code, said
):
    (photos / "cat/broken.jpg").write_bytes(b"no picture")
    (photos / "cat/new.jpg").write_bytes(picture("new"))
    for path in photos.rglob("*.jpg"):  # files that have just been written are read again
        os.utime(path, (1, 1))
    (photos / "cat/new.jpg").rename(photos.parent / "new")
    tonight()
    (photos.parent / "new").rename(photos / "cat/new.jpg")
    current = tonight("--update").line["version"]
    (photos / "cat/new.jpg").unlink()
    output = (refused := tonight("--update", settings=settings)).output
    before = tree(output)
    for flags in (["--update"], ["--update", "--plan"], []):
        refused = tonight(*flags, settings=settings)
        assert (refused.code, refused.line["status"]) == (code, "failed")
        assert said in refused.line["message"]
    assert (tree(output), pointer(output)["current"]) == (before, current)
    assert tonight("--update").line["status"] == "kept"


@pytest.mark.parametrize("flags", [["--rollback"], ["--use"]])
def test_a_version_without_a_file_does_not_become_current(two, capsys, flags):
    output, old, new = two
    (output / old / "train-00000-of-00002.tfrecord").unlink()
    capsys.readouterr()
    assert versions([str(output), *flags, *([old] if flags == ["--use"] else [])]) == 1
    fault = f"{output}/{old} lacks train-00000-of-00002.tfrecord, against its recordmill.json"
    assert capsys.readouterr().err == f"error: {fault}: choose another version with --use\n"
    assert pointer(output)["current"] == new


def test_a_damaged_version_does_not_become_current_again(two, tonight, photos, picture):
    output, old, _ = two
    (output / old / "labels.txt").write_text("0:ca")
    (photos / "cat/new.jpg").unlink()
    again = tonight("--update")
    assert (again.line["status"], again.line["version"]) == ("published", f"{old}-2")
    assert verify([str(output)]) == 0


def test_after_a_breach_a_higher_limit_publishes_the_finished_shards(two, tonight, photos, picture):
    for number in range(12):
        (photos / f"cat/more{number}.jpg").write_bytes(picture(("more", number)))
    assert tonight("--update", settings={"expect.images": {"*": {"change": 20}}}).code == 4
    done = tonight("--update", settings={"expect.images": {"*": {"change": 200}}})
    assert (done.code, done.line["version"]) == (0, pointer(two[0])["current"])
    assert open_dataset(str(two[0])).marker.run.shards_reused == 4


def test_an_output_with_a_dataset_in_place_is_refused(tonight, convert, photos):
    done = convert(photos, settings=SETTINGS)
    assert tonight().answer == (
        1,
        f"{done.output} holds a dataset that is not in a version: choose another output, or remove "
        "--versions",
    )


def test_an_input_with_versions_is_refused(two, convert, tmp_path):
    output, _, new = two
    sentence = (
        f"the input {output} has versions, which would all be read: name one, such as "
        f"{output}/{new}"
    )
    assert convert(output, output=tmp_path / "again").answer == (2, sentence)
    assert convert(output / new, output=tmp_path / "again").code == 0


@pytest.mark.parametrize("flags", [["--update"], ["--versions"]])
def test_an_output_that_is_a_version_is_refused(two, convert, photos, state_of, flags):
    output, old, _ = two
    before = state_of(output)
    sentence = f"the output {output}/{old} is a version: choose {output} and --versions"
    assert convert(photos, *flags, output=output / old, settings=SETTINGS).answer == (2, sentence)
    assert state_of(output) == before


@pytest.mark.parametrize("flag", ["--no_plan", "--plan", "--overwrite", "--update", "--discard"])
def test_an_output_with_versions_is_refused_without_the_flag(two, convert, photos, state_of, flag):
    before = state_of(two[0])
    refused = convert(photos, flag, settings=SETTINGS).answer
    assert refused == (1, f"{two[0]} has versions: add --versions, or choose another output")
    assert state_of(two[0]) == before


def test_a_preview_writes_nothing_and_names_the_version(two, tonight, photos, state_of):
    output, _old, _ = two
    before = state_of(output)
    (photos / "cat/new.jpg").unlink()
    assert tonight("--plan").line["status"] == "kept"
    planned = tonight("--plan", settings={"shards.count": 1})
    assert planned.line["message"].startswith(
        f"nothing was written; without --plan the dataset would be in {output}/"
    )
    assert state_of(output) == before


def test_discard_deletes_unfinished_work_in_versions(two, tonight, photos, picture):
    output = two[0]
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    with cut_switch("write_file", 1):
        tonight("--update")
    (staging,) = output.glob("*/.staging-*")
    assert tonight("--discard", "--plan").code == 0
    assert staging.exists()
    done = tonight("--discard", "--update")
    assert (done.code, done.line["version"]) == (0, staging.parent.name)
    assert f"{staging.name} held a complete dataset" in done.stderr


def test_images_that_must_be_absent_are_searched_in_all_versions(
    two, tonight, photos, tmp_path, capsys
):
    output, old, new = two
    (tmp_path / "removed.txt").write_text("key:cat/new.jpg\n")
    cleared = tonight("--update", settings={"exclude": str(tmp_path / "removed.txt")})
    capsys.readouterr()
    absent = ["--absent", str(tmp_path / "removed.txt"), "--json", str(output)]
    assert (cleared.code, verify(absent)) == (0, 1)
    found = {
        finding["shard"].partition("/")[0]
        for finding in json.loads(capsys.readouterr().out)["findings"]
    }
    assert found == {new}
    assert versions([str(output), "--drop", new]) == 0
    assert verify(absent) == 0
    assert old in os.listdir(output)


DAMAGED_POINTERS = [
    '{"recordmill": 2, "curr',
    '{"recordmill": 2, "current": "../x"}',
    '{"recordmill": 2, "current": "0000000000000000"}',
]


@pytest.mark.parametrize("content", DAMAGED_POINTERS)
def test_a_damaged_pointer_is_one_sentence_with_the_remedy(
    two, tonight, convert, photos, tmp_path, capsys, content
):
    output, old, new = two
    (output / "recordmill.json").write_text(content)
    sentence = (
        f"{output}/recordmill.json does not name a complete version: "
        f"choose the latest version with recordmill versions {output} --use {new}"
    )
    with pytest.raises(ValueError, match="recordmill") as raised:
        open_dataset(str(output))
    assert str(raised.value) == sentence
    for command, *argv in ((verify,), (inspect,), (analyze,), (diff, str(output / old))):
        capsys.readouterr()
        assert command([str(output), *argv]) == (2 if command is diff else 1)
        assert capsys.readouterr().err == f"error: {sentence}\n"
    assert diff([str(output / old), str(output)]) == 2
    assert (tonight().answer, tonight("--update").answer) == ((1, sentence), (1, sentence))
    other, settings = tmp_path / "other", SETTINGS | {"expect.classes": "as_before"}
    for flag in ("--reuse", "--against"):
        assert convert(photos, flag, str(output), output=other, settings=settings).answer == (
            1,
            sentence,
        )
    assert (output / "recordmill.json").read_text() == content
    capsys.readouterr()
    assert versions([str(output)]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"note: {sentence}"
    names = sorted(os.listdir(output))
    if "0" * 16 not in content:  # any of the versions may be the current one
        for flags in (["--rollback"], ["--keep", "1"], ["--drop", old]):
            assert versions([str(output), *flags]) == 1
            assert capsys.readouterr().err == f"error: {sentence}\n"
    assert sorted(os.listdir(output)) == names
    assert versions([str(output), "--use", new]) == 0
    assert (verify([str(output)]), tonight("--update").line["status"]) == (0, "kept")


@pytest.fixture
def damaged(two):
    """The same as `two`, with a damaged marker in the current version."""
    output, _, new = two
    (output / new / "recordmill.json").write_text("{")
    return two


def test_an_update_of_a_damaged_version_is_refused_with_advice(damaged, tonight, photos, state_of):
    output, old, new = damaged
    before = state_of(output)
    why = (
        f"{output}/{new} holds no finished dataset: {output}/{new}/recordmill.json cannot be "
        "understood: it is not "
    )
    refused = tonight("--update")
    assert (refused.code, refused.errors[0].startswith(f"--update: {why}")) == (2, True)
    assert refused.errors[0].endswith(": name one, or remove the flag")
    assert state_of(output) == before
    assert versions([str(output), "--rollback"]) == 0
    assert versions([str(output), "--drop", new]) == 0
    again = tonight("--update")
    assert (again.code, again.line["status"], again.line["version"]) == (0, "published", new)
    assert pointer(output) == {"recordmill": 2, "current": new, "previous": old}


def test_a_run_without_update_makes_a_version_next_to_a_damaged_one(
    damaged, tonight, photos, picture
):
    output, _, new = damaged
    (photos / "cat/newer.jpg").write_bytes(picture("newer"))
    done = tonight()
    assert (done.code, done.line["status"]) == (0, "published")
    assert pointer(output) == {"recordmill": 2, "current": done.line["version"], "previous": new}
    assert tonight("--update").line["status"] == "kept"


def test_a_pointer_without_any_complete_version(two, tonight):
    output, old, new = two
    for name in (old, new):
        (output / name / "recordmill.json").unlink()
    why = "does not name a complete version"
    remedy = "no version is complete, so delete that file and convert again"
    assert tonight().answer == (1, f"{output}/recordmill.json {why}: {remedy}")
    (output / "recordmill.json").unlink()
    with pytest.raises(
        ValueError, match="holds versions, but none is current: no version is complete, so convert"
    ):
        open_dataset(str(output))


def test_versions_without_a_pointer(two, capsys):
    output, old, new = two
    (output / "recordmill.json").unlink()
    remedy = f"choose the latest version with recordmill versions {output} --use {new}"
    for command in ([str(output)], [str(output / old), str(output)]):
        capsys.readouterr()
        assert diff(command) == 2 if len(command) == 2 else verify(command) == 1
        assert (
            capsys.readouterr().err
            == f"error: {output} holds versions, but none is current: {remedy}\n"
        )


@pytest.fixture
def manage(two, capsys):
    """Runs `recordmill versions` and gives the exit code, the line of JSON and what people read."""

    def run(*flags):
        capsys.readouterr()
        code = versions([str(two[0]), *flags])
        shown = capsys.readouterr()
        return code, json.loads(shown.out), shown.err

    return run


def test_versions_are_listed(two, manage):
    output, old, new = two
    (output / ("0" * 16)).mkdir()
    code, line, table = manage()
    assert (code, line["path"], line["current"]) == (0, str(output), new)
    assert [(each["version"], each["current"], each["complete"]) for each in line["versions"]] == [
        (old, False, True),
        (new, True, True),
        ("0" * 16, False, False),
    ]
    shards = (output / new).glob("*.tfrecord*")
    assert line["versions"][1]["records"] == 11
    assert line["versions"][1]["bytes"] == sum(path.stat().st_size for path in shards)
    assert [row.split()[0] for row in table.splitlines()] == ["version", old, new, "0" * 16]
    assert [row.rstrip().endswith("current") for row in table.splitlines()] == [
        False,
        False,
        True,
        False,
    ]


def test_a_rollback_and_the_way_forward(two, manage):
    output, old, new = two
    code, line, _ = manage("--rollback")
    assert (code, line["current"], pointer(output)) == (
        0,
        old,
        {"recordmill": 2, "current": old, "previous": new},
    )
    assert manage("--use", new)[1]["current"] == pointer(output)["current"] == new


def test_versions_are_dropped_but_not_the_current_one(two, manage):
    output, old, new = two
    code, line, _ = manage("--drop", new)
    assert (code, line["message"]) == (
        2,
        f"{new} is the current version: choose another one first, with --use",
    )
    assert [each["version"] for each in manage("--drop", old)[1]["versions"]] == [new]
    assert sorted(os.listdir(output)) == sorted([new, "recordmill.json"])
    code, line, _ = manage("--drop", old)
    assert (code, line["message"].partition(":")[0]) == (2, f"{output} has no version {old}")
    code, line, _ = manage("--rollback")
    assert (code, line["message"].partition(":")[0]) == (
        2,
        f"{output} has no complete version {old}",
    )


def test_the_latest_versions_are_kept(two, tonight, photos, picture, manage):
    backdate(two[0] / two[2], 1)
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    third = tonight("--update").line["version"]
    assert [each["version"] for each in manage("--keep", "3")[1]["versions"]] == [*two[1:], third]
    manage("--use", two[1])
    assert {each["version"] for each in manage("--keep", "2")[1]["versions"]} == {two[1], third}


@pytest.mark.parametrize("harm", ["missing", "points to nothing"])
def test_no_version_is_deleted_where_none_is_current(two, manage, harm):
    output, old, new = two
    path = output / "recordmill.json"
    if harm == "missing":
        path.unlink()
    else:
        path.write_text(json.dumps({"recordmill": 2, "current": "0" * 16}))
    code, line, _ = manage("--keep", "1")
    sentence = (
        f"--keep: none of the complete versions of {output} is current: choose one with --use first"
    )
    assert (code, line["message"]) == (2, sentence)
    assert {path.name for path in output.iterdir()} - {"recordmill.json"} == {old, new}
    assert manage("--use", new)[1]["current"] == pointer(output)["current"] == new


def test_no_version_is_deleted_before_its_run_has_ended(
    two, tonight, photos, picture, manage, monkeypatch
):
    output, old, new = two
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    found = []

    def open_while_others_delete(folder, marker):
        (third,) = set(os.listdir(output)) - {old, new, "recordmill.json"}
        assert (folder, pointer(output)["current"]) == (str(output / third), new)
        found.extend([manage("--keep", "1"), manage("--drop", third)])
        return describe_by_marker(folder, marker)

    monkeypatch.setattr(write_report, "describe_by_marker", open_while_others_delete)
    done = tonight("--update", settings={"report": True})
    assert done.code == 0, done.stdout
    busy = f"{output}/{done.line['version']} is in use by another run "
    assert [(code, line["message"].startswith(busy)) for code, line, _ in found] == [(1, True)] * 2
    assert sorted(os.listdir(output)) == sorted([old, new, done.line["version"], "recordmill.json"])
    assert list(output.glob("*/.staging-*")) == []
    assert [each["version"] for each in manage("--keep", "1")[1]["versions"]] == [
        done.line["version"]
    ]


def test_no_version_is_deleted_if_a_run_elsewhere_may_use_it(two, manage):
    output, old, _ = two
    (output / old / ".staging-x").mkdir()
    claim = {"host": "elsewhere", "process": 1, "since": "2026-01-01T00:00:00+00:00"}
    (output / old / ".staging-x" / "claim-y.json").write_text(json.dumps(claim))
    code, line, _ = manage("--keep", "1")
    assert (
        code,
        line["message"].startswith(f"{output}/{old} is in use by another run (.staging-"),
    ) == (1, True)
    assert manage("--drop", old)[0] == 0


def test_nothing_is_deleted_if_the_current_version_changes_meanwhile(two, manage, monkeypatch):
    output, old, new = two
    check = manage_versions._check_unused

    def change(*arguments, **named):
        check(*arguments, **named)
        point_to(str(output), old)

    monkeypatch.setattr(manage_versions, "_check_unused", change)
    code, line, _ = manage("--keep", "1")
    sentence = f"a run has changed the current version of {output}: run this command again"
    assert (code, line["message"]) == (1, sentence)
    assert pointer(output)["current"] == old
    assert sorted(os.listdir(output)) == sorted([old, new, "recordmill.json"])


def test_a_version_that_becomes_the_current_one_while_others_are_deleted_stays(
    two, tonight, photos, picture, manage, monkeypatch
):
    output, old, new = two
    backdate(output / new, 1)
    (photos / "dog/new.jpg").write_bytes(picture("third"))
    third = tonight("--update").line["version"]
    remove = storage.remove_folder

    def remove_slowly(folder):
        remove(folder)
        point_to(str(output), new)

    monkeypatch.setattr(storage, "remove_folder", remove_slowly)
    code, line, _ = manage("--keep", "1")
    sentence = f"a run has changed the current version of {output}: run this command again"
    assert (code, line["message"]) == (1, sentence)
    assert sorted(os.listdir(output)) == sorted([new, third, "recordmill.json"])
    assert sum(open_dataset(str(output)).counts.values()) == 11
    assert not (output / old).exists()


def test_nothing_is_dropped_if_one_of_the_versions_must_stay(two, manage):
    output, old, new = two
    assert manage("--drop", old, "--drop", new)[0] == 2
    assert sorted(os.listdir(output)) == sorted([old, new, "recordmill.json"])
    assert manage("--drop", old, "--drop", old)[0] == 0


def test_a_folder_without_versions(convert, photos, capsys):
    done = convert(photos, settings=SETTINGS)
    assert versions([str(done.output)]) == 1
    assert (
        capsys.readouterr().err
        == f"error: {done.output} has no versions: only runs with --versions make some\n"
    )
