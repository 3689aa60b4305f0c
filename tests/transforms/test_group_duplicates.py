import hashlib
import threading
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations, pairwise

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.testing.util import equal_to
from eager_beam import assert_that, new_pipeline
from hypothesis import given
from hypothesis import strategies as st
from make_settings import make_settings
from PIL import Image

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.rejection import Exclusions
from recordmill.schemas.settings.images import ImageSettings
from recordmill.transforms import group_duplicates
from recordmill.transforms.group_duplicates import (
    GroupDuplicates,
    HashedImages,
    find_long_chain,
    link_groups,
    link_looks,
)

TOGETHER, DROP = make_settings(duplicates="together"), make_settings(duplicates="drop")
NONE = Exclusions()
BY_LOOK = make_settings(images=ImageSettings(near_duplicates="together"))


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def refs(tmp_path):
    """Files by key, content and group."""

    def write(*files):
        made = []
        for key, content, group in files:
            (tmp_path / key).write_text(content, encoding="utf-8")
            made.append(ImageRef(key, str(tmp_path / key), len(content), group=group))
        return made

    return write


def run(refs, settings, expected):
    with new_pipeline() as root:
        batches = (
            root
            | beam.Create([ReferenceBatch.of([each]) for each in refs])
            | GroupDuplicates(settings)
        )
        assert_that(
            batches | beam.FlatMap(lambda batch: [*batch.refs, *batch.notices]), equal_to(expected)
        )


def test_nothing_is_touched_unless_the_settings_say_so(refs):
    listed = refs(("a", "x", ""), ("b", "x", ""))
    run(listed, make_settings(), listed)


@pytest.mark.runner
def test_together_gives_equal_files_one_group_of_their_own(refs):
    a, b, c = refs(("a", "x", ""), ("b", "y", ""), ("c", "x", ""))
    one, other = (f"sha256:{digest(content)}" for content in "xy")
    run(
        [a, b, c], TOGETHER, [replace(a, group=one), replace(b, group=other), replace(c, group=one)]
    )


def test_together_joins_groups_that_share_a_file(refs):
    a, b, c, d, e = refs(
        ("a", "x", "p1"), ("b", "x", "p2"), ("c", "y", "p2"), ("d", "y", "p3"), ("e", "z", "p4")
    )
    joined = [replace(ref, group="group:p1") for ref in (a, b, c, d)]
    run([a, b, c, d, e], TOGETHER, [*joined, replace(e, group="group:p4")])


def test_no_thread_that_read_images_outlives_the_step(refs):
    (a,) = refs(("a", "x", ""))
    run([a], TOGETHER, [replace(a, group=f"sha256:{digest('x')}")])
    assert not [
        each.name for each in threading.enumerate() if each.name.startswith("recordmill-digest")
    ]


def test_drop_keeps_the_first_by_key(refs):
    c, a, b = refs(("c", "x", ""), ("a", "x", ""), ("b", "y", ""))
    left_out = c.notice("left_out", "duplicate", "it has the same bytes as a")
    run([c, a, b], DROP, [a, b, left_out])


@pytest.mark.parametrize(
    ("labels", "warning"),
    [
        (("cat", ""), ""),
        (("", "cat"), "it is without a class, and its copy b, which was dropped, of class 'cat'"),
    ],
)
def test_drop_warns_of_a_label_that_is_lost_but_not_of_one_that_is_missing(refs, labels, warning):
    a, b = (
        replace(ref, label=label)
        for ref, label in zip(refs(("a", "x", ""), ("b", "x", "")), labels, strict=True)
    )
    dropped = b.notice("left_out", "duplicate", "it has the same bytes as a")
    warnings = [a.notice("warning", "conflicting_labels", warning)] if warning else []
    run([b, a], DROP, [a, dropped, *warnings])


def test_drop_warns_of_an_image_in_two_classes(refs):
    a, b, c = refs(("a", "x", ""), ("b", "x", ""), ("c", "x", ""))
    a, b, c = (replace(ref, label=label) for ref, label in ((a, "cat"), (b, "cat"), (c, "dog")))
    why = "it has the same bytes as a"
    dropped = [ref.notice("left_out", "duplicate", why) for ref in (b, c)]
    detail = "it is of class 'cat', and its copy c, which was dropped, of class 'dog'"
    run([c, a, b], DROP, [a, *dropped, a.notice("warning", "conflicting_labels", detail)])


