from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.image_ref import ImageRef
from transforms import hash_histogram, summary
from transforms.key_hashes import hash_key
from transforms.splitting import ImageSplitter, Selection, SplitSettings
from transforms.summary import Summary

SPLITTER = ImageSplitter(0, SplitSettings(fractions={"train": 0.5, "test": 0.3}), Selection(take_below=3 << 62))
REFS = st.builds(
    ImageRef,
    key=st.integers(0, 999).map("cat/{}.jpg".format),
    uri=st.sampled_from("xy"),
    size=st.integers(0, 1000),
    length=st.sampled_from([-1, 7]),
    label=st.sampled_from(["cat", "dog"]),
    group=st.sampled_from(["", "g1", "g2"]),
    split=st.sampled_from(["", "", "given"]),
    status=st.sampled_from(["", "", "", "ignored", "rejected", "warning", "fatal"]),
    reason=st.sampled_from(["a", "b"]),
    detail=st.text("xyz", max_size=2),
)
COLLECTIONS = st.lists(REFS, max_size=30, unique_by=lambda ref: (ref.key, ref.uri))


@pytest.fixture(scope="module", autouse=True)
def small_bounds():
    """So that a few references fill the sample, the messages and the histogram."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary, "SAMPLE_SIZE", 3)
        patch.setattr(summary, "MESSAGES_KEPT", 2)
        patch.setattr(hash_histogram, "MAX_BINS", 4)
        yield


def summarize(refs):
    total = Summary()
    for ref in refs:
        total.add(ref, SPLITTER)
    return total


@given(COLLECTIONS, st.randoms(use_true_random=False))
def test_any_order_and_any_partition_give_the_same_summary(refs, random):
    shuffled = random.sample(refs, len(refs))
    at = sorted(random.randrange(len(refs) + 1) for _ in range(2))
    parts = [shuffled[: at[0]], shuffled[at[0] : at[1]], shuffled[at[1] :]]
    merged = Summary()
    for part in random.sample(parts, 3):
        merged.merge(summarize(part), SPLITTER.neighbours)
    assert summarize(shuffled) == summarize(refs) == merged


@given(COLLECTIONS)
def test_everything_listed_is_counted_once(refs):
    total = summarize(refs)
    listed = [ref for ref in refs if ref.status not in ("warning", "fatal")]
    counted = total.references + total.rejected.total() + total.ignored.total() + total.left_out.total()
    assert total.listed == len(listed) == counted


def test_exact_contents():
    refs = [
        ImageRef("cat/1", "/x/cat/1", 100, label="cat", split="train"),
        ImageRef("cat/2", "/x/cat/2", 100, length=40, label="cat", split="train"),
        ImageRef("dog/1", "/x/dog/1", 7, label="dog", split="test"),
        ImageRef("a", "/x/a", status="rejected", reason="no_class", detail="no"),
        ImageRef(".b", "/x/.b", status="ignored", reason="hidden"),
        ImageRef("c", "/x/c", status="warning", reason="empty_folder", detail="the folder is empty"),
        ImageRef("d", "/x/d", status="fatal", reason="link_loop", detail="it loops"),
    ]
    total = Summary()
    splitter = ImageSplitter(0, SplitSettings(), Selection())
    for ref in refs:
        total.add(ref, splitter)
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
    assert total.splits["test"].histogram.bins == {hash_key(0, "dog/1").order: 7}
    assert total.warnings == ["c: the folder is empty"]
    assert total.problems == ["/x/d: it loops"]
    assert sorted(ref.key for _, _, ref in total.sample) == ["cat/1", "cat/2", "dog/1"]
    assert total.nearest == {}  # every split was given


CHANGES = {"key": "z", "size": 9, "offset": 9, "length": 9, "label": "z", "group": "z", "split": "z", "features": "{}"}


@pytest.mark.parametrize("field", CHANGES)
def test_the_digest_changes_with_what_decides_the_bytes(field):
    ref = {"key": "a", "uri": "/x/a", "size": 3}
    assert summarize([ImageRef(**ref)]).digest != summarize([ImageRef(**{**ref, field: CHANGES[field]})]).digest


@pytest.mark.parametrize("field", ["uri", "version"])
def test_the_digest_does_not_change_with_place_or_time(field):
    ref = {"key": "a", "uri": "/x/a", "size": 3}
    assert summarize([ImageRef(**ref)]).digest == summarize([ImageRef(**{**ref, field: "other"})]).digest


def test_the_digest_tells_rejected_from_accepted_and_ignores_the_ignored():
    accepted = ImageRef("a", "a")
    rejected = ImageRef("a", "a", status="rejected", reason="bad")
    ignored = ImageRef("b", "b", status="ignored", reason="hidden")
    assert summarize([accepted]).digest != summarize([rejected]).digest
    assert summarize([accepted]).digest == summarize([accepted, ignored]).digest


def test_two_references_do_not_cancel_out():
    assert summarize([ImageRef("a", "a"), ImageRef("a", "a")]).digest not in (0, summarize([ImageRef("a", "a")]).digest)


def test_the_sample_is_the_images_with_the_lowest_order():
    refs = [ImageRef(f"{index}", "") for index in range(50)]
    splitter = ImageSplitter(0, SplitSettings(), Selection())
    total = Summary()
    for ref in refs:
        total.add(ref, splitter)
    lowest = sorted(refs, key=lambda ref: hash_key(0, ref.key).order)[: summary.SAMPLE_SIZE]
    assert [ref for _, _, ref in total.sample] == lowest


def test_two_references_with_one_key_can_both_be_in_the_sample():
    # A user's mistake that is told later, as two images with one key, must not fail here.
    same = [ImageRef("a", "x/a"), ImageRef("a", "y/a")]
    splitter = ImageSplitter(0, SplitSettings(), Selection())
    total = Summary()
    for ref in reversed(same):
        total.add(ref, splitter)
    assert [ref for _, _, ref in total.sample] == same
