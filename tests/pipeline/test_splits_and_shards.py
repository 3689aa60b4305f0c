"""How many images go where, and in how many files."""

import errno
import json
from collections import Counter

import pytest

from recordmill import storage
from recordmill.schemas.digests import order_of

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

FRACTIONS = {"train": 0.6, "test": 0.4}
SEVERAL = {
    "features": {
        "encoded": {"field": "encoded", "type": "bytes"},
        "labels": {"field": "labels", "type": "int64", "shape": [None]},
        "texts": {"field": "label_texts", "type": "bytes", "shape": [None]},
    }
}


@pytest.fixture
def forty(class_folders, tmp_path):
    return class_folders(tmp_path / "photos", {"cat": 24, "dog": 16})


@pytest.mark.parametrize("count", [1, 3, 7])
def test_a_count_of_shards_is_met_and_none_is_empty(convert, forty, count):
    done = convert(forty, settings={"shards.count": count, "splits.fractions": FRACTIONS})
    for split, described in done.marker["splits"].items():
        assert [shard["name"] for shard in described["shards"]] == [
            f"{split}-{index:05d}-of-{count:05d}.tfrecord" for index in range(count)
        ]
        assert min(shard["records"] for shard in described["shards"]) >= 1
    assert done.marker["notes"] == []
    assert len(done.keys()) == 40


def test_shards_of_equal_images_are_even(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 100})
    done = convert(root, settings={"shards.count": 4, "splits.fractions": {"train": 1.0}})
    assert all(23 <= shard["records"] <= 27 for shard in done.marker["splits"]["train"]["shards"])


def test_a_count_above_the_images_is_lowered_and_said(convert, photos):
    done = convert(photos, settings={"shards.count": 9, "splits.fractions": FRACTIONS})
    images = {name: split["records"] for name, split in done.marker["splits"].items()}
    assert done.code == 0
    assert sorted(done.marker["notes"]) == sorted(
        f"split {name} is written in {count} shards, not 9: the others would be empty"
        for name, count in images.items()
    )
    assert len(done.shards()) == 10
    assert all(note in done.stderr for note in done.marker["notes"])


def test_shards_come_near_the_size_aimed_at_where_sizes_change(convert, class_folders, tmp_path):
    # Re-encoded at quality 30 the images shrink to a fraction: the estimate comes from encoding a
    # sample.
    root = class_folders(tmp_path / "photos", {"cat": 120}, size=(200, 160))
    settings = {
        "images.reencode": "always",
        "images.quality": 30,
        "splits.fractions": {"train": 1.0},
    }
    whole = convert(root, settings=settings, output=tmp_path / "whole")
    size = whole.marker["output_bytes"]
    assert size < 0.7 * whole.marker["input_bytes"]
    target = size // 6
    done = convert(root, settings={**settings, "shards.size": f"{target}B"})
    sizes = [shard["bytes"] for shard in done.marker["splits"]["train"]["shards"]]
    assert len(sizes) in (6, 7)
    assert all(0.75 * target <= each <= 1.25 * target for each in sizes)


def test_sizes_have_units(convert, photos, tmp_path):
    done = convert(photos, settings={"shards.size": "1KiB", "splits.fractions": {"train": 1.0}})
    assert len(done.shards()) > 3


@pytest.mark.parametrize("order", [["train", "test"], ["test", "train"]])
def test_one_file_a_split_on_request(convert, forty, order):
    settings = {
        "shards": {"count": 1, "name": "{split}.record"},
        "splits.fractions": {name: 0.5 for name in order},
    }
    done = convert(forty, settings=settings)
    assert {path.name for path in done.shards()} == {"train.record", "test.record"}
    assert (done.output / "sidecars/train.record.jsonl").exists()
    assert len(done.examples()) == 40


def test_all_in_one_file(convert, forty):
    settings = {
        "shards": {"count": 1, "name": "{split}.record"},
        "splits.fractions": {"train": 1.0},
    }
    done = convert(forty, settings=settings)
    assert [path.name for path in done.shards()] == ["train.record"]
    assert len(done.examples("train")) == 40


def test_images_spread_over_all_splits_by_hash(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 150, "dog": 150})
    done = convert(
        root, settings={"splits.fractions": {"train": 0.5, "validation": 0.3, "test": 0.2}}
    )
    counts = {name: split["records"] for name, split in done.marker["splits"].items()}
    assert sum(counts.values()) == 300
    assert abs(counts["train"] - 150) < 45  # five standard deviations
    assert abs(counts["validation"] - 90) < 40
    assert abs(counts["test"] - 60) < 35


