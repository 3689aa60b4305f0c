"""What is rejected is listed exactly, and too much of it publishes nothing."""

import hashlib
import json
import os

import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ONE_SPLIT = {"splits.fractions": {"train": 1.0}}


def damage(root, label, count):
    for number in range(count):
        (root / label / f"bad{number:02}.jpg").write_bytes(f"text {number}".encode())


def test_every_rejected_thing_has_its_exact_row(convert, class_folders, picture, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 6})
    whole = picture("whole", size=(64, 64))
    contents = {
        "cat/cut.jpg": (whole[: len(whole) // 2] + b"\xff\xd9", "decode", "truncated"),
        "cat/empty.jpg": (b"", "decode", "empty"),
        "cat/text.png": (b"plain text", "decode", "unknown_format"),
        "cat/huge.jpg": (picture("huge", size=(200, 8)), "decode", "side_too_long"),
        "cat/long.jpg": (picture("long", size=(90, 90)) + bytes(20_000), "read", "too_many_bytes"),
        "cat/tiny.gif": (picture("gif", kind="GIF", mode="P"), "decode", "format_not_allowed"),
        "loose.jpg": (picture("loose"), "list", "no_class"),
    }
    for key, (content, _, _) in contents.items():
        (root / key).write_bytes(content)
    settings = {
        "images.max_side": 100,
        "images.max_bytes": 20_000,
        "images.formats": ["JPEG", "PNG"],
    }
    done = convert(root, settings={**ONE_SPLIT, **settings})
    assert done.code == 0
    rows = {row["key"]: row for row in done.rejected}
    assert len(rows) == len(done.rejected) == len(contents)
    for key, (content, stage, reason) in contents.items():
        row = rows[key]
        assert set(row) == {"uri", "stage", "reason", "detail", "bytes", "sha256", "class", "key"}
        assert (row["stage"], row["reason"], row["bytes"]) == (stage, reason, len(content))
        assert row["uri"] == str(root / key)
        assert row["class"] == ("cat" if "/" in key else None)
        assert row["sha256"] == (hashlib.sha256(content).hexdigest() if stage == "decode" else None)
        assert row["detail"]
        assert "\n" not in row["detail"]
    assert done.marker["ledger"]["rejected"] == {reason: 1 for _, _, reason in contents.values()}
    assert done.marker["ledger"]["written"] == 6
    assert [(row["key"], row["rejected"]) for row in done.rows() if "rejected" in row] == [
        (row["key"], row["reason"]) for row in done.rejected
    ]


def test_nothing_rejected_is_an_empty_list(convert, photos):
    assert (convert(photos).output / "rejected.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    ("share", "count", "code"),
    [(0.2, 3, 3), (0.2, 4, 0), (0.25, 0, 0), (0, 3, 3)],
)
def test_a_run_fails_only_where_share_and_count_are_both_passed(
    convert, class_folders, tmp_path, share, count, code
):
    root = class_folders(tmp_path / "photos", {"cat": 12})
    damage(root, "cat", 4)  # 4 of 16: a share of 0.25
    settings = {**ONE_SPLIT, "max_rejected": {"share": share, "count": count}}
    done = convert(root, settings=settings)
    assert done.code == code
    assert (done.output / "recordmill.json").exists() == (code == 0)
    assert len(done.shards()) == (code == 0)


def test_too_many_rejected_publish_nothing_and_name_what_is_kept(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12})
    damage(root, "cat", 4)
    done = convert(root, settings={**ONE_SPLIT, "max_rejected.count": 3})
    (staging,) = done.staging
    assert (done.code, done.line["status"], done.line["exit_code"]) == (3, "failed", 3)
    assert done.errors[0] == (
        "4 of 16 images (25.00%) were rejected (4 unknown_format), which is over "
        "max_rejected.count (3) and max_rejected.share (1.00%)"
    )
    assert f"{staging}/rejected.jsonl lists all 4 of them" in done.errors
    assert done.line["ledger"] == {
        "listed": 16,
        "written": 12,
        "rejected": {"unknown_format": 4},
        "ignored": {},
        "left_out": {},
    }
    assert os.listdir(done.output) == [staging.name]
    rows = [json.loads(line) for line in (staging / "rejected.jsonl").read_text().splitlines()]
    assert sorted(row["key"] for row in rows) == [f"cat/bad{number:02}.jpg" for number in range(4)]
    assert json.loads((staging / "outcome.json").read_bytes())["exit_code"] == 3


def test_a_higher_limit_goes_on_from_the_failed_run(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12})
    damage(root, "cat", 4)
    assert convert(root, settings={**ONE_SPLIT, "max_rejected.count": 3}).code == 3
    done = convert(root, settings={**ONE_SPLIT, "max_rejected.count": 4})
    assert (done.code, done.errors, done.staging) == (0, [], [])
    assert done.marker["run"]["shards_reused"] == 1
    assert done.marker["ledger"]["written"] == 12


def test_an_earlier_dataset_survives_a_run_with_too_many_rejected(
    convert, class_folders, state_of, tmp_path
):
    root = class_folders(tmp_path / "photos", {"cat": 12})
    good = convert(root, settings=ONE_SPLIT)
    before = state_of(good.output)
    damage(root, "cat", 4)
    done = convert(root, "--overwrite", settings={**ONE_SPLIT, "max_rejected.count": 0})
    assert done.code == 3
    assert {
        name: state for name, state in state_of(good.output).items() if ".staging" not in name
    } == before


