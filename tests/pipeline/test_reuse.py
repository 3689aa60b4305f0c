"""`--reuse` and `--update`: the dataset of a full conversion, byte by byte, at the price of what
has changed."""

import errno
import hashlib
import json
import os
import shutil
import time
from collections import Counter
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain

import golden_inputs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.photographs import with_exif
from recordmill import storage
from recordmill.schemas.dataset.record_index import (
    SECTION_BYTES,
    UNKNOWN,
    parse_origins,
    parse_table,
)
from recordmill.schemas.digests import order_of
from recordmill.schemas.features import Example
from recordmill.schemas.image_ref import ImageRef
from recordmill.storage.tfrecord_file import RecordSink
from recordmill.transforms.planning.earlier_dataset import ReusableDataset, open_earlier
from recordmill.transforms.records import convert_image, earlier_datasets
from recordmill.transforms.records.earlier_datasets import ReferenceDigests, join_earlier
from recordmill.transforms.shards import shard_writer
from recordmill.transforms.shards.shard_writer import ShardWriter

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

TIME = 1_700_000_000
NOT_COMPARED = {"recordmill.json", "records.versions", "report.html", "config.yaml"}
SETTINGS = {
    "name": "pets",
    "shards.count": 3,
    "splits.fractions": {"train": 0.7, "test": 0.3},
    "report": False,
}


def write(folder, name, content, time=TIME):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time, time))


@pytest.fixture
def photos(tmp_path, picture):
    """Twenty images of two classes; JPEGs that are stored as they are, and PNGs that become
    JPEGs."""
    folder = tmp_path / "input"
    for number in range(10):
        write(folder, f"cat/{number}.jpg", picture(("cat", number)))
        write(folder, f"dog/{number}.png", picture(("dog", number), kind="PNG"))
    return folder


@pytest.fixture
def built(monkeypatch):
    """The keys of the images whose records were built since it was last emptied."""
    keys, build = [], convert_image.build_record

    def counted(loaded, *arguments):
        keys.append(loaded.ref.key)
        return build(loaded, *arguments)

    monkeypatch.setattr(convert_image, "build_record", counted)
    return keys


def contents(done):
    """All that a rebuild must give again: every file, and the marker without the part about the
    run."""
    files = {name: (done.output / name).read_bytes() for name in done.files - NOT_COMPARED}
    return files | {"recordmill.json": done.lasting_marker}


def origins_of(done):
    """What each row of a dataset was made from, in the order of its shards; rows of shards without
    records come last."""
    content = (done.output / "records.versions").read_bytes()
    count = len([*(done.output / "sidecars").iterdir()])
    sections = parse_table(content[: count * SECTION_BYTES])
    lines = [content[each.offset : each.offset + each.length].splitlines() for each in sections]
    return list(parse_origins(chain.from_iterable(lines)))


def empty_unchanged(folder):
    """Replaces all bytes by zeros, as if nobody had touched the files."""
    for path in folder.rglob("*.*"):
        stat = path.stat()
        path.write_bytes(bytes(stat.st_size))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def grown(folder, picture):
    write(folder, "cat/new.jpg", picture("new"))
    write(folder, "emu/first.png", picture("emu", kind="PNG"))


def shrunk(folder, picture):
    (folder / "cat/3.jpg").unlink()
    (folder / "dog/4.png").unlink()


def changed(folder, picture):
    write(folder, "cat/3.jpg", picture("other", (30, 20)), TIME + 9)
    write(folder, "dog/3.png", picture("another", kind="PNG"), TIME + 9)


def touched(folder, picture):
    for name in ("cat/1.jpg", "dog/1.png"):
        os.utime(folder / name, (TIME + 9, TIME + 9))


def relabeled(folder, picture):
    (folder / "cat").rename(folder / "zebra")


def broken(folder, picture):
    write(folder, "cat/3.jpg", picture(("cat", 3))[:300], TIME + 9)


def unchanged(folder, picture):
    pass


EDITS = {
    "grown": (grown, {}, 2),
    "shrunk": (shrunk, {}, 0),
    "changed": (changed, {}, 2),
    "touched": (touched, {}, 0),
    "relabeled": (relabeled, {}, 10),
    "broken": (broken, {"max_rejected": {"share": 0.2}}, 1),
    "more shards": (unchanged, {"shards.count": 5}, 0),
    "other splits": (unchanged, {"splits.fractions": {"train": 0.5, "val": 0.2, "test": 0.3}}, 0),
    "another convention": (unchanged, {"convention": "slim"}, 0),
    "a limit": (unchanged, {"limit": 13}, 0),
    "compressed": (grown, {"compression": "gzip"}, 2),
}


@pytest.mark.parametrize("flags", [["--update"], ["--versions", "--update"]])
def test_a_file_that_changed_in_the_moment_it_was_converted_is_read_again(
    convert, photos, picture, tmp_path, flags
):
    now, other = time.time() + 60, picture("other")
    size = max(len(other), (photos / "cat/3.jpg").stat().st_size)
    write(photos, "cat/3.jpg", (photos / "cat/3.jpg").read_bytes().ljust(size, b"\0"), now)
    convert(photos, *flags, settings=SETTINGS)
    write(photos, "cat/3.jpg", other.ljust(size, b"\0"), now)
    updated = convert(photos, *flags, settings=SETTINGS)
    assert updated.line["status"] == "published"
    fresh = convert(photos, settings=SETTINGS, output=tmp_path / "fresh")
    for path in fresh.shards():
        assert (
            updated.output / updated.line.get("version", "") / path.name
        ).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("edit", EDITS)