@pytest.mark.parametrize("limit", [7, 1000])
def test_limit_takes_that_many(convert, forty, limit):
    fractions = {"train": 1.0} if limit == 1 else FRACTIONS
    done = convert(forty, settings={"limit": limit, "splits.fractions": fractions})
    ledger = done.marker["ledger"]
    assert ledger["written"] == min(limit, 40)
    assert ledger["left_out"] == ({"limit": 40 - limit} if limit < 40 else {})
    assert ledger["listed"] == 40


def test_a_limit_per_class(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 12, "dog": 5, "emu": 2})
    done = convert(
        root, settings={"limit_per_class": 4, "splits.fractions": FRACTIONS, "labels.offset": 3}
    )
    assert done.marker["ledger"] == {
        "listed": 19,
        "written": 10,
        "rejected": {},
        "ignored": {},
        "left_out": {"limit_per_class": 9},
    }
    assert Counter(row["class"] for row in done.rows()) == {"cat": 4, "dog": 4, "emu": 2}
    taken = done.keys()
    more = convert(
        root, "--overwrite", settings={"limit_per_class": 5, "splits.fractions": FRACTIONS}
    )
    assert (len(taken), len(more.keys())) == (10, 12)
    assert set(taken) < set(more.keys()), "a higher limit keeps what a lower one took"


ONE_LABEL = (
    "limit_per_class needs one label for each image, known before it is read, and no "
    "labels.catch_all: remove it"
)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"labels.classes": ["cat", "dog"], "labels.catch_all": "dog"},
            ONE_LABEL,
        ),
        (
            {
                "source": {"kind": "manifest", "columns": {"uri": "path", "labels": "tags"}},
                "convention": SEVERAL,
            },
            ONE_LABEL,
        ),
        (
            {"source": {"kind": "voc"}, "convention": "tfds"},
            ONE_LABEL,
        ),
        (
            {"source": {"kind": "fixed_records", "preset": "cifar10"}},
            ONE_LABEL,
        ),
        (
            {"source": {"kind": "class_folders", "class_from": "none"}},
            "limit_per_class has no effect, since the source gives no labels: remove it",
        ),
    ],
)
def test_a_limit_per_class_needs_one_known_label_an_image(convert, forty, settings, why):
    done = convert(forty, settings={"limit_per_class": 4, **settings})
    assert (done.code, [line.removeprefix("--set: ") for line in done.errors]) == (2, [why])


def test_limit_takes_from_every_split_and_class(convert, forty):
    done = convert(forty, settings={"limit": 20, "splits.fractions": FRACTIONS})
    assert all(3 <= split["records"] <= 17 for split in done.marker["splits"].values())
    assert set(Counter(row["class"] for row in done.rows())) == {"cat", "dog"}


def test_stratified_splits_are_exact_in_every_class(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 30, "dog": 20, "emu": 10})
    settings = {
        "splits.stratify": True,
        "splits.fractions": {"train": 0.7, "validation": 0.2, "test": 0.1},
    }
    done = convert(root, settings=settings)
    assert {name: split["classes"] for name, split in done.marker["splits"].items()} == {
        "train": {"cat": 21, "dog": 14, "emu": 7},
        "validation": {"cat": 6, "dog": 4, "emu": 2},
        "test": {"cat": 3, "dog": 2, "emu": 1},
    }


def test_a_group_stays_in_one_split(convert, picture, tmp_path):
    (tmp_path / "photos/cat").mkdir(parents=True)
    for patient in range(12):
        for number in range(3):
            (tmp_path / f"photos/cat/p{patient:02}_{number}.jpg").write_bytes(
                picture((patient, number))
            )
    settings = {
        "source.kind": "class_folders",
        "splits.group": "/(?P<group>p[0-9]+)_",
        "splits.fractions": FRACTIONS,
    }
    done = convert(tmp_path / "photos", settings=settings)
    patients = {split: Counter(key[4:7] for key in done.keys(split)) for split in FRACTIONS}
    assert not patients["train"].keys() & patients["test"].keys()
    assert patients["train"] + patients["test"] == {f"p{patient:02}": 3 for patient in range(12)}
    assert patients["train"]
    assert patients["test"]


def test_fractions_below_one_leave_the_rest_out(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 100})
    done = convert(root, settings={"splits.fractions": {"train": 0.4, "test": 0.1}})
    ledger = done.marker["ledger"]
    assert ledger["listed"] == 100
    assert ledger["left_out"] == {"fraction": 100 - ledger["written"]}
    assert 30 <= ledger["written"] <= 70


