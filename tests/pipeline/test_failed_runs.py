"""What a run says after exit code 3 or 4: numbers, limits, files, and flags that work."""

import json
import re
import shlex
import subprocess

import pytest
from printed_commands import printed_flags

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ONE_SPLIT = {"splits.fractions": {"train": 1.0}}
STRICT = {**ONE_SPLIT, "max_rejected": {"share": 0, "count": 0}}
PAGE = "docs/fix_rejected.md has a remedy for each reason"


def damage(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"text")


@pytest.fixture
def follow(convert, tmp_path, monkeypatch):
    """Converts, and then with each offer of the message; gives the first run and those after it."""
    monkeypatch.chdir(tmp_path)

    def run(source, *flags, settings):
        failed = convert(source, *flags, settings=settings)
        (advice,) = [line for line in failed.errors if "accept" in line]
        for command in re.findall("`([^`]+)`", advice):
            subprocess.run(["sh", "-ec", command], check=True)
        given = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        offers = [*printed_flags(advice)]
        done = [
            convert(source, *flags, *given, *offer, output=tmp_path / f"way-{at}")
            for at, offer in enumerate(offers)
        ]
        return failed, done

    return run


def fates(done):
    ledger = done.line["ledger"]
    kept = {"rejected", "ignored", "left_out"}
    return done.code, ledger["written"], {key: ledger[key] for key in kept if ledger[key]}


def test_the_message_has_numbers_limits_files_the_list_and_flags(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12})
    damage(root, "cat/b.jpg", "cat/a.jpg", "cat/c.jpg")
    (root / "cat/empty.jpg").write_bytes(b"")
    done = convert(root, settings={**ONE_SPLIT, "max_rejected.count": 3})
    (staging,) = done.staging
    text = "(unknown format: the file begins with 74 65 78 74 ('text'))"
    assert done.answer == (
        3,
        "4 of 16 images (25.00%) were rejected (3 unknown_format, 1 empty), which is over "
        "max_rejected.count (3) and max_rejected.share (1.00%)",
        f"unknown_format: cat/a.jpg {text}",
        "empty: cat/empty.jpg (no bytes)",
        f"unknown_format: cat/b.jpg {text}",
        f"unknown_format: cat/c.jpg {text}",
        f"{staging}/rejected.jsonl lists all 4 of them",
        "correct what was rejected, or leave it out with --set "
        "'ignore=[/cat/a.jpg, /cat/b.jpg, /cat/c.jpg, /cat/empty.jpg]', or accept the loss with "
        "--set max_rejected.count=4",
        PAGE,
        f"{staging}/report.html shows what was converted",
    )


ODD_NAMES = ["cat/it's [1]*.jpg", "cat/#a, b.jpg", "cat/ ! .jpg", 'cat/"q\\.jpg', "cat/Zoë.jpg"]


def test_files_of_any_name_are_left_out_or_accepted(follow, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 3})
    damage(root, *ODD_NAMES)
    failed, (without, accepted) = follow(root, settings=STRICT)
    assert failed.code == 3
    assert fates(without) == (0, 3, {"ignored": {"ignored": 5}})
    assert fates(accepted) == (0, 3, {"rejected": {"unknown_format": 5}})


def test_patterns_that_are_ignored_already_stay(follow, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 3})
    damage(root, "cat/a.jpg", "cat/notes.txt")
    settings = {**STRICT, "ignore": ["*.txt"]}
    failed, (without, _) = follow(root, settings=settings)
    assert '\'ignore=["*.txt","/cat/a.jpg"]\'' in failed.errors[-3]
    assert fates(without) == (0, 3, {"ignored": {"ignored": 2}})


def test_many_files_are_left_out_by_their_list(follow, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 30})
    damage(root, *(f"cat/bad{number}.jpg" for number in range(21)))
    failed, (without, accepted) = follow(root, settings=STRICT)
    assert len(failed.errors) == 10
    assert f"`cp {failed.staging[0]}/rejected.jsonl rejected.jsonl`" in failed.errors[-3]
    assert fates(without) == (0, 30, {"left_out": {"excluded": 21}})
    assert fates(accepted) == (0, 30, {"rejected": {"unknown_format": 21}})