def test_a_class_that_loses_all_its_images_fails_the_run(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12, "emu": 0, "owl": 0})
    damage(root, "emu", 1)
    damage(root, "owl", 2)
    done = convert(root, settings=ONE_SPLIT)
    assert done.code == 3
    assert done.errors[0].startswith(
        "all images of 2 classes were rejected (emu, owl), and max_rejected.lost_classes is 0"
    )
    assert done.line["lost_classes"] == ["emu", "owl"]
    assert convert(root, settings={**ONE_SPLIT, "max_rejected.lost_classes": 1}).code == 3
    allowed = convert(root, settings={**ONE_SPLIT, "max_rejected.lost_classes": 2})
    assert allowed.code == 0
    assert allowed.marker["labels"] == {"cat": 0, "emu": 1, "owl": 2}
    assert allowed.marker["splits"]["train"]["classes"] == {"cat": 12}


@pytest.mark.parametrize("limits", [{}, {"share": 1, "count": 1000, "lost_classes": 10}])
def test_nothing_left_fails_whatever_is_allowed(convert, class_folders, tmp_path, limits):
    root = class_folders(tmp_path / "photos", {"cat": 0})
    damage(root, "cat", 3)
    done = convert(
        root,
        settings={**ONE_SPLIT, **{f"max_rejected.{key}": value for key, value in limits.items()}},
    )
    assert done.code == 3
    assert done.errors[0].startswith(
        "nothing is left: all 3 images were rejected (3 unknown_format)"
    )
    assert not (done.output / "recordmill.json").exists()


def test_nothing_left_where_all_was_rejected_while_listing(convert, picture, tmp_path):
    (tmp_path / "photos").mkdir()
    for number in range(3):
        (tmp_path / f"photos/{number}.jpg").write_bytes(picture(number))
    done = convert(tmp_path / "photos", settings={"source.kind": "class_folders"})
    assert done.code == 3
    assert done.errors[0].startswith("nothing is left: all 3 images were rejected (3 no_class)")
    rows = [
        json.loads(line) for line in (done.staging[0] / "rejected.jsonl").read_text().splitlines()
    ]
    assert sorted(row["key"] for row in rows) == ["0.jpg", "1.jpg", "2.jpg"]


def test_hundreds_of_lost_classes_still_make_a_short_line(convert, class_folders, tmp_path):
    root = class_folders(
        tmp_path / "photos",
        {"cat": 1, **{f"a_class_with_a_long_name_{i:03}": 0 for i in range(150)}},
    )
    for folder in root.glob("a_*"):
        damage(root, folder.name, 1)
    done = convert(root, settings=ONE_SPLIT)
    assert done.code == 3
    # The folder of the test is in it several times.
    assert len(done.stdout.replace(str(tmp_path), "")) < 4096


def test_a_shard_with_unreadable_images_is_read_again(
    convert, class_folders, tmp_path, monkeypatch
):
    # The cause may be mended without a trace in size or time: permissions, a network.
    root = class_folders(tmp_path / "photos", {"cat": 12})
    denied = root / "cat/03.jpg"

    from recordmill import storage

    read = storage.read_range

    def deny(uri, *arguments):
        if uri == str(denied):
            raise PermissionError(13, "Permission denied")
        return read(uri, *arguments)

    limits = {**ONE_SPLIT, "max_rejected": {"share": 0, "count": 0}}
    with monkeypatch.context() as patch:
        patch.setattr(storage, "read_range", deny)
        failed = convert(root, settings=limits)
    assert (failed.code, failed.line["ledger"]["rejected"]) == (3, {"unreadable": 1})
    done = convert(root, settings=limits)
    assert (done.code, done.marker["ledger"]["written"], done.marker["run"]["shards_reused"]) == (
        0,
        12,
        0,
    )


@pytest.mark.parametrize("name", ["missing{n}.jpg", "../outside{n}.jpg"])
def test_a_class_of_a_table_whose_images_are_all_missing_fails_the_run(
    convert, class_folders, tmp_path, name
):
    root = class_folders(tmp_path / "in", {"images": 10})
    rows = [f"{n:02}.jpg,{'ab'[n % 2]}" for n in range(10)]
    rows += [f"{name.format(n=n)},c" for n in range(4)]
    (root / "labels.csv").write_text("\n".join(["filename,label", *rows, ""]))
    problem = "all images of 1 class were rejected (c), and max_rejected.lost_classes is 0"
    done = convert(root)
    assert done.code == 3
    assert done.errors[0].startswith(problem)
    planned = convert(root, "--plan")
    assert planned.code == 3
    assert problem in planned.errors[0]
    allowed = convert(root, settings={"max_rejected.lost_classes": 1})
    assert allowed.code == 0
    assert allowed.marker["labels"] == {"a": 0, "b": 1, "c": 2}


def test_a_class_that_a_limit_leaves_out_is_not_lost_with_a_row(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "in", {"images": 10})
    rows = [f"{n:02}.jpg,{n}" for n in range(10)] + [f"missing{n}.jpg,{n}" for n in range(10)]
    (root / "labels.csv").write_text("\n".join(["filename,label", *rows, ""]))
    given = {"limit": 5, "source.columns.label": "label"}
    assert convert(root, settings={**given, **ONE_SPLIT}).code == 0