def test_a_split_that_would_be_empty_is_filled_and_said(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 4})
    done = convert(root, settings={"splits.fractions": {"train": 0.999, "test": 0.001}})
    assert {name: split["records"] for name, split in done.marker["splits"].items()} == {
        "train": 3,
        "test": 1,
    }
    assert done.marker["notes"] == [
        "split test would have been empty: it was given the nearest images"
    ]


def test_a_given_split_without_images_is_a_note(convert, class_folders, tmp_path):
    class_folders(tmp_path / "photos/test", {"cat": 2})
    done = convert(
        tmp_path / "photos", settings={"splits.from_folders": {"train": "train", "test": "test"}}
    )
    assert (done.code, done.errors) == (0, [])
    assert {name: split["records"] for name, split in done.marker["splits"].items()} == {"test": 2}
    assert done.marker["notes"] == [
        "no image was found for split train, which splits.from_folders names"
    ]


def test_a_given_split_whose_rows_were_all_rejected_says_so(convert, class_folders, tmp_path):
    # As train.csv and test.csv in one table, of which the second has no classes.
    class_folders(tmp_path / "photos", {"cat": 3})
    rows = ["cat/00.jpg,cat,train", "cat/01.jpg,,test", "cat/02.jpg,,test"]
    (tmp_path / "photos/all.csv").write_text("\n".join(["path,class,set", *rows]), encoding="utf-8")
    settings = {
        "source": {
            "kind": "manifest",
            "columns": {"uri": "path", "label": "class", "split": "set"},
        },
        "splits.from_source": {"train": "train", "test": "test"},
    }
    done = convert(tmp_path / "photos/all.csv", settings=settings)
    assert (done.code, done.errors) == (
        1,
        [
            "no image was found for split test, and 2 rejected, such as all.csv/000003 (all.csv, "
            "row 3: column "
            "'class' is empty): correct that, or leave the split out with --set "
            "'splits.from_source={train: train}'"
        ],
    )
    kept = convert(tmp_path / "photos/all.csv", settings={**settings, "source.unlabeled": "keep"})
    assert {name: split["records"] for name, split in kept.marker["splits"].items()} == {
        "train": 1,
        "test": 2,
    }


def test_the_order_of_fractions_is_part_of_the_plan(convert, forty):
    # The ranges of hashes follow each other as written: the same shares in another order are
    # another dataset.
    one = convert(forty, settings={"splits.fractions": {"train": 0.5, "test": 0.5}})
    other = convert(forty, settings={"splits.fractions": {"test": 0.5, "train": 0.5}})
    assert (other.code, other.line["status"]) == (1, "refused")
    assert other.line["plan_id"] != one.line["plan_id"]
    assert "split_order: ['train', 'test'] -> ['test', 'train']" in other.errors[0]


FIXED = {"shards.cuts": "fixed", "splits.fractions": {"train": 1.0}, "report": False}


def inodes(folder):
    return {path.name: path.stat().st_ino for path in sorted(folder.glob("*.tfrecord"))}


@pytest.fixture
def nightly(convert, class_folders, picture, tmp_path):
    """A dataset of 640 images in 64 shards, and what converts them after ten of them have
    changed."""
    root = class_folders(tmp_path / "photos", {"cat": 400, "dog": 240}, size=(8, 8))

    def night(*flags, output=tmp_path / "dataset"):
        return convert(root, *flags, settings=FIXED | {"shards.count": 64}, output=output)

    def change():
        for number in range(10):
            (root / f"dog/{7 * number:02}.jpg").write_bytes(picture(("changed", number), (9, 8)))

    return night, change


def test_ten_changed_images_change_no_more_than_ten_shards_of_64(nightly, tmp_path):
    night, change = nightly
    first = night()
    assert len(first.shards()) == 64
    before = {path.name: path.read_bytes() for path in first.shards()}, inodes(first.output)
    change()
    rebuilt, again = night(output=tmp_path / "rebuilt"), night("--update")
    assert again.deterministic_files == rebuilt.deterministic_files
    assert again.lasting_marker == rebuilt.lasting_marker
    after = {path.name: path.read_bytes() for path in again.shards()}, inodes(again.output)
    differ, moved = (
        {name for name in new if old[name] != new[name]}
        for old, new in zip(before, after, strict=True)
    )
    assert differ == moved
    assert 1 <= len(differ) <= 10
    assert again.staging == []


def test_unchanged_shards_of_versions_are_one_file(nightly):
    night, change = nightly
    first = night("--versions")
    change()
    second = night("--versions", "--update")
    old, new = (inodes(done.output / done.line["version"]) for done in (first, second))
    assert 54 <= sum(old[name] == new[name] for name in new) < 64
    versions = [done.output / done.line["version"] for done in (first, second)]
    names = [name for name in new if old[name] != new[name]]
    assert all(
        (versions[0] / name).read_bytes() != (versions[1] / name).read_bytes() for name in names
    )