def test_what_is_excluded_already_stays_excluded(follow, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 30})
    damage(root, *(f"cat/bad{number}.jpg" for number in range(21)))
    (tmp_path / "removed ones.txt").write_text("key:cat/00.jpg")
    _, (without, _) = follow(root, settings={**STRICT, "exclude": "removed ones.txt"})
    assert fates(without) == (0, 29, {"left_out": {"excluded": 22}})


def test_files_of_inputs_with_names_are_left_out_by_their_list(follow, class_folders, tmp_path):
    for name in ("a", "b"):
        class_folders(tmp_path / name, {"cat": 3})
    damage(tmp_path, "a/cat/x.jpg")
    _, (without, accepted) = follow(
        f"one={tmp_path / 'a'}", f"--input=two={tmp_path / 'b'}", settings=STRICT
    )
    assert fates(without) == (0, 6, {"left_out": {"excluded": 1}})
    assert fates(accepted) == (0, 6, {"rejected": {"unknown_format": 1}})


def test_rows_of_a_table_are_left_out_by_their_list(follow, class_folders, tmp_path):
    root = class_folders(tmp_path / "in", {"images": 4})
    rows = [f"images/{number:02}.jpg,{'ab'[number % 2]}" for number in range(4)]
    lines = ["filename,label", *rows, "images/gone.jpg,a", ""]
    (root / "labels.csv").write_text("\n".join(lines))
    failed, (without, accepted) = follow(root, settings=STRICT)
    assert "vanished: " in failed.errors[1]
    assert failed.errors[-3].startswith("correct what was rejected, or leave it out with")
    assert (without.code, without.line["ledger"]["left_out"]) == (0, {"excluded": 1})
    assert (accepted.code, accepted.line["ledger"]["rejected"]) == (0, {"vanished": 1})


def test_a_lost_class_and_too_many_images_are_accepted_together(follow, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 3, "emu": 0})
    damage(root, "emu/a.jpg", "cat/b.jpg")
    failed, (without, accepted) = follow(root, settings=STRICT)
    assert failed.errors[:2] == [
        "2 of 5 images (40.00%) were rejected (2 unknown_format), which is over "
        "max_rejected.count (0) and max_rejected.share (0.00%)",
        "all images of 1 class were rejected (emu), and max_rejected.lost_classes is 0",
    ]
    assert "--set max_rejected.count=2 --set max_rejected.lost_classes=1" in failed.errors[-3]
    assert fates(without) == (0, 3, {"ignored": {"ignored": 2}})
    assert fates(accepted) == (0, 3, {"rejected": {"unknown_format": 2}})


def test_a_lost_class_of_a_table_is_accepted_with_its_rows_left_out(
    follow, class_folders, tmp_path
):
    root = class_folders(tmp_path / "in", {"images": 4})
    rows = [f"images/{number:02}.jpg,a" for number in range(4)]
    lines = ["filename,label", *rows, "images/gone.jpg,b", ""]
    (root / "labels.csv").write_text("\n".join(lines))
    _, (without, accepted) = follow(root, settings={**ONE_SPLIT})
    assert (without.code, without.line["ledger"]["left_out"]) == (0, {"excluded": 1})
    assert (accepted.code, accepted.line["ledger"]["rejected"]) == (0, {"vanished": 1})


def test_nothing_left_names_files_and_no_flag(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 0})
    damage(root, "cat/a.jpg")
    done = convert(root, settings=STRICT)
    (staging,) = done.staging
    assert done.answer == (
        3,
        "nothing is left: the only image was rejected (1 unknown_format)",
        "unknown_format: cat/a.jpg (unknown format: the file begins with 74 65 78 74 ('text'))",
        f"{staging}/rejected.jsonl lists it",
        PAGE,
        f"{staging}/report.html shows what was converted",
    )