def test_an_update_is_a_rebuild_and_decodes_only_what_has_changed(
    edit, photos, convert, picture, decoded, tmp_path
):
    change, settings, count = EDITS[edit]
    first = convert(photos, settings=SETTINGS, output=tmp_path / "dataset")
    assert first.code == 0
    change(photos, picture)
    rebuilt = convert(photos, settings=SETTINGS | settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(photos, "--update", settings=SETTINGS | settings, output=tmp_path / "dataset")
    assert (updated.code, updated.line["status"]) == (0, "published"), updated.stderr
    assert contents(updated) == contents(rebuilt)
    assert updated.marker["run"]["images_reused"] == updated.marker["ledger"]["written"] - count + (
        edit == "broken"
    )
    assert len(decoded) == count


@pytest.fixture
def dataset(photos, convert, tmp_path):
    return convert(photos, settings=SETTINGS, output=tmp_path / "dataset")


def test_the_first_update_converts_everything_and_the_next_one_keeps_it(photos, convert, decoded):
    first = convert(photos, "--update", settings=SETTINGS)
    assert (first.line["status"], first.marker["run"]["images_reused"], len(decoded)) == (
        "published",
        0,
        20,
    )
    assert convert(photos, "--update", settings=SETTINGS).line["status"] == "kept"
    assert len(decoded) == 20


def test_without_versions_sources_are_read_and_not_decoded(
    dataset, photos, convert, decoded, tmp_path
):
    versions = dataset.output / "records.versions"
    versions.write_bytes(bytes(versions.stat().st_size))
    again = convert(
        photos, f"--reuse={dataset.output}", settings=SETTINGS, output=tmp_path / "again"
    )
    assert contents(again) == contents(dataset)
    assert (again.marker["run"]["images_reused"], decoded) == (20, [])


def test_sources_that_are_known_to_be_unchanged_are_not_even_read(
    dataset, photos, convert, tmp_path
):
    empty_unchanged(photos)
    again = convert(
        photos, f"--reuse={dataset.output}", settings=SETTINGS, output=tmp_path / "again"
    )
    assert contents(again) == contents(dataset)


def test_a_file_of_the_last_two_seconds_is_read_again(photos, convert, tmp_path):
    new = photos / "cat" / "1.jpg"
    os.utime(new, (4_000_000_000, 4_000_000_000))
    first = convert(photos, settings=SETTINGS, output=tmp_path / "dataset")
    origins = origins_of(first)
    assert (len(origins), [each.source for each in origins].count(0)) == (20, 1)
    content, size = new.read_bytes(), new.stat().st_size
    new.write_bytes(b"\0" * size)
    os.utime(new, (4_000_000_000, 4_000_000_000))
    again = convert(photos, f"--reuse={first.output}", settings=SETTINGS, output=tmp_path / "again")
    assert [row["key"] for row in again.rejected] == ["cat/1.jpg"]
    assert content not in b"".join(path.read_bytes() for path in again.shards())


AGAIN = "images that would be copied from there are read again"


@pytest.mark.parametrize("name", ["shard", "sidecar", "index", "versions"])
def test_images_of_damaged_files_are_converted_again(dataset, photos, convert, name, tmp_path):
    shard = dataset.shards("train")[0]
    paths = {"shard": shard, "sidecar": dataset.output / "sidecars" / f"{shard.name}.jsonl"}
    path = paths.get(name, dataset.output / f"records.{name}")
    before = path.read_bytes()
    at = before.index(b'"sha256":"') + 12 if name == "sidecar" else 60
    path.write_bytes(
        before[:30] if name in ("index", "versions") else before[:at] + b"x" + before[at + 1 :]
    )
    again = convert(
        photos, f"--reuse={dataset.output}", settings=SETTINGS, output=tmp_path / "again"
    )
    path.write_bytes(before)
    assert contents(again) == contents(dataset)
    reused = again.marker["run"]["images_reused"]
    records = dataset.marker["splits"]["train"]["shards"][0]["records"]
    assert reused == {"shard": 19, "sidecar": 20 - records, "index": 0, "versions": 20}[name]
    what = f"{path} is missing or damaged: {AGAIN}"
    assert again.line["notes"][0] == again.marker["run"]["notes"][0] == what


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("train-00000-of-00003.tfrecord", "index"),
        ("sidecars/test-00001-of-00003.tfrecord.jsonl", "versions"),
    ],
)
def test_a_note_names_a_missing_file_of_a_dataset_to_reuse(
    dataset, photos, convert, name, other, tmp_path
):
    before = contents(dataset)
    (dataset.output / name).unlink()
    (dataset.output / f"records.{other}").write_bytes(b"x")
    again = convert(
        photos, f"--reuse={dataset.output}", settings=SETTINGS, output=tmp_path / "again"
    )
    names = sorted(f"{dataset.output}/{each}" for each in (name, f"records.{other}"))
    what = f"{', '.join(names)} are missing or damaged: {AGAIN}"
    if other == "index":  # without which no other file can be used
        what = f"{dataset.output}/records.index is missing or damaged: {AGAIN}"
    assert (again.code, again.line["notes"][0]) == (0, what)
    assert contents(again) == before


def test_a_run_that_fails_names_the_damaged_files_too(dataset, photos, convert, tmp_path):
    """They may be the reason: images that are gone cannot be read again."""
    (sidecar, *_) = sorted((dataset.output / "sidecars").iterdir())
    sidecar.write_bytes(b"x")
    empty_unchanged(photos)
    settings = SETTINGS | {"max_rejected": {"count": 0, "share": 0}}
    again = convert(
        photos, f"--reuse={dataset.output}", settings=settings, output=tmp_path / "again"
    )
    what = f"{sidecar} is missing or damaged: {AGAIN}"
    assert (again.code, what in again.line["notes"]) == (3, True)


def damage(dataset):
    """Damages three files of a dataset, one of each kind that shards have; gives them in the order
    of a note."""
    sidecar, records, missing = (dataset.output / name for name in SHARD_FILES)
    sidecar.write_bytes(sidecar.read_bytes()[:-1])
    records.write_bytes(records.read_bytes()[:-200])
    missing.unlink()
    return [f"{dataset.output}/{name}" for name in SHARD_FILES]