def test_unchanged_shards_survive_a_publication_that_fails(nightly, monkeypatch):
    night, change = nightly
    before = inodes(night().output)
    change()
    with monkeypatch.context() as patch:
        real = storage.move_file

        def fail(source, target):
            if target.endswith("dataset/labels.txt"):
                raise OSError(errno.EIO, "broken")
            real(source, target)

        patch.setattr(storage, "move_file", fail)
        failed = night("--update")
    assert (failed.code, failed.shards()) == (1, [])
    again = night("--update")
    after = inodes(again.output)
    assert (again.code, again.marker["run"]["shards_reused"]) == (0, 64)
    assert sum(before[name] == after[name] for name in after) >= 54


def test_a_damaged_shard_is_replaced(nightly):
    night, change = nightly
    done = night()
    content, shard = (path := done.shards()[5]).read_bytes(), path.stat().st_ino
    path.write_bytes(content[:-1] + b"x")
    change()
    assert night("--overwrite").code == 0
    assert path.stat().st_ino != shard
    assert path.read_bytes()[-1:] != b"x"


RENAMED = (
    "shards have other names than before: there are more ranges of hashes, or others are empty"
)


def test_the_number_of_fixed_shards_is_the_next_power_of_two(
    convert, class_folders, picture, tmp_path
):
    root = class_folders(tmp_path / "photos", {"cat": 100})
    size = sum(path.stat().st_size for path in root.rglob("*.jpg"))
    settings = FIXED | {"shards.size": f"{size // 4}B"}
    done = convert(root, settings=settings)
    assert len(done.shards()) == 8  # a little more than four times the size
    (root / "cat/new.jpg").write_bytes(picture("new", (100, 100)))
    grown = convert(root, "--update", settings=settings)
    assert len(grown.shards()) == 8
    assert RENAMED not in grown.line["notes"]
    (root / "cat/large.bmp").write_bytes(picture("new", (300, 100), kind="BMP"))
    crossed = convert(root, "--update", settings=settings)
    assert RENAMED in crossed.line["notes"]
    assert RENAMED not in crossed.marker["notes"]


def test_a_range_that_becomes_empty_has_no_shard(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 24})
    settings = FIXED | {"shards.count": 4}
    done = convert(root, settings=settings)
    assert len(done.shards()) == 4
    last = [
        key
        for path in sorted((done.output / "sidecars").glob("*00003*"))
        for key in path.read_text().splitlines()
    ]
    for line in last:
        (root / json.loads(line)["key"]).unlink()
    again = convert(root, "--update", settings=settings)
    assert [path.name for path in again.shards()] == [
        f"train-0000{n}-of-00003.tfrecord" for n in range(3)
    ]
    assert RENAMED in again.line["notes"]
    fewer = "split train is written in 3 shards, not 4: the others would be empty"
    assert again.marker["notes"] == [fewer]


def test_a_range_that_becomes_empty_while_another_is_filled_is_noted(convert, picture, tmp_path):
    names = {}  # of one image in each quarter of the hashes
    for number in range(40):
        names.setdefault(order_of(0, f"cat/{number}.jpg") >> 62, number)
    settings = FIXED | {"shards.count": 4}
    for quarter in (0, 1, 3):
        (tmp_path / "photos/cat").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"photos/cat/{names[quarter]}.jpg").write_bytes(picture(quarter))
    first = convert(tmp_path / "photos", settings=settings)
    (tmp_path / f"photos/cat/{names[1]}.jpg").rename(tmp_path / f"photos/cat/{names[2]}.jpg")
    again = convert(tmp_path / "photos", "--update", settings=settings)
    assert RENAMED in again.line["notes"]
    assert [len(each.shards()) for each in (first, again)] == [3, 3]
    (tmp_path / f"photos/cat/{names[2]}.jpg").write_bytes(picture("other"))
    last = convert(tmp_path / "photos", "--update", settings=settings)
    assert (last.code, [note for note in last.line["notes"] if "names" in note]) == (0, [])


def test_fixed_cuts_need_a_power_of_two(convert, photos):
    done = convert(photos, settings=FIXED | {"shards.count": 6})
    assert done.answer[0] == 2
    assert "shards.count is 6: with cuts: fixed, give a power of two such as 8" in done.answer[1]
    beam = convert(photos, "--writer=beam", settings=FIXED | {"shards.count": 4})
    assert beam.answer[1].startswith("shards.cuts has no effect, since --writer=beam")
