import os
from itertools import pairwise
from threading import Barrier, Lock
from types import SimpleNamespace

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing import util
from hypothesis import given
from hypothesis import strategies as st

from recordmill import storage
from recordmill.schemas.settings.source import Input, ListingSettings
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.list_images import (
    MOST_PARTS,
    ListReferences,
    Part,
    Tally,
    conclude,
    cut_input,
    list_images,
    list_part,
    merge_listings,
    normalize_cuts,
)

SOURCE, SETTINGS = (
    ClassFolders(),
    ListingSettings(ignore=("skipped/", "*.txt"), include=("*.jpg", "*.png")),
)
BUCKET = "gs://bucket/data"


class StubStore:
    """A store in memory; `most` says how many listings were under way at once."""

    starts_anywhere = True

    def __init__(self, names, parties=1):
        self.files = sorted(f"{BUCKET}/{name}" for name in names)
        self.most = 0
        self._together, self._under_way, self._lock = Barrier(parties), 0, Lock()

    def _read_first_page(self):
        with self._lock:
            self._under_way += 1
            self.most = max(self.most, self._under_way)
        self._together.wait(timeout=60)
        with self._lock:
            self._under_way -= 1

    def list_below(self, prefix, start=""):
        found = [
            name for name in self.files if name.startswith(prefix) and name >= prefix + start[:-1]
        ]
        if start or self._together.parties == 1:  # nothing comes before the first folder
            self._read_first_page()
        for name in found:
            yield SimpleNamespace(path=name, size_in_bytes=5, last_updated_in_seconds=1.5)

    def read(self, name, offset=0, length=-1):
        return b"no image"

    def names(self, prefix):
        for name in self.files:
            if name.startswith(prefix):
                first, slash, _ = name[len(prefix) :].partition("/")
                yield first + slash

    def describe(self, uri):
        return None


@pytest.fixture
def store(monkeypatch):
    """`store(names)`: the bucket holds these."""

    def use(names, parties=1):
        made = StubStore(names, parties)
        monkeypatch.setattr(storage, "_find_store", lambda _: made)
        return made

    return use


def union(parts, source=SOURCE, settings=SETTINGS):
    """What the parts hold, each with its own tally, in a fixed order."""
    tallies, found = [Tally() for _ in parts], []
    for part, tally in zip(parts, tallies, strict=True):
        found += list_part(part, source, settings, tally)
    return ordered([*found, *conclude(parts[0].input, source, settings, tallies)])


def ordered(refs):
    return sorted(refs, key=lambda ref: (ref.key, repr(ref)))


FOLDERS = st.lists(
    st.sampled_from(["a", "b", "a.b", "a-", "é", ".git", "skipped", "train", "test"]), max_size=3
)
NAMES = st.sets(
    st.builds(
        lambda folders, name: "/".join([*folders, name]),
        FOLDERS,
        st.sampled_from(["1.jpg", "2.png", "x.txt"]),
    ),
    max_size=14,
)


@given(NAMES, st.lists(st.text("ab/.-gité1", max_size=6), max_size=6))
def test_ranges_of_names_hold_what_the_whole_holds_whatever_the_cuts(names, cuts):
    cuts = normalize_cuts([*cuts, *(f"{os.path.dirname(name)}/" for name in names)], SETTINGS)
    whole = Input(BUCKET, "pets")
    bounds = ["", *cuts, ""]
    parts = [Part(whole, *bounds[at : at + 2]) for at in range(len(bounds) - 1)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "_find_store", lambda _: StubStore(names))
        assert union(parts) == union([Part(whole)]) == ordered(list_images(whole, SOURCE, SETTINGS))


def test_an_object_with_the_name_of_a_folder_is_listed_once(store):
    """Tools leave such objects where they make a folder. What is named like the input is the
    input."""
    store(["a/1.jpg", "b/1.jpg"]).describe = lambda uri: SimpleNamespace(
        size_in_bytes=0, last_updated_in_seconds=1.5
    )
    whole = Input(BUCKET)
    assert union([Part(whole, end="b/"), Part(whole, start="b/")]) == ordered(
        list_images(whole, SOURCE, SETTINGS)
    )


@given(NAMES, st.lists(st.text("ab/.-gité1", max_size=6), max_size=6))
def test_a_folder_on_disk_is_cut_in_the_same_way(tmp_path_factory, names, cuts):
    root = tmp_path_factory.mktemp("input")
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    whole = Input(str(root))
    cuts = normalize_cuts([*cuts, *(f"{os.path.dirname(name)}/" for name in names)], SETTINGS)
    parts = [Part(whole, *bounds) for bounds in pairwise(["", *cuts, ""])]
    assert (
        union(parts)
        == union(cut_input(whole, SETTINGS))
        == ordered(list_images(whole, SOURCE, SETTINGS))
    )