SHARD_FILES = (
    "sidecars/test-00000-of-00003.tfrecord.jsonl",
    "train-00001-of-00003.tfrecord",
    "train-00002-of-00003.tfrecord",
)


@pytest.mark.parametrize("processes", [1, 2])
def test_workers_find_the_same_damaged_files_in_any_process(
    dataset, photos, convert, processes, tmp_path
):
    settings = SETTINGS | {"shards.count": 1}
    rebuilt = convert(photos, settings=settings, output=tmp_path / "rebuilt")
    damage(dataset)
    flags = (f"--reuse={dataset.output}", f"--processes={processes}")
    again = convert(photos, *flags, settings=settings, output=tmp_path / "again")
    assert contents(again) == contents(rebuilt)
    names = ", ".join(f"{dataset.output}/{name}" for name in SHARD_FILES)
    assert again.line["notes"][0] == f"{names} are missing or damaged: {AGAIN}"


@pytest.mark.parametrize("count", [1, 3, 7, 20])
def test_damaged_files_are_the_same_however_many_references_are_looked_up_at_once(
    dataset, photos, count
):
    reuse = (ReusableDataset(open_earlier(str(dataset.output)), True, True),)
    keys = sorted(
        (str(path.relative_to(photos)) for path in photos.rglob("*.*")),
        key=lambda key: order_of(0, key),
    )
    refs = [(ImageRef(key, str(photos / key)), UNKNOWN) for key in keys]
    damaged = damage(dataset)
    orders = [order_of(0, key) for key in keys]
    parts = [
        join_earlier(reuse, refs[at : at + count], orders[at : at + count], 0)
        for at in range(0, 20, count)
    ]
    assert (
        sorted({each for joined in chain.from_iterable(parts) for each in joined.damaged})
        == damaged
    )


@pytest.mark.parametrize("settings", [{}, {"duplicates": "drop"}])
def test_little_is_read_of_a_dataset_to_reuse_before_the_output_is_claimed(
    photos, convert, settings, monkeypatch, tmp_path
):
    """The sample has the least hashes, so it is in the first shard; only `duplicates` needs all
    rows."""
    settings = SETTINGS | {"shards.count": 4, "splits.fractions": {"train": 1.0}} | settings
    dataset = convert(photos, settings=settings, output=tmp_path / "dataset")
    monkeypatch.setattr("recordmill.transforms.planning.summary.SAMPLE_SIZE", 3)
    paths = set()

    def note(read, path, *arguments):
        if path.startswith(str(dataset.output)):
            paths.add(os.path.relpath(path, dataset.output))
        return read(path, *arguments)

    for name in ("read_range", "read_whole", "open_to_read"):
        monkeypatch.setattr(storage, name, partial(note, getattr(storage, name)))
    planned = convert(
        photos,
        f"--reuse={dataset.output}",
        "--plan",
        settings=settings,
        output=tmp_path / "planned",
    )
    assert planned.line["status"] == "planned"
    sidecars = [f"sidecars/{path.name}.jsonl" for path in dataset.shards()]
    needed = sidecars if settings.get("duplicates") else sidecars[:1]
    first = dataset.shards()[0].name
    assert paths == {"recordmill.json", "records.index", "records.versions", first, *needed}