@pytest.mark.parametrize("settings", [TOGETHER, DROP])
def test_what_has_a_status_or_cannot_be_read_stays_as_it_is(refs, settings):
    (a,) = refs(("a", "x", ""))
    others = [
        replace(a, key=f"{n}").notice(status, "why")
        for n, status in enumerate(("ignored", "rejected", "warning") * 2)
    ]
    gone = [replace(a, key=key, uri="/nowhere") for key in ("gone", "gone too")]
    kept = replace(a, group=f"sha256:{digest('x')}") if settings is TOGETHER else a
    run([a, *others, *gone], settings, [kept, *others, *gone])


def test_a_digest_that_the_source_states_saves_the_reading():
    ref = ImageRef("a", "/nowhere", 5, sha256="AB" * 32)
    assert GroupDuplicates(TOGETHER).name_content(ref) == f"sha256:{'ab' * 32}"
    assert GroupDuplicates(TOGETHER).name_content(replace(ref, sha256="")) is None
    assert GroupDuplicates(BY_LOOK).name_content(ref, nullcontext()) is None


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3), max_size=8),
    st.randoms(),
)
def test_linked_groups_are_the_connected_ones(linked, random):
    joined = link_groups(linked)
    reached = {group: {group} for groups in linked for group in groups}
    for _ in range(8):
        for groups in linked:
            together = set().union(*(reached[group] for group in groups))
            for group in together:
                reached[group] = reached[group] | together
    assert joined == {group: min(others) for group, others in reached.items()}
    random.shuffle(linked)
    assert link_groups(linked) == joined


