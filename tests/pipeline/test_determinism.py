"""The same input gives the same bytes, wherever and however it is converted."""

import os
import shutil
import sys
from itertools import pairwise

import pytest

from recordmill.transforms.list_images import walk_folder

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SETTINGS = {"shards.count": 3, "splits.fractions": {"train": 0.7, "test": 0.3}}


@pytest.fixture
def collection(class_folders, picture, tmp_path):
    """Passed through, converted, rejected and empty things."""
    root = class_folders(tmp_path / "photos", {"cat": 14, "dog": 12, "émeu": 6})
    (root / "cat/alpha.png").write_bytes(picture("alpha", kind="PNG", mode="RGBA"))
    (root / "cat/print.jpg").write_bytes(picture("print", mode="CMYK"))
    (root / "dog/text.jpg").write_bytes(b"no picture")
    (root / "loose.jpg").write_bytes(picture("loose"))
    (root / "void").mkdir()
    return root


@pytest.fixture
def reference(convert, collection, tmp_path):
    done = convert(collection, "--threads=1", settings=SETTINGS, output=tmp_path / "reference")
    assert done.code == 0
    assert len(done.shards()) == 6
    assert done.marker["ledger"]["rejected"] == {"no_class": 1, "unknown_format": 1}
    return done


def assert_same(one, other):
    assert other.code == 0
    assert one.deterministic_files == other.deterministic_files
    assert one.lasting_marker == other.lasting_marker
    assert one.lasting_report == other.lasting_report


@pytest.mark.runner
def test_parts_of_an_input_listed_by_workers_give_the_same_dataset(
    convert, collection, reference, monkeypatch, tmp_path
):
    monkeypatch.setattr("recordmill.pipeline.configuration.options.IN_PROCESS_RUNNERS", ())
    assert_same(
        reference, convert(collection, "--threads=1", settings=SETTINGS, output=tmp_path / "spread")
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"limit": 24, "splits.stratify": True},
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (
                {},
                {"limit": 20},
                {"splits.stratify": True},
                {"duplicates": "drop"},
                {"duplicates": "together"},
                {"splits.group": "/(?P<group>[0-9])", "limit": 20},
            )
        ),
    ],
    ids=str,
)
def test_the_direct_runner_and_none(convert, choose_runner, collection, tmp_path, settings):
    shutil.copy(collection / "cat/00.jpg", collection / "dog/copy.jpg")
    settings = {**SETTINGS, **settings}
    choose_runner(True)
    one = convert(collection, settings=settings, output=tmp_path / "one")
    choose_runner(False)
    assert_same(one, convert(collection, settings=settings, output=tmp_path / "other"))


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.slow
def test_look_alikes_on_the_direct_runner_and_on_none(
    convert, choose_runner, look_alikes, tmp_path, processes
):
    settings = {**SETTINGS, "images.near_duplicates": "together"}
    several = (
        ("--direct_num_workers=2", "--direct_running_mode=multi_processing")
        if processes > 1
        else ()
    )
    choose_runner(True)
    one = convert(look_alikes, *several, settings=settings, output=tmp_path / "one")
    choose_runner(False)
    assert_same(one, convert(look_alikes, settings=settings, output=tmp_path / "other"))


def test_threads(convert, collection, reference, tmp_path):
    assert_same(
        reference, convert(collection, "--threads=4", settings=SETTINGS, output=tmp_path / "other")
    )


@pytest.mark.skipif(sys.platform != "linux", reason="processes are used on Linux only")
@pytest.mark.parametrize(
    ("flags", "settings"),
    [
        pytest.param(("--processes=2",), {}, marks=pytest.mark.slow),
        pytest.param(("--processes=4",), {"images.reencode": "always"}, marks=pytest.mark.slow),
        pytest.param(
            ("--processes=3", "--threads=2"),
            {"images.check": "header", "compression": "gzip"},
            marks=pytest.mark.slow,
        ),
        (("--processes=3",), {"shards.count": 1, "splits.fractions": {"train": 1}}),
    ],
    ids=str,
)
def test_processes(convert, convert_in_child, collection, tmp_path, flags, settings):
    settings = {**SETTINGS, **settings}
    one = convert(collection, "--threads=1", settings=settings, output=tmp_path / "one")
    # In a process of its own, as users have it, not in one that has run many other tests.
    assert_same(
        one, convert_in_child(collection, *flags, settings=settings, output=tmp_path / "other")
    )
    assert one.marker["ledger"]["rejected"] == {"no_class": 1, "unknown_format": 1}


