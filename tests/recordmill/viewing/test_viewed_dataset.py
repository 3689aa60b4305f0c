import gzip
import json
import shutil
import zlib
from pathlib import Path

import pytest

import recordmill
from recordmill.schemas.errors import LoadError
from recordmill.viewing.viewed_dataset import open_viewed

CUT = Path(__file__).parents[2] / "earlier" / "cut"


def read(path):
    viewed = open_viewed(str(path))
    viewed.read_table()
    assert viewed.progress.fault is None
    assert viewed.progress.is_complete
    return viewed


def facts_of(viewed):
    return [viewed.table.facts(number) for number in range(len(viewed.table))]


def test_values_come_from_the_sidecars(classes, photos, sha256_of):
    viewed = read(classes)
    found = {each.key: each for each in facts_of(viewed)}
    assert sorted(found) == [f"{label}/{n:02}.jpg" for label in ("cat", "dog") for n in range(5)]
    odd = found["dog/00.jpg"]
    assert (odd.classes, odd.objects, odd.width, odd.height) == (["dog"], -1, 24, 16)
    assert (odd.changes, odd.sha256) == (["reencoded"], sha256_of(photos / "dog/00.jpg"))
    assert viewed.split_places == {"train": (0, 4), "test": (4, 10)}


def test_records_are_those_that_open_reads(classes):
    viewed = read(classes)
    opened = recordmill.open(classes, form="raw")
    expected = [
        opened[split][place] for split in ("train", "test") for place in range(len(opened[split]))
    ]
    assert [viewed.records.read(number) for number in range(10)] == expected
    place = viewed.locate(6)
    assert (place.shard.split, place.number) == ("test", 2)
    assert (
        viewed.show_python(place) == f"recordmill.open({str(classes)!r}, form='numpy')['test'][2]"
    )
    shown = eval(viewed.show_python(place), {"recordmill": recordmill})
    assert shown["image/filename"][0].decode() == viewed.table.facts(6).key.rpartition("/")[2]


def test_objects_and_dropped_objects_are_counted(boxes):
    found = {each.key: each for each in facts_of(read(boxes))}
    counts = {key: (each.objects, each.dropped, each.classes) for key, each in found.items()}
    assert counts == {
        "images/0.jpg": (0, 0, []),
        "images/1.jpg": (1, 0, ["ship"]),
        "images/2.jpg": (2, 0, ["<img onerror>", "ship"]),
        "images/3.jpg": (0, 1, []),
    }


def without_metadata(dataset, folder):
    folder.mkdir()
    for shard in dataset.glob("*.tfrecord"):
        shutil.copy(shard, folder / shard.name)
    return folder


def test_files_without_metadata_are_read_record_by_record(boxes, tmp_path):
    ours, theirs = read(boxes), read(without_metadata(boxes, tmp_path / "files"))
    assert theirs.total == 4
    for mine, other in zip(facts_of(ours), facts_of(theirs), strict=True):
        assert other.key == mine.key.rpartition("/")[2]
        assert (other.classes, other.objects) == (mine.classes, mine.objects)
        assert (other.width, other.height, other.offset) == (40, 20, mine.offset)
    assert [theirs.records.read(n) for n in range(4)] == [ours.records.read(n) for n in range(4)]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_packed_files_are_read_at_any_place(boxes, tmp_path, pack):
    folder = without_metadata(boxes, tmp_path / "packed")
    for shard in folder.iterdir():
        shard.write_bytes(pack(shard.read_bytes()))
    ours, theirs = read(boxes), read(folder)
    assert [theirs.records.read(n) for n in (3, 0, 2, 1)] == [
        ours.records.read(n) for n in (3, 0, 2, 1)
    ]
    assert theirs.show_python(theirs.locate(1)).startswith("next(itertools.islice(")
    theirs.close()


def test_damaged_records_are_skipped_and_counted(boxes, tmp_path):
    folder = without_metadata(boxes, tmp_path / "files")
    (shard,) = folder.iterdir()
    content = bytearray(shard.read_bytes())
    content[20] ^= 1
    shard.write_bytes(content)
    viewed = read(folder)
    assert (viewed.total, viewed.progress.damages) == (3, 1)


def test_the_unfinished_work_of_a_run_is_shown():
    viewed = read(CUT)
    assert (viewed.kind, viewed.total) == ("unfinished", 4)
    assert {each.split("/")[0] for each in (f.key for f in facts_of(viewed))} <= {"cat", "dog"}
    assert viewed.records.read(0)


def test_what_holds_nothing_is_refused(tmp_path):
    with pytest.raises(LoadError, match="does not exist or is empty"):
        open_viewed(str(tmp_path / "nothing"))


def test_a_damaged_sidecar_ends_reading_with_a_sentence(classes, tmp_path):
    shutil.copytree(classes, tmp_path / "pets")
    (sidecar, *_) = sorted((tmp_path / "pets/sidecars").glob("train-*.jsonl"))
    first = json.loads(sidecar.read_bytes().splitlines()[0])
    sidecar.write_text(json.dumps({**first, "sha256": "no digest"}) + "\n")
    viewed = open_viewed(str(tmp_path / "pets"))
    viewed.read_table()
    assert not viewed.progress.is_complete
    assert viewed.progress.fault.startswith("the values of images cannot be read: ")