def test_the_first_of_several_datasets_wins_and_the_others_fill_in(
    dataset, photos, convert, picture, decoded, tmp_path
):
    kept = [photos / "cat" / f"{number}.jpg" for number in range(5)]
    for path in kept:
        path.rename(tmp_path / path.name)
    write(photos, "cat/new.jpg", picture("new"))
    other = convert(photos, settings=SETTINGS, output=tmp_path / "other")
    for path in kept:
        (tmp_path / path.name).rename(path)
    rebuilt = convert(photos, settings=SETTINGS, output=tmp_path / "rebuilt")
    decoded.clear()
    flags = [f"--reuse={each.output}" for each in (other, dataset)]
    again = convert(photos, *flags, settings=SETTINGS, output=tmp_path / "again")
    assert contents(again) == contents(rebuilt)
    assert (again.marker["run"]["images_reused"], decoded) == (21, [])
    assert any(
        "21 of 21 records were taken from earlier datasets" in note for note in again.line["notes"]
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"images.quality": 80}, "images.quality: 95 -> 80"),
        ({"features": {"f": "color_histogram"}}, "the settings call functions"),
    ],
)
def test_a_note_says_which_settings_keep_images_from_being_reused(
    dataset, photos, convert, settings, why, tmp_path
):
    again = convert(
        photos, f"--reuse={dataset.output}", settings=SETTINGS | settings, output=tmp_path / "again"
    )
    assert again.code == 0
    (note,) = [note for note in again.line["notes"] if "could be reused" in note]
    assert note.startswith(f"no image of {dataset.output} could be reused: ")
    assert why in note
    assert again.marker["run"]["images_reused"] == 0


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ({}, {"keep.min_sharpness": 1}, "keep.min_sharpness: not set -> 1.0"),
        ({"keep.min_sharpness": 1}, {}, "keep.min_sharpness: 1.0 -> not set"),
        ({"images.near_duplicates": True}, {}, "images.near_duplicates: True -> False"),
    ],
)
def test_filters_and_functions_of_one_of_the_datasets_keep_images_from_being_reused(
    photos, convert, picture, before, after, why, tmp_path
):
    """They decide which images are there, and whether pixels have a digest."""
    write(photos, "dog/small.png", picture("small", (10, 10), kind="PNG"))
    first = convert(photos, settings=SETTINGS | before, output=tmp_path / "dataset")
    rebuilt = convert(photos, settings=SETTINGS | after, output=tmp_path / "rebuilt")
    assert (first.code, rebuilt.code) == (0, 0), rebuilt.stderr
    updated = convert(photos, "--update", settings=SETTINGS | after, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    (note,) = [note for note in updated.line["notes"] if "could be reused" in note]
    assert why in note


def test_updates_in_one_process_see_the_dataset_that_the_last_one_made(dataset, photos, convert):
    for number in range(3):
        (photos / "cat" / f"{number}.jpg").unlink()
        updated = convert(photos, "--update", settings=SETTINGS, output=dataset.output)
        assert updated.marker["run"]["images_reused"] == 19 - number


def test_sources_are_read_again_if_other_values_are_read_from_them(
    dataset, convert, decoded, records_of, tmp_path
):
    """The image of a record is known to be unchanged; what else is in the record was not stored
    before."""
    config, settings = (
        "--config=configs/tfrecords.yaml",
        SETTINGS | {"splits.fractions": {"train": 1.0}},
    )
    records = tmp_path / "records" / "train.tfrecord"
    records.parent.mkdir()
    with closing(RecordSink(str(records), "none")) as sink:
        for _, record in (
            pair for path in dataset.shards() for pair in records_of(path.read_bytes())
        ):
            example = Example.FromString(record)
            example.features.feature["weight"].float_list.value.append(0.5)
            sink.write(example.SerializeToString())
    os.utime(records, (TIME, TIME))
    first = convert(records.parent, config, settings=settings, output=tmp_path / "first")
    settings |= {"source.keep": {"weight": "float"}}
    rebuilt = convert(records.parent, config, settings=settings, output=tmp_path / "rebuilt")
    assert (first.code, rebuilt.code) == (0, 0), first.stderr + rebuilt.stderr
    decoded.clear()
    updated = convert(
        records.parent, config, "--update", settings=settings, output=tmp_path / "first"
    )
    assert contents(updated) == contents(rebuilt)
    assert (updated.marker["run"]["images_reused"], decoded) == (20, [])


def test_bad_datasets_to_reuse_are_refused_in_a_sentence(dataset, photos, convert, tmp_path):
    def refuse(folder, **settings):
        done = convert(
            photos, f"--reuse={folder}", settings=SETTINGS | settings, output=tmp_path / "again"
        )
        assert not done.output.exists()
        return done.answer

    (tmp_path / "empty").mkdir()
    for folder in ("empty", "nowhere", "dataset/recordmill.json"):
        sentence = "holds no finished dataset: name one, or remove the flag"
        assert refuse(tmp_path / folder) == (2, f"--reuse: {tmp_path / folder} {sentence}")
    code, sentence = refuse("nowhere://a/b")
    assert (code, sentence[:84]) == (
        1,
        "the dataset nowhere://a/b cannot be read: Unable to get filesystem from specified pa",
    )
    assert refuse(dataset.output, seed=3) == (
        2,
        f"--reuse: unit and seed of {dataset.output} are ('image', 0), not ('image', 3): set seed, "
        "or remove --reuse",
    )
    for change, problem in (
        ({"unit": "row"}, "are ('row', 0), not ('image', 0)"),
        ({"recordmill": 4}, "it has format 4"),
    ):
        copy = shutil.copytree(
            dataset.output, tmp_path / problem.replace(" ", ""), dirs_exist_ok=True
        )
        marker = json.loads((copy / "recordmill.json").read_bytes())
        (copy / "recordmill.json").write_text(json.dumps(marker | change))
        code, sentence = refuse(copy)
        assert (code, problem in sentence) == (2, True), sentence
    (copy / "recordmill.json").write_text("{")
    code, sentence = refuse(copy)
    assert (code, "cannot be understood: it is not JSON" in sentence) == (2, True)


def test_annotated_images_are_reused_with_other_boxes(convert, picture, decoded, tmp_path):
    """One image is stored as it is, and one was encoded again and rotated: its file is read for its
    boxes."""
    folder = tmp_path / "coco"

    def annotate(width):
        boxes = [
            {"id": n, "image_id": n, "category_id": 1, "bbox": [1, 2, width, 8], "iscrowd": 0}
            for n in range(6)
        ]
        images = [
            {"id": n, "file_name": f"{n}.{'jpg' if n % 2 else 'png'}", "width": 24, "height": 16}
            for n in range(6)
        ]
        text = json.dumps(
            {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}
        )
        write(folder, "annotations/instances_train2017.json", text.encode())

    for n in range(6):
        write(
            folder,
            f"train/{n}.{'jpg' if n % 2 else 'png'}",
            picture(n, kind="JPEG" if n % 2 else "PNG"),
        )
    annotate(9)
    config = "--config=configs/coco.yaml"
    settings = {"name": "boxes", "report": False, "shards.count": 1}
    first = convert(folder, config, settings=settings, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    before = contents(first)
    annotate(12)
    rebuilt = convert(folder, config, settings=settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(folder, config, "--update", settings=settings, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt) != before
    assert (updated.marker["run"]["images_reused"], decoded) == (6, [])
    empty_unchanged(folder / "train")
    again = convert(
        folder, config, f"--reuse={updated.output}", settings=settings, output=tmp_path / "again"
    )
    assert contents(again) == contents(updated)


SAME = {
    "class folders": {},
    "compressed": {"compression": "gzip", "shards.count": 1},
    "functions": {"features": {"f": "color_histogram"}},
    "a split in the records": {"convention": "tfrecorder"},
    "raw pixels": {"convention": "raw_pixels", "images.resize.exact": [8, 8]},
    "no images": {"convention": "feature_vector", "features": {"feature": "color_histogram"}},
}


@pytest.mark.parametrize("case", [*SAME][1::2])
def test_records_are_copied_if_nothing_has_changed_that_decides_them(
    case, photos, convert, picture, built, tmp_path
):
    settings = SETTINGS | SAME[case]
    first = convert(photos, settings=settings, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    grown(photos, picture)
    os.utime(photos / "cat" / "5.jpg", (TIME + 9, TIME + 9))
    rebuilt = convert(photos, settings=settings, output=tmp_path / "rebuilt")
    built.clear()
    updated = convert(photos, "--update", settings=settings, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    assert sorted(set(built)) == ["cat/new.jpg", "emu/first.png"]
    assert updated.marker["run"]["images_reused"] == 20
    assert origins_of(updated) == origins_of(rebuilt)


def test_rejected_images_are_not_decoded_again(photos, convert, picture, decoded, tmp_path):
    settings = SETTINGS | {"max_rejected": {"share": 0.5}}
    broken(photos, picture)
    write(photos, "dog/4.png", b"not an image")
    first = convert(photos, settings=settings, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    os.utime(photos / "dog/4.png", (TIME + 20, TIME + 20))
    grown(photos, picture)
    rebuilt = convert(photos, settings=settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(photos, "--update", settings=settings, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    assert sorted(row["key"] for row in updated.rejected) == ["cat/3.jpg", "dog/4.png"]
    assert (len(decoded), updated.marker["run"]["images_reused"]) == (2, 18)


SHARDS_WITHOUT_RECORDS = SETTINGS | {"shards.count": 20, "max_rejected": {"share": 0.5}}


@pytest.fixture
def partly_rejected(photos, convert, picture, tmp_path):
    """A dataset with a shard for each image; three images are rejected."""
    broken(photos, picture)
    write(photos, "dog/4.png", b"not an image")
    write(photos, "cat/8.jpg", b"")
    done = convert(photos, settings=SHARDS_WITHOUT_RECORDS, output=tmp_path / "dataset")
    assert done.code == 0, done.stderr
    assert sorted(row["key"] for row in done.rejected) == ["cat/3.jpg", "cat/8.jpg", "dog/4.png"]
    return done


def sidecars_without_records(done):
    return sorted((done.output / "sidecars").glob("rejected-*.jsonl"))


@pytest.mark.parametrize("count", [1, 20])
def test_rows_of_shards_without_records_are_copied(
    count, partly_rejected, photos, convert, monkeypatch, tmp_path
):
    assert len(sidecars_without_records(partly_rejected)) == 3
    settings = SHARDS_WITHOUT_RECORDS | {"shards.count": count}
    write(photos, "cat/new.jpg", (photos / "cat/1.jpg").read_bytes())
    rebuilt = convert(photos, settings=settings, output=tmp_path / "rebuilt")
    read, sources = storage.read_range, []

    def note(path, *arguments):
        if path.startswith(str(photos)):
            sources.append(os.path.relpath(path, photos))
        return read(path, *arguments)

    monkeypatch.setattr(storage, "read_range", note)
    updated = convert(photos, "--update", settings=settings, output=tmp_path / "dataset")
    assert sources == ["cat/new.jpg"]
    assert contents(updated) == contents(rebuilt)
    assert origins_of(updated) == origins_of(rebuilt)
    assert updated.marker["run"]["images_reused"] == 17


def test_images_of_a_damaged_sidecar_without_records_are_read_again(
    partly_rejected, photos, convert, tmp_path
):
    damaged = sidecars_without_records(partly_rejected)[1]
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1])
    again = convert(
        photos,
        f"--reuse={partly_rejected.output}",
        settings=SHARDS_WITHOUT_RECORDS,
        output=tmp_path / "again",
    )
    damaged.write_bytes(content)
    assert contents(again) == contents(partly_rejected)
    assert again.line["notes"][0] == f"{damaged} is missing or damaged: {AGAIN}"


def test_records_whose_label_was_unknown_are_read_again(convert, tmp_path):
    """The label is in the record, and what it is called in a file next to it: neither is in the
    reference."""
    records, settings = tmp_path / "records", SETTINGS | {"max_rejected": {"share": 0.5}}
    source = {
        "kind": "fixed_records",
        "data": {"train": "*.bin"},
        "labels": ["label"],
        "label": "label",
    }
    source |= {"height": 2, "width": 2, "class_names_file": "classes.txt"}
    settings |= {"source": source, "decode": "images", "images.store": "png"}
    write(records, "all.bin", b"".join(bytes([number % 3, *[number] * 12]) for number in range(12)))
    write(records, "classes.txt", b"cat\ndog\n")
    first = convert(records, settings=settings, output=tmp_path / "dataset")
    assert (first.code, first.line.get("ledger", {}).get("rejected")) == (
        0,
        {"unknown_label": 4},
    ), first.stderr
    write(records, "classes.txt", b"cat\ndog\nemu\n")
    rebuilt = convert(records, settings=settings, output=tmp_path / "rebuilt")
    updated = convert(records, "--update", settings=settings, output=tmp_path / "dataset")
    assert updated.line["ledger"] == rebuilt.line["ledger"]
    assert contents(updated) == contents(rebuilt)


def test_what_could_not_be_read_is_tried_again(photos, convert, decoded, monkeypatch, tmp_path):
    settings = SETTINGS | {"max_rejected": {"share": 0.5}}
    read, settings["shards.count"] = storage.read_range, 1

    def fail(path, *arguments):
        if path.endswith("cat/3.jpg"):
            raise PermissionError(errno.EACCES, "no", path)
        return read(path, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "read_range", fail)
        first = convert(photos, settings=settings, output=tmp_path / "dataset")
    assert [row["reason"] for row in first.rejected] == ["unreadable"]
    rebuilt = convert(photos, settings=settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(photos, "--update", settings=settings, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    assert (len(decoded), updated.rejected) == (1, [])


def test_the_digests_of_a_reference_are_computed_once(
    dataset, photos, convert, monkeypatch, tmp_path
):
    digest, source, digested = ReferenceDigests.digest, shard_writer.source_digest_of, Counter()

    def count(ref, what, found):
        digested[ref.key, what] += 1
        return found

    monkeypatch.setattr(
        ReferenceDigests, "digest", lambda *given: count(given[1], "own", digest(*given))
    )
    for module in (shard_writer, earlier_datasets):
        monkeypatch.setattr(
            module, "source_digest_of", lambda ref: count(ref, "source", source(ref))
        )
    again = convert(
        photos, f"--reuse={dataset.output}", settings=SETTINGS, output=tmp_path / "again"
    )
    assert again.marker["run"]["images_reused"] == 20
    keys = [str(path.relative_to(photos)) for path in photos.rglob("*.*")]
    assert digested == {(key, what): 1 for key in keys for what in ("own", "source")}


@pytest.mark.parametrize("settings", [{"images.reencode": "always"}, {"duplicates": "drop"}])
def test_no_byte_of_an_unchanged_source_is_read(
    settings, photos, convert, picture, decoded, monkeypatch, tmp_path
):
    """The sizes of shards are estimated from a sample, and duplicates found by digests: both from
    the old rows."""
    for path in photos.glob("dog/*"):
        path.unlink()  # JPEGs made of PNGs do not say how they would be sampled
    write(photos, "cat/copy.jpg", (photos / "cat" / "1.jpg").read_bytes())
    settings = (
        SETTINGS
        | {"shards.count": None, "shards.size": "1 KB", "labels.classes": ["cat", "emu"]}
        | settings
    )
    config = "--config=configs/class_folders.yaml"
    first = convert(photos, config, settings=settings, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    grown(photos, picture)
    write(photos, "cat/other.png", (photos / "emu" / "first.png").read_bytes())
    rebuilt = convert(photos, config, settings=settings, output=tmp_path / "rebuilt")
    read, sizes = storage.read_range, {}

    def count(path, *arguments):
        content = read(path, *arguments)
        if path.startswith(str(photos)):
            sizes[os.path.relpath(path, photos)] = len(content)
        return content

    monkeypatch.setattr(storage, "read_range", count)
    updated = convert(photos, config, "--update", settings=settings, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    new = {"cat/new.jpg", "cat/other.png", "emu/first.png"}
    if settings.get("duplicates") == "drop":
        new.add("cat/copy.jpg")  # the earlier dataset has no row of it
    assert sizes == {name: (photos / name).stat().st_size for name in new}


def test_a_note_counts_the_images_on_which_the_datasets_to_reuse_disagree(
    photos, convert, picture, tmp_path
):
    first = convert(photos, settings=SETTINGS, output=tmp_path / "first")
    content = (photos / "cat/3.jpg").read_bytes()
    other = picture("another")
    write(photos, "cat/3.jpg", other[: len(content)].ljust(len(content), b"\0"))
    second = convert(photos, settings=SETTINGS, output=tmp_path / "second")
    write(photos, "cat/3.jpg", content)
    assert (first.code, second.code) == (0, 0)
    flags = [f"--reuse={each.output}" for each in (first, second)]
    again = convert(photos, *flags, settings=SETTINGS, output=tmp_path / "again")
    assert contents(again) == contents(first)
    note = "the datasets to reuse disagree on 1 image: the first one that fits was used"
    assert note in again.line["notes"]
    run = again.marker["run"]
    assert (run["images_disputed"], note in run["notes"]) == (1, True)


def test_notes_about_the_replaced_dataset_are_those_of_the_run(
    dataset, photos, convert, picture, tmp_path
):
    write(photos, "bat/1.jpg", picture("bat"))
    rebuilt = convert(photos, settings=SETTINGS, output=tmp_path / "rebuilt")
    updated = convert(photos, "--update", settings=SETTINGS, output=dataset.output)
    assert contents(updated) == contents(rebuilt)
    renumbered, reused = updated.marker["run"]["notes"]
    assert renumbered.startswith(
        "2 classes have other ids than in the dataset that is replaced (cat 0 -> 1, dog 1 -> 2)"
    )
    assert reused == "the images of 20 of 21 records were taken from earlier datasets"
    assert "notes" not in rebuilt.marker["run"]


def test_an_update_leaves_out_what_exclude_names(dataset, photos, convert, decoded, tmp_path):
    removed = tmp_path / "removed.txt"
    removed.write_text(
        f"key:cat/1.jpg\nsha256:{hashlib.sha256((photos / 'dog/2.png').read_bytes()).hexdigest()}\n"
    )
    settings = SETTINGS | {"exclude": str(removed)}
    rebuilt = convert(photos, settings=settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(photos, "--update", settings=settings, output=dataset.output)
    assert contents(updated) == contents(rebuilt)
    assert (updated.marker["ledger"]["left_out"], decoded) == ({"excluded": 2}, [])
    removed.write_text("key:cat/4.jpg\n")
    rebuilt = convert(photos, settings=settings, output=tmp_path / "other")
    decoded.clear()
    updated = convert(photos, "--update", settings=settings, output=dataset.output)
    assert contents(updated) == contents(rebuilt)
    assert len(decoded) == 2  # those that are back


NAMES = st.sampled_from(
    [
        f"{label}/{number}.{kind}"
        for label in ("cat", "dog")
        for number in range(4)
        for kind in ("jpg", "png")
    ]
)
CHANGES = st.dictionaries(NAMES, st.sampled_from(["remove", "write", "touch"]), max_size=6)


def write_pictures(folder, picture):
    for number in range(4):
        write(folder, f"cat/{number}.jpg", picture(("cat", number)))
        write(folder, f"dog/{number}.png", picture(("dog", number), kind="PNG"))


def make_edits(folder, edits, picture):
    for name, edit in edits.items():
        path = folder / name
        if edit == "write":
            write(
                folder,
                name,
                picture((name, "new"), kind="JPEG" if name.endswith("jpg") else "PNG"),
                TIME + 7,
            )
        elif edit == "remove":
            path.unlink(missing_ok=True)
        elif path.exists():
            os.utime(path, (TIME + 5, TIME + 5))


@settings(max_examples=settings().max_examples // 5)  # each takes three conversions
@given(CHANGES, st.integers(1, 4), st.sampled_from([0.5, 0.7]))
def test_drawn_edits_give_what_a_rebuild_gives(tmp_path_factory, request, edits, shards, share):
    tmp_path = tmp_path_factory.mktemp("drawn")
    convert, picture = (request.getfixturevalue(name) for name in ("convert", "picture"))
    folder = tmp_path / "input"
    write_pictures(folder, picture)
    first = convert(folder, settings=SETTINGS, output=tmp_path / "dataset")
    make_edits(folder, edits, picture)
    other = SETTINGS | {
        "shards.count": shards,
        "splits.fractions": {"train": share, "test": 1 - share},
    }
    rebuilt = convert(folder, settings=other, output=tmp_path / "rebuilt")
    updated = convert(folder, "--update", settings=other, output=tmp_path / "dataset")
    assert (first.code, updated.code) == (0, rebuilt.code)
    if rebuilt.code == 0 and updated.line["status"] == "published":
        assert contents(updated) == contents(rebuilt)


FIXED = SETTINGS | {"shards.count": 4, "shards.cuts": "fixed", "labels.classes": ["cat", "dog"]}


@contextmanager
def noted_shards():
    """The keys of each shard that is converted, and whether it kept the file of the previous
    dataset; all reports."""
    linked, reports = {}, {}
    link, finish = ShardWriter._keep_untouched, ShardWriter.finish

    def note_link(writer, shard, batch, split):
        keys = frozenset(ref.key for ref in batch.refs)
        linked[keys] = link(writer, shard, batch, split)
        return linked[keys]

    def note_report(writer, shard):
        report = finish(writer, shard)
        reports[report.place] = replace(report, images_reused=0), report.contents
        return report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ShardWriter, "_keep_untouched", note_link)
        patch.setattr(ShardWriter, "finish", note_report)
        yield linked, reports


def keys_of(done):
    """The keys of the rows of each sidecar."""
    sidecars = [path.read_bytes().splitlines() for path in (done.output / "sidecars").iterdir()]
    return {frozenset(json.loads(line)["key"] for line in lines) for lines in sidecars}


@settings(max_examples=settings().max_examples // 5)  # each takes three conversions
@given(CHANGES, st.sampled_from(["none", "gzip"]), st.booleans())
def test_drawn_edits_leave_the_files_of_untouched_shards(
    tmp_path_factory, request, edits, compression, has_versions
):
    tmp_path = tmp_path_factory.mktemp("drawn")
    convert, picture = (request.getfixturevalue(name) for name in ("convert", "picture"))
    folder, flags = tmp_path / "input", ["--versions"] * has_versions
    chosen = FIXED | {"compression": compression, "max_rejected": {"lost_classes": 1}}
    write_pictures(folder, picture)
    first = convert(folder, *flags, settings=chosen, output=tmp_path / "dataset")
    old = replace(first, output=first.output / first.line.get("version", ""))
    before = {path.name: path.stat().st_ino for path in old.shards()}.values()
    keys = keys_of(old)
    make_edits(folder, edits, picture)
    with noted_shards() as (_, reports):
        rebuilt = convert(folder, settings=chosen, output=tmp_path / "rebuilt")
    with noted_shards() as (linked, reports_of_update):
        updated = convert(folder, "--update", *flags, settings=chosen, output=tmp_path / "dataset")
    assert (first.code, updated.code) == (0, rebuilt.code), updated.stderr
    if rebuilt.code or updated.line["status"] != "published":
        return
    new = replace(updated, output=updated.output / updated.line.get("version", ""))
    assert contents(new) == contents(rebuilt)
    assert origins_of(new) == origins_of(rebuilt)
    assert reports_of_update == reports
    edited = {name for name, edit in edits.items() if edit != "remove"}
    assert linked == {own: own in keys and own.isdisjoint(edited) for own in keys_of(new)}
    kept = [path for path in new.shards() if path.stat().st_ino in before]
    assert sum(linked.values()) <= len(kept)


UNTOUCHED = {
    "functions": SAME["functions"],
    "rejected": {"max_rejected": {"share": 0.5}},
    "excluded": {"exclude": "removed.txt"},
    "look-alikes": {"images.near_duplicates": True, "images.moments": True},
    "metadata": {"images.metadata": "keep"},
    "a report": {"report": True},
}


@pytest.mark.parametrize("case", UNTOUCHED)
def test_the_report_of_an_untouched_shard_is_that_of_a_conversion(
    case, photos, convert, picture, tmp_path
):
    chosen = FIXED | UNTOUCHED[case]
    if case == "rejected":
        broken(photos, picture)
        for number in range(10, 16):
            write(photos, f"dog/{number}.png", b"not an image")
    if case == "excluded":
        chosen["exclude"] = str(tmp_path / "removed.txt")
        (tmp_path / "removed.txt").write_text("key:cat/1.jpg\n")
    if case == "metadata":
        for number in range(10):
            write(photos, f"cat/{number}.jpg", with_exif(picture(("cat", number)), number))
    first = convert(photos, settings=chosen, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    write(photos, "cat/3.jpg", picture("other", (30, 20)), TIME + 9)
    with noted_shards() as (_, reports):
        rebuilt = convert(photos, settings=chosen, output=tmp_path / "rebuilt")
    with noted_shards() as (linked, reports_of_update):
        updated = convert(photos, "--update", settings=chosen, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    assert origins_of(updated) == origins_of(rebuilt)
    assert reports_of_update == reports
    written = {keys for keys, is_linked in linked.items() if not is_linked}
    without_records = {
        keys for keys in linked if keys <= {f"dog/{number}.png" for number in range(10, 16)}
    }
    edited = {"cat/3.jpg", "cat/1.jpg"} if case == "excluded" else {"cat/3.jpg"}
    assert written - without_records == {keys for keys in linked if keys & edited}
    assert len(linked) > len(written)


def test_untouched_shards_of_annotated_images(convert, picture, tmp_path):
    folder, config = tmp_path / "coco", "--config=configs/coco.yaml"
    boxes = [
        {
            "id": n,
            "image_id": n // 2,
            "category_id": 1 + n % 2,
            "bbox": [1, 2, 9 + 20 * (n == 3), 8],
            "iscrowd": 0,
        }
        for n in range(20)
    ]
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 24, "height": 16} for n in range(12)]
    names = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    text = json.dumps({"images": images, "annotations": boxes, "categories": names})
    write(folder, "annotations/instances_train2017.json", text.encode())
    for n in range(12):
        write(folder, f"train/{n}.jpg", picture(n))
    chosen = {"name": "boxes", "report": False, "shards.count": 4, "shards.cuts": "fixed"}
    first = convert(folder, config, settings=chosen, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    write(folder, "train/5.jpg", picture("other"), TIME + 9)
    with noted_shards() as (_, reports):
        rebuilt = convert(folder, config, settings=chosen, output=tmp_path / "rebuilt")
    with noted_shards() as (linked, reports_of_update):
        updated = convert(folder, config, "--update", settings=chosen, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    assert reports_of_update == reports
    assert sorted(linked.values()) == [False, True, True, True]


DAMAGES = {
    "frame": lambda path: path.write_bytes(path.read_bytes()[:-1] + b"x"),
    "missing": lambda path: path.unlink(),
}


@pytest.mark.parametrize("damage", ["frame", "missing", "sidecar"])
def test_a_damaged_shard_is_written_again_though_none_of_its_images_has_changed(
    damage, photos, convert, picture, tmp_path
):
    done = convert(photos, settings=FIXED, output=tmp_path / "dataset")
    names = {
        path.name: (done.output / "sidecars" / f"{path.name}.jsonl")
        for path in done.shards("train")
    }
    name = next(
        name for name, sidecar in names.items() if b'"cat/3.jpg"' not in sidecar.read_bytes()
    )
    path = names[name] if damage == "sidecar" else done.output / name
    DAMAGES.get(damage, DAMAGES["frame"])(path)
    changed(photos, picture)
    rebuilt = convert(photos, settings=FIXED, output=tmp_path / "rebuilt")
    with noted_shards() as (linked, _):
        updated = convert(photos, "--update", settings=FIXED, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    lines = (updated.output / "sidecars" / f"{name}.jsonl").read_bytes().splitlines()
    keys = frozenset(json.loads(line)["key"] for line in lines)
    touched = {own for own in linked if own & {"cat/3.jpg", "dog/3.png"}}
    assert {own for own, is_linked in linked.items() if not is_linked} == {keys, *touched}
    note = f"{path} is missing or damaged: {AGAIN}"
    assert (note in updated.line["notes"]) == (damage != "frame")  # whose records are whole


def test_where_no_file_can_be_linked_shards_are_written(
    photos, convert, picture, monkeypatch, tmp_path
):
    convert(photos, settings=FIXED, output=tmp_path / "dataset")
    changed(photos, picture)
    rebuilt = convert(photos, settings=FIXED, output=tmp_path / "rebuilt")

    def refuse(*_):
        raise OSError(errno.EPERM, "this file system has no links")

    monkeypatch.setattr(os, "link", refuse)
    with noted_shards() as (linked, _):
        updated = convert(photos, "--update", settings=FIXED, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    assert not any(linked.values())


@pytest.mark.parametrize("reason", ["another output", "two datasets", "compression", "labels"])
def test_a_shard_is_linked_only_if_it_would_be_written_again_in_its_place(
    reason, photos, convert, picture, tmp_path
):
    other = convert(photos, settings=FIXED, output=tmp_path / "other")
    if reason != "another output":
        convert(photos, settings=FIXED, output=tmp_path / "dataset")
    chosen, flags = (
        dict(FIXED),
        {"another output": [f"--reuse={other.output}"]}.get(reason, ["--update"]),
    )
    if reason == "two datasets":
        flags.append(f"--reuse={other.output}")
    if reason == "compression":
        chosen["compression"] = "gzip"
    if reason == "labels":
        chosen["labels.offset"] = 3
    changed(photos, picture)
    rebuilt = convert(photos, settings=chosen, output=tmp_path / "rebuilt")
    with noted_shards() as (linked, _):
        updated = convert(photos, *flags, settings=chosen, output=tmp_path / "dataset")
    assert contents(updated) == contents(rebuilt)
    assert (updated.marker["run"]["images_reused"], any(linked.values())) == (18, False)


def test_stored_raw_pixels_are_taken_as_they_are(tmp_path, convert):
    for name, content in golden_inputs.idx().items():
        write(tmp_path / "mnist", name, content)
    raw = {"images.store": "raw"}
    convert(tmp_path / "mnist", "--config=configs/idx.yaml", settings=raw)
    changed = raw | {"labels.offset": 5, "name": "dataset"}
    updated = convert(tmp_path / "mnist", "--config=configs/idx.yaml", "--update", settings=changed)
    assert (updated.code, updated.marker["run"]["images_reused"]) == (
        0,
        updated.marker["ledger"]["written"],
    )
    rebuilt = convert(
        tmp_path / "mnist",
        "--config=configs/idx.yaml",
        settings=changed,
        output=tmp_path / "rebuilt",
    )
    assert contents(updated) == contents(rebuilt)
