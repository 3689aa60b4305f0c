import hashlib
import json
from dataclasses import replace

import pytest
from sidecar_lines import rejected, written

from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.totals import AnnotationTotals, RowTotals
from recordmill.transforms.planning.key_hashes import hash_key
from recordmill.transforms.publishing import statistics
from recordmill.transforms.publishing.statistics import (
    Sidecar,
    gather_statistics,
    list_sidecars,
)


@pytest.fixture
def sidecar(tmp_path):
    """`sidecar(rows, split)`: a sidecar that holds these rows."""
    names = iter("abcdefgh")

    def write(rows, split="train"):
        path = tmp_path / f"{next(names)}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return Sidecar(split, str(path))

    return write


def test_sidecars_come_in_the_shards_order():
    blank = ShardReport("", 0, 0, RowTotals(), AnnotationTotals())
    reports = [replace(blank, split=split, index=index) for split, index in (("train", 10), ("test", 0), ("train", 9))]
    assert list_sidecars(reports, "/out/s") == [
        Sidecar("test", "/out/s/test-00000.jsonl"),
        Sidecar("train", "/out/s/train-00009.jsonl"),
        Sidecar("train", "/out/s/train-00010.jsonl"),
    ]


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_the_totals_are_exact(sidecar, monkeypatch, chunk):
    monkeypatch.setattr(statistics, "_CHUNK", chunk)
    rows = [
        written("a", width=8, height=6, size=100),
        rejected("x"),
        written("b", "dog", width=1, height=1, size=1, channels=1),
        written("c", None, width=4, height=12, size=2**20),
    ]
    train, test = sidecar(rows), sidecar([written("d", width=8, height=6), rejected("y", "truncated")], "test")
    found = gather_statistics([train, test], 7)
    assert len(found.sizes) >= 2
    assert found.channels == {1, 3}
    prefixes = [int(hashlib.sha256(key.encode()).hexdigest()[:16], 16) for key in "abcd"]
    assert found.contents.in_order().tolist() == prefixes
    orders = [hash_key(7, key).order for key in "abcd"]
    assert list(found.places.in_order()) == [number for order in orders for number in (0, 9, order)]
    assert found.hashes.tolist() == []
    assert found.rejected == {"empty": ["x"], "truncated": ["y"]}


def test_images_that_lost_exactness_are_counted_by_their_names(sidecar):
    changed = ["a.png", "b.PNG", "c/d.tiff", "e.bmp", "f.jpg", "png"]
    rows = [written(key, changes=["reencoded"]) for key in changed] + [written("same.png"), rejected("x.png")]
    found = gather_statistics([sidecar(rows)], 0)
    assert found.lossless == statistics.Reencoded(images=4, before=400, after=36)
    assert found.reencoded == statistics.Reencoded(images=6, before=600, after=54)


def test_hashes_are_in_the_order_of_the_digests(sidecar):
    rows = [written("a", difference_hash="00000000000000ff"), rejected("x"), written("b", difference_hash="f" * 16)]
    assert gather_statistics([sidecar(rows)], 0).hashes.tolist() == [255, 2**64 - 1]


def test_one_size_is_one_and_several_are_more(sidecar):
    assert gather_statistics([sidecar([written("a"), written("b")])], 0).sizes == {(8, 6)}
    gray = [written("a"), written("b", channels=1), written("c", width=9)]
    assert gather_statistics([sidecar(gray)], 0).sizes == {(8, 6), (9, 6)}


def test_some_rejected_keys_are_kept(sidecar):
    found = gather_statistics([sidecar([rejected(f"x{number}") for number in range(90)])], 0)
    assert found.rejected == {"empty": ["x0", "x1", "x2", "x3", "x4"]}


def test_rows_without_pictures_have_no_sizes(sidecar):
    rows = [{key: value for key, value in written("a").items() if key not in ("height", "width", "channels")}]
    found = gather_statistics([sidecar(rows)], 0)
    assert (found.sizes, len(found.contents)) == (set(), 1)