@pytest.mark.slow
def test_worker_processes(convert_in_child, collection, reference, tmp_path):
    # Workers elsewhere know only what the pipeline and the installed package tell them.
    several = ("--direct_running_mode=multi_processing", "--direct_num_workers=2")
    other = convert_in_child(collection, *several, settings=SETTINGS, output=tmp_path / "other")
    assert_same(reference, other)


def test_another_root_folder(convert, collection, reference, tmp_path):
    shutil.copytree(collection, tmp_path / "elsewhere/copy of photos")
    other = convert(
        tmp_path / "elsewhere/copy of photos",
        settings=SETTINGS,
        output=tmp_path / "elsewhere/other",
    )
    assert_same(reference, other)


def test_another_order_of_creation(convert, collection, reference, tmp_path):
    copy = tmp_path / "copy"
    for path in sorted(collection.rglob("*"), reverse=True):
        if path.is_dir():
            (copy / path.relative_to(collection)).mkdir(parents=True, exist_ok=True)
        else:
            (copy / path.relative_to(collection)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / path.relative_to(collection))
    assert_same(reference, convert(copy, settings=SETTINGS, output=tmp_path / "other"))


def test_another_order_of_listing(convert, collection, reference, tmp_path, monkeypatch):
    walk, calls = walk_folder, []

    def backwards(*arguments):
        calls.append(arguments)
        return reversed(list(walk(*arguments)))

    monkeypatch.setattr("recordmill.transforms.list_images.walk_folder", backwards)
    assert_same(reference, convert(collection, settings=SETTINGS, output=tmp_path / "other"))
    assert len(calls) == 1


def test_another_time_of_the_files(convert, collection, reference, tmp_path):
    for path in collection.rglob("*.jpg"):
        os.utime(path, (1, 1))
    assert_same(reference, convert(collection, settings=SETTINGS, output=tmp_path / "other"))


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"PYTHONHASHSEED": "0", "LC_ALL": "C"}, marks=pytest.mark.slow),
        pytest.param({"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8"}, marks=pytest.mark.slow),
        {"PYTHONHASHSEED": "random", "LC_ALL": "C", "TZ": "Asia/Tokyo"},
    ],
    ids=lambda environment: "-".join(environment.values()).replace("/", "_"),
)
def test_hash_seed_locale_and_time_zone(
    convert_in_child, collection, reference, tmp_path, environment
):
    assert_same(
        reference,
        convert_in_child(collection, settings=SETTINGS, output=tmp_path / "other", env=environment),
    )


def test_another_seed_gives_other_bytes(convert, collection, reference, tmp_path):
    other = convert(collection, settings={**SETTINGS, "seed": 1}, output=tmp_path / "other")
    assert other.keys() == reference.keys()
    assert other.keys("train") != reference.keys("train")


def test_records_of_a_shard_are_mixed(reference):
    classes = [row["class"] for row in reference.rows("train")]
    changes = sum(one != other for one, other in pairwise(classes))
    # In the order of listing there would be one change fewer than classes.
    assert changes > len(set(classes))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"splits.group": "/(?P<group>[0-9])"},
        {"splits.fractions": {"train": 0.5, "validation": 0.3, "test": 0.1}},
    ],
    ids=["hash", "group", "fractions below 1"],
)
def test_ten_percent_more_images_move_none_to_another_split(
    convert, class_folders, tmp_path, settings
):
    splits = {"splits.fractions": {"train": 0.6, "test": 0.4}, **settings}
    root = class_folders(tmp_path / "photos", {"cat": 30, "dog": 30})
    before = convert(root, settings=splits)
    class_folders(root, {"cat": 33, "dog": 33, "emu": 2})
    after = convert(root, settings=splits, output=tmp_path / "after")
    old = set(before.keys())
    assert len(after.keys()) > len(old)
    for split in before.marker["splits"]:
        assert before.keys(split)
        assert before.keys(split) == [key for key in after.keys(split) if key in old]
