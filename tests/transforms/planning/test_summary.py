from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.schemas.digests import digest_of, order_of, version_digest_of
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.transforms.planning import summary
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary

SPLITTER = ImageSplitter(
    0, SplitSettings(fractions={"train": 0.5, "test": 0.3}), SplitCutoffs(cutoff=3 << 62)
)
REFS = st.builds(
    ImageRef,
    key=st.integers(0, 999).map("cat/{}.jpg".format),
    uri=st.sampled_from("xy"),
    size=st.integers(0, 1000),
    length=st.sampled_from([-1, 7]),
    label=st.sampled_from(["cat", "dog"]),
    group=st.sampled_from(["", "g1", "g2"]),
    split=st.sampled_from(["", "", "given"]),
)
NOTICES = st.builds(
    ImageRef.notice,
    REFS,
    st.sampled_from(["ignored", "rejected", "warning", "fatal"]),
    st.sampled_from(["hidden", "ignored"]),
    st.text("xyz", max_size=2),
)
COLLECTIONS = st.lists(REFS | NOTICES, max_size=30, unique_by=lambda ref: (ref.key, ref.uri))


@pytest.fixture(scope="module", autouse=True)
def small_bounds():
    """So that a few references fill the sample, the messages and the histogram."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "SAMPLE_SIZE", 3)
        patch.setattr(summary, "MESSAGES_KEPT", 2)
        patch.setattr(summary, "MAX_BINS", 4)
        yield


def summarize(refs):
    total = Summary()
    for ref in refs:
        total.add(ReferenceBatch.of([ref]), SPLITTER)
    return total


@given(COLLECTIONS, st.randoms(use_true_random=False))
def test_any_order_and_any_partition_give_the_same_summary(refs, random):
    shuffled = random.sample(refs, len(refs))
    at = sorted(random.randrange(len(refs) + 1) for _ in range(2))
    parts = [shuffled[: at[0]], shuffled[at[0] : at[1]], shuffled[at[1] :]]
    merged = Summary()
    for part in random.sample(parts, 3):
        merged.merge(summarize(part))
    assert summarize(shuffled) == summarize(refs) == merged


@given(COLLECTIONS)
def test_everything_listed_is_counted_once(refs):
    total = summarize(refs)
    listed = [ref for ref in refs if ref.status not in ("warning", "fatal")]
    counted = (
        total.references + total.rejected.total() + total.ignored.total() + total.left_out.total()
    )
    assert total.listed == len(listed) == counted


def test_a_warning_of_an_input_itself_has_its_name_or_none():
    warning = ImageRef("", "/x").notice("warning", "empty_folder", "the input is empty")
    assert summarize([warning, warning.replace(key="old/")]).warnings == [
        "old: the input is empty",
        "the input is empty",
    ]


def test_exact_contents():
    refs = [
        ImageRef("cat/1", "/x/cat/1", 100, label="cat", split="train"),
        ImageRef("cat/2", "/x/cat/2", 100, length=40, label="cat", split="train"),
        ImageRef("dog/1", "/x/dog/1", 7, label="dog", split="test"),
        ImageRef("a", "/x/a").notice("rejected", "no_class", "no"),
        ImageRef(".b", "/x/.b").notice("ignored", "hidden"),
        ImageRef("c", "/x/c").notice("warning", "empty_folder", "the folder is empty"),
        ImageRef("d", "/x/d").notice("fatal", "link_loop", "it loops"),
    ]
    total = Summary()
    splitter = ImageSplitter(0, SplitSettings(), SplitCutoffs())
    for ref in refs:
        total.add(ReferenceBatch.of([ref]), splitter)
    assert total.listed == 5
    assert total.rejected == {"no_class": 1}
    assert total.ignored == {"hidden": 1}
    assert total.left_out == {}
    assert total.classes == Counter(cat=2, dog=1)
    assert total.references == 3
    assert {name: (split.bytes, split.references) for name, split in total.splits.items()} == {
        "train": (140, 2),
        "test": (7, 1),
    }
    assert total.splits["test"].histogram.bins == {order_of(0, "dog/1"): 7}
    assert total.warnings == ["c: the folder is empty"]
    assert total.problems == ["/x/d: it loops"]
    assert total.problems_found == 1
    assert total.labels == {"cat", "dog"}
    counted = refs[:4]
    assert total.digest == total.planned_digest == sum(map(digest_of, counted)) % 2**256
    assert total.versions == sum(map(version_digest_of, counted)) % 2**256
    assert sorted(ref.key for _, _, ref in total.sample) == ["cat/1", "cat/2", "dog/1"]
    assert total.nearest == {}  # every split was given


def test_what_is_left_out_is_in_the_listing_and_not_in_the_plan():
    refs = [ImageRef(f"{n}", f"/x/{n}", label=f"class {n}") for n in range(60)]
    refs.append(ImageRef("r", "/x/r").notice("rejected", "no_class"))
    total = summarize(refs)
    places = {ref.key: SPLITTER.place(ref) for ref in refs}
    kept = [ref for ref in refs if ref.status or not places[ref.key][2]]
    assert {reason for _, _, reason in places.values()} == {"", "limit", "fraction"}
    assert total.labels == {f"class {n}" for n in range(60)}
    assert set(total.classes) == {ref.label for ref in kept if not ref.status}
    assert total.digest == sum(map(digest_of, refs)) % 2**256
    assert total.planned_digest == sum(map(digest_of, kept)) % 2**256
    assert total.versions == sum(map(version_digest_of, refs)) % 2**256


def test_only_images_that_are_kept_can_be_moved_to_another_split():
    refs = [ImageRef(f"{n}", f"/x/{n}") for n in range(60)]
    near = {number for kept in summarize(refs).nearest.values() for _, number in kept}
    placed = [SPLITTER.place(ref) for ref in refs]
    assert near
    assert near <= {hashes.split for hashes, split, _ in placed if split}


def test_all_problems_are_counted_and_the_first_are_kept():
    fatal = [ImageRef(f"{n}", f"/x/{n}").notice("fatal", "link_loop", "it loops") for n in range(5)]
    merged = summarize(fatal[:2])
    merged.merge(summarize(fatal[2:]))
    assert merged == summarize(fatal)
    assert (merged.problems, merged.problems_found) == (["/x/0: it loops", "/x/1: it loops"], 5)


CHANGES = {
    "key": "z",
    "size": 9,
    "offset": 9,
    "length": 9,
    "label": "z",
    "group": "z",
    "split": "z",
    "features": "{}",
}


@pytest.mark.parametrize("field", CHANGES)
def test_the_digest_changes_with_what_decides_the_bytes(field):
    ref = {"key": "a", "uri": "/x/a", "size": 3}
    assert (
        summarize([ImageRef(**ref)]).digest
        != summarize([ImageRef(**{**ref, field: CHANGES[field]})]).digest
    )


@pytest.mark.parametrize("field", ["uri", "version"])
def test_the_digest_does_not_change_with_place_or_time(field):
    ref = {"key": "a", "uri": "/x/a", "size": 3}
    one, other = summarize([ImageRef(**ref)]), summarize([ImageRef(**{**ref, field: "other"})])
    assert one.digest == other.digest
    assert (one.versions == other.versions) == (field == "uri")


def test_the_digest_tells_rejected_from_accepted_and_ignores_the_ignored():
    accepted = ImageRef("a", "a")
    rejected = ImageRef("a", "a").notice("rejected", "bad")
    ignored = ImageRef("b", "b").notice("ignored", "hidden")
    assert summarize([accepted]).digest != summarize([rejected]).digest
    assert summarize([accepted]).digest == summarize([accepted, ignored]).digest


def test_two_references_do_not_cancel_out():
    assert summarize([ImageRef("a", "a"), ImageRef("a", "a")]).digest not in (
        0,
        summarize([ImageRef("a", "a")]).digest,
    )


def test_the_sample_is_the_images_with_the_lowest_order():
    refs = [ImageRef(f"{index}", "") for index in range(50)]
    splitter = ImageSplitter(0, SplitSettings(), SplitCutoffs())
    total = Summary()
    for ref in refs:
        total.add(ReferenceBatch.of([ref]), splitter)
    lowest = sorted(refs, key=lambda ref: order_of(0, ref.key))[: summary.SAMPLE_SIZE]
    assert [ref for _, _, ref in total.sample] == lowest


def test_two_references_with_one_key_can_both_be_in_the_sample():
    # A user's mistake that is reported later, as two images with one key, must not fail here.
    same = [
        ImageRef("a", "x/a", features="1"),
        ImageRef("a", "x/a", features="2"),
        ImageRef("a", "y/a"),
    ]
    splitter = ImageSplitter(0, SplitSettings(), SplitCutoffs())
    total = Summary()
    for ref in reversed(same):
        total.add(ReferenceBatch.of([ref]), splitter)
    assert [ref for _, _, ref in total.sample] == same


def announced(classes, uri="f"):
    return ClassNames.of(ImageRef("f", uri), classes)


def test_announced_classes_are_counted_nowhere_and_numbered_as_the_source_does():
    total = Summary()
    for ref in (
        announced({"cat": 3, "dog": 5}),
        announced({"dog": 5, "emu": 1}),
        announced(["fox", "cat"]),
    ):
        total.add(ReferenceBatch.of([ref]), SPLITTER)
    assert (total.listed, total.digest, total.problems) == (0, 0, [])
    assert total.numbers == {"cat": 3, "dog": 5, "emu": 1}
    assert total.labels == {"cat", "dog", "emu", "fox"}
    other = Summary(skeleton={("ear", "nose")})
    other.add(ReferenceBatch.of([ClassNames("f", (), skeleton=(("ear", "tail"),))]), SPLITTER)
    total.merge(other)
    assert total.skeleton == {("ear", "nose"), ("ear", "tail")}


@pytest.mark.parametrize("other", [{"cat": 4}, {"dog": 3}])
def test_two_numbers_of_a_class_or_two_classes_of_a_number_fail_the_run(other):
    together, parts = Summary(), [Summary(), Summary()]
    for part, classes in zip(parts, ({"cat": 3}, other), strict=True):
        part.add(ReferenceBatch.of([announced(classes)]), SPLITTER)
        together.add(ReferenceBatch.of([announced(classes, "b.json")]), SPLITTER)
    (name, number) = next(iter(other.items()))
    what = f"class '{name}' has number {number}, which contradicts what another file says of it"
    said = f"{what}: give each class one number in all files"
    assert (together.problems_found, together.problems) == (1, [f"b.json: {said}"])
    parts[0].merge(parts[1])
    assert (parts[0].problems_found, parts[0].problems) == (1, [said])


def test_rows_of_one_key_in_one_table_are_distinguished():
    """Which fails the run later, with a sentence; neither compares references, which have no
    order."""
    rows = [
        ImageRef("a", "t.csv", label="cat", split="given", features=f'{{"n":{number}}}')
        for number in range(3)
    ]
    assert summarize(rows).sample == summarize(reversed(rows)).sample
    assert len(summarize([*rows, *rows]).sample) == 3


def test_the_first_rejections_keep_their_details():
    refs = [ImageRef(key, key).notice("rejected", "bad_row", f"{key} is bad") for key in "bca"]
    one, other = summarize(refs[:2]), summarize(refs[2:])
    one.merge(other)
    assert one.rejected_examples == summarize(refs).rejected_examples == {"bad_row": "a (a is bad)"}