@pytest.fixture
def shown(tmp_path):
    """References to files of these pictures; by name, the bits of a difference hash."""

    def write(group="", **pictures):
        made = []
        for key, bits in pictures.items():
            rows = [
                [100 * (bits >> at & 1) for at in range(8 * row, 8 * row + 8)] for row in range(8)
            ]
            cells = np.array(
                [np.cumsum([0, *(2 * value - 99 for value in row)]) // 8 + 128 for row in rows],
                np.uint8,
            )
            Image.fromarray(np.kron(cells, np.ones((4, 4), np.uint8))).save(
                tmp_path / key, "PNG", comment=key
            )
            made.append(
                ImageRef(key, str(tmp_path / key), (tmp_path / key).stat().st_size, group=group)
            )
        return made

    return write


def hash_of(ref):
    return int(GroupDuplicates(BY_LOOK).name_content(ref, nullcontext()).removeprefix("dhash:"))


PATTERN = 0x0F0F_1234_5678_F0F0


@pytest.mark.runner
def test_look_alikes_share_a_group_with_all_that_look_like_them(shown):
    a, b, c, d = shown(a=PATTERN, b=PATTERN ^ 0b11111, c=PATTERN ^ 0b1111100000, d=~PATTERN)
    hashes = [hash_of(ref) for ref in (a, b, c, d)]
    distances = [(hashes[0] ^ each).bit_count() for each in hashes]
    assert distances == [0, 5, 5, 64]  # b and c, ten bits apart, are joined by a
    one, other = f"dhash:{min(map(str, hashes[:3]))}", f"dhash:{hashes[3]}"
    run(
        [a, b, c, d],
        BY_LOOK,
        [*(replace(ref, group=one) for ref in (a, b, c)), replace(d, group=other)],
    )


def test_groups_and_equal_bytes_join_look_alikes(shown, refs):
    (a,), (b,) = shown("p1", a=PATTERN), shown("p2", b=PATTERN ^ 0b111)
    (c,) = shown("p2", c=~PATTERN)
    d, e, f = refs(("d", "no picture", ""), ("e", "no picture", "p3"), ("f", "another", ""))
    joined = [replace(ref, group="group:p1") for ref in (a, b, c)]
    same = [replace(ref, group="group:p3") for ref in (d, e)]
    run(
        [a, b, c, d, e, f],
        BY_LOOK,
        [*joined, *same, replace(f, group=f"sha256:{digest('another')}")],
    )


def test_blank_pages_look_like_nothing_but_equal_ones_stay_together(tmp_path):
    made = []
    for key, gray in (("a", 10), ("b", 200), ("c", 10)):
        Image.new("L", (30, 30), gray).save(tmp_path / key, "PNG")
        made.append(ImageRef(key, str(tmp_path / key), (tmp_path / key).stat().st_size))
    groups = [
        f"sha256:{hashlib.sha256((tmp_path / key).read_bytes()).hexdigest()}" for key in "abc"
    ]
    assert (groups[0] == groups[2], len(set(groups))) == (True, 2)
    run(made, BY_LOOK, [replace(ref, group=group) for ref, group in zip(made, groups, strict=True)])


def test_dropped_copies_come_before_look_alikes(shown):
    a, b, c = shown(a=PATTERN, b=PATTERN, c=PATTERN ^ 1)
    group = f"dhash:{min(str(hash_of(ref)) for ref in (a, c))}"
    kept = [replace(ref, group=group) for ref in (a, c)]
    left_out = b.notice("left_out", "duplicate", "it has the same bytes as a")
    run([a, b, c], replace(BY_LOOK, duplicates="drop"), [*kept, left_out])


def near_looks(count, seed=0):
    """Hashes around a few centers, among strangers."""
    random = np.random.default_rng(seed)
    centers = random.integers(0, 2**64, 12, np.uint64)
    flips = [sum(1 << bit for bit in {*random.integers(0, 64, 4).tolist()}) for _ in range(36)]
    copies = [int(centers[at % 12]) ^ bits for at, bits in enumerate(flips)]
    strangers = random.integers(0, 2**64, count, np.uint64).tolist()
    return [
        HashedImages(each, f"dhash:{each}", 1, [f"{each}"])
        for each in {*centers.tolist(), *copies, *strangers}
    ]


def by_band(looks):
    bands = {}
    for look in looks:
        for number, (first, end) in enumerate(pairwise((0, 11, 22, 33, 44, 54, 64))):
            bands.setdefault((number, look.hash >> first & 2 ** (end - first) - 1), []).append(look)
    return bands


def test_links_join_what_is_within_five_bits_and_no_more():
    looks = near_looks(300)
    links = [link for band, those in by_band(looks).items() for link in link_looks(band, those)]
    near = [
        (a, b)
        for a, b in combinations([look.hash for look in looks], 2)
        if (a ^ b).bit_count() <= 5
    ]
    assert len(near) > 30
    assert link_groups([(one.hash, other.hash) for one, other in links]) == link_groups(near)
    assert len(links) <= len(near)


def test_a_band_with_too_many_to_compare_is_one_chain(monkeypatch):
    monkeypatch.setattr(group_duplicates, "MOST_COMPARISONS", 100)
    looks = [
        HashedImages(number << 11, f"dhash:{number}", 1, [f"{number:04}"]) for number in range(600)
    ]
    links = list(link_looks((0, 0), looks))
    assert len(links) == 599
    (problem,) = find_long_chain(links, 10_000).values()
    assert "would put 600 of 10,000 images into one split" in problem


def test_images_of_one_look_link_it_to_itself_unless_they_are_a_group():
    alone, many = (
        HashedImages(2**10 - 1, "dhash:1023", 1, ["a"]),
        HashedImages(2**40 - 2**20, "dhash:1099510579200", 3, ["b"]),
    )
    grouped = HashedImages(2**60 - 2**45, "group:p1", 9, ["c"])
    looks = [alone, many, grouped]
    links = {band: list(link_looks(band, those)) for band, those in by_band(looks).items()}
    assert {band: found for band, found in links.items() if found} == {
        (0, many.hash & 2047): [(many, many)]
    }


def test_a_chain_of_more_than_a_hundredth_of_the_images_is_refused():
    chain = [
        HashedImages(number, f"dhash:{number}", 1, [f"{number:02}.jpg"]) for number in range(11)
    ]
    links = [*pairwise(chain), (HashedImages(99, "dhash:99", 10, ["x"]),) * 2]
    assert find_long_chain(links, 1_100) == {}
    assert find_long_chain(links[:9], 20) == {}  # ten images are never too many
    assert find_long_chain([], 0) == {}
    assert find_long_chain(links, 1_099) == {
        "00.jpg": "images.near_duplicates: together would put 11 of 1,099 images into one split, "
        "because each looks "
        "like the next (00.jpg, 01.jpg, 02.jpg, ...), and more than 1% is too many: set it to true "
        "and look at "
        "duplicates.jsonl; if they belong together, name such groups with splits.group"
    }
    assert find_long_chain(links[::-1], 1_099) == find_long_chain(links, 1_099)