def test_links_and_empty_folders_are_found_once(tmp_path):
    for name in "abcdefgh":
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "1.jpg").write_bytes(b"x")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "a" / "again").symlink_to(tmp_path / "a")
    (tmp_path / "b" / "other").symlink_to(tmp_path / "c")
    (tmp_path / "dead").symlink_to(tmp_path / "nowhere")
    whole = Input(str(tmp_path), "pets")
    parts = cut_input(whole, SETTINGS)
    assert [part.start for part in parts][:4] == ["", "a/", "b/", "c/"]
    assert union(parts) == ordered(list_images(whole, SOURCE, SETTINGS))
    assert [ref.key for ref in union(parts) if ref.reason == "link_loop"] == [
        "pets/a/again",
        "pets/loop",
    ]


def test_a_skewed_tree_is_cut_where_it_has_folders(store):
    store([f"data/train/{name}/1.jpg" for name in "abcdefghij"] + ["readme.md", "data/1.jpg"])
    starts = [part.start for part in cut_input(Input(BUCKET), SETTINGS)]
    assert starts == ["", "data/", "data/train/", *(f"data/train/{name}/" for name in "abcdefghij")]


def test_many_folders_are_cut_to_the_last(store):
    """A page has a thousand names, and ImageNet has 21,841 classes."""
    store([f"{number:05d}/1.jpg" for number in range(21_841)])
    starts = [part.start for part in cut_input(Input(BUCKET), SETTINGS)][1:]
    assert starts == [f"{number:05d}/" for number in range(0, 21_841, 347)]


def test_of_many_files_one_page_is_read(store):
    bucket, seen = store([*(f"{number:05d}.jpg" for number in range(5_000)), "a/1.jpg"]), []
    bucket.names = lambda prefix: (
        seen.append(name) or name for name in StubStore.names(bucket, prefix)
    )
    assert cut_input(Input(BUCKET), SETTINGS) == [Part(Input(BUCKET))]
    assert len(seen) == 1_000


def test_there_are_never_more_parts_than_that(store, tmp_path):
    store([f"{number:04d}/1.jpg" for number in range(900)])
    assert len(cut_input(Input(BUCKET), SETTINGS)) <= MOST_PARTS
    for number in range(100):
        (tmp_path / f"{number:04d}").mkdir()
    assert len(cut_input(Input(str(tmp_path)), SETTINGS)) == 51


@pytest.mark.parametrize("names", [[], ["cat/"], [".git/1"], ["1.jpg"]])
def test_an_input_that_cannot_be_cut_is_one_part(store, names):
    store(names)
    parts = cut_input(Input(BUCKET), SETTINGS)
    assert union(parts) == union([Part(Input(BUCKET))])
    assert [ref.reason for ref in union(parts) if ref.status == "fatal"] == (
        [] if names else ["missing_input"]
    )


def test_first_folders_of_all_parts_decide_about_splits(store):
    store(["train/a/1.jpg", "test/a/1.jpg"])
    (fatal,) = [ref for ref in union(cut_input(Input(BUCKET), SETTINGS)) if ref.status == "fatal"]
    assert (fatal.reason, "test, train" in fatal.detail) == ("split_words", True)


def test_eight_listings_are_under_way_at_once(store):
    names = [f"{folder}/{number}.jpg" for folder in "abcdefgh" for number in range(6)]
    bucket = store(names, parties=8)  # no listing has its first page unless eight wait for theirs
    refs = list(list_images(Input(BUCKET), SOURCE, SETTINGS))
    assert (len(refs), bucket.most) == (48, 8)
    store(names)
    assert ordered(refs) == union(
        [Part(Input(BUCKET), *bounds) for bounds in pairwise(["", *"bcdefgh", ""])]
    )


def test_an_error_of_a_listing_is_raised_and_ends_the_others():
    def fail():
        yield 1
        raise PermissionError("no")

    def endless():
        while True:
            yield 2

    with pytest.raises(PermissionError):
        for _ in merge_listings([endless(), fail()]):
            pass


@pytest.mark.runner
@pytest.mark.parametrize("name", ["", "pets"])
def test_beam_lists_parts_as_the_whole_is_listed(tmp_path, name):
    for folder in ("train/a", "train/b", "test/a", "test/.hidden"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "1.jpg").write_bytes(b"x")
    whole = Input(str(tmp_path), name)
    expected = [repr(ref) for ref in list_images(whole, SOURCE, SETTINGS)]
    assert any("split_words" in each for each in expected)
    with beam.Pipeline(runner=FnApiRunner()) as root:
        batches = root | beam.Create([whole]) | ListReferences(SOURCE, SETTINGS, spread=True)
        refs = batches | beam.FlatMap(
            lambda batch: [repr(each) for each in (*batch.refs, *batch.notices)]
        )
        util.assert_that(refs, util.equal_to(expected))