def test_a_plan_names_an_example_and_the_flag_that_accepts(
    convert, class_folders, picture, tmp_path
):
    root = class_folders(tmp_path / "photos", {"cat": 6})
    (root / "loose.jpg").write_bytes(picture("loose"))
    done = convert(root, "--plan", settings={**STRICT, "source.kind": "class_folders"})
    assert (done.code, done.line["status"]) == (3, "planned")
    assert done.errors[0].startswith(
        "this run would fail: 1 of 7 images (14.29%) was rejected (1 no_class)"
    )
    assert done.errors[1].startswith("no_class: loose.jpg (")
    assert done.errors[-2].endswith("or accept the loss with --set max_rejected.count=1")
    again = convert(
        root,
        "--plan",
        "--set=max_rejected.count=1",
        settings={**STRICT, "source.kind": "class_folders"},
    )
    assert again.code == 0


BEFORE = {"cat": 6, "dog": 4}
CONTRACTS = {
    "classes": ({"expect.classes": ["cat", "emu"]}, "expect.classes=[cat, dog]"),
    "classes as before": ({"expect.classes": "as_before"}, "expect.classes=[cat, dog, owl]"),
    "fewest and most images": (
        {"expect.images": {"*": {"at_least": 40, "at_most": 50}, "train/dog": {"at_most": 1}}},
        'expect.images={"*":{"at_least":10,"at_most":50},"train/dog":{"at_most":4}}',
    ),
    "a change": (
        {"expect.images": {"train": {"change": 5, "at_least": 1}}},
        "expect.images={train: {at_least: 1, change: 30}}",
    ),
    "rejected images": ({"expect.rejected": 0.01}, "expect.rejected=0.2859"),
    "classes that drift": ({"expect.class_drift": 0.01}, "expect.class_drift=0.2309"),
    "duplicates": (
        {
            "expect.duplicates_across_splits": 0,
            "splits.fractions": {"train": 0.5, "test": 0.5},
        },
        "expect.duplicates_across_splits=",
    ),
}


@pytest.mark.parametrize("name", CONTRACTS)
def test_flags_accept_each_breach_of_the_contract(
    name, convert, class_folders, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    expected, offered = CONTRACTS[name]
    settings = {**ONE_SPLIT, "max_rejected.count": 100, **expected}
    root = class_folders(tmp_path / "photos", BEFORE)
    if name in ("classes as before", "a change", "classes that drift"):
        assert convert(root, settings=settings).code == 0
        class_folders(root, {"owl": 3})
    if name == "rejected images":
        damage(root, *(f"cat/bad{number}.jpg" for number in range(4)))
    if name == "duplicates":
        for number in range(20):
            (root / f"cat/copy{number}.jpg").write_bytes((root / "cat/00.jpg").read_bytes())
    failed = convert(root, "--overwrite", settings=settings)
    assert failed.code == 4
    (advice,) = [line for line in failed.errors if line.startswith("nothing was published")]
    (flags,) = printed_flags(advice)
    assert flags[1].startswith(offered)
    if name == "rejected images":
        (staging,) = failed.staging
        assert f"{staging}/rejected.jsonl lists all 4 of them" in failed.errors
        assert failed.errors[1].startswith("unknown_format: cat/bad0.jpg (")
    accepted = convert(root, "--overwrite", *flags_after(settings), *flags)
    assert (accepted.code, accepted.line["status"]) == (0, "published")


def flags_after(settings):
    return [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]


def test_a_dataset_in_place_names_its_own_list(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 6})
    damage(root, "cat/a.jpg")
    assert convert(root, settings=ONE_SPLIT).code == 0
    again = convert(root, settings=STRICT)
    assert again.code == 3
    assert f"{again.output}/rejected.jsonl lists it" in again.errors
    assert "--set 'ignore=[/cat/a.jpg]'" in again.errors[-2]
    assert shlex.split(again.errors[-2])[-1] == "max_rejected.count=1"
