from collections import Counter, defaultdict

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.inputs.sources.yolo import Yolo
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.summarize_images import BUCKETS, MOST_HELD, DigestFiles, find_used


def ignored(uri, reason="taken_only_by_name"):
    return ImageRef(uri, uri).notice("ignored", reason)


def named(uri, **changes):
    return ImageRef(uri, uri, **changes)


def let_go(digests):
    return [each.value for each in digests.finish_bundle()]


def join(*parts, source=None):
    """How counts change by what several workers' references say together."""
    buckets = defaultdict(list)
    for refs in parts:
        digests = DigestFiles(source or Coco())
        digests.start_bundle()
        for ref in refs:
            assert not list(digests.process(ReferenceBatch.of([ref])))
        for bucket, found in let_go(digests):
            buckets[bucket].append(found)
        assert let_go(digests) == []
    assert all(0 <= bucket < BUCKETS for bucket in buckets)
    changes = Counter()
    for bucket in buckets.values():
        found = find_used(bucket)
        assert found.listed == found.ignored.total()
        changes.update(found.ignored)
    return {reason: count for reason, count in changes.items() if count}


FILES = [ignored(f"/x/{number}.jpg") for number in range(300)]
OTHERS = [
    ignored("/x/README.md"),
    ignored("/x/0.JPEG"),
    ignored("/x/.hidden.jpg", "hidden"),
    ignored("/x/.d", "hidden"),
]
NAMED = [named(f"/x/{number}.jpg") for number in range(200)]


@pytest.mark.parametrize("cut", [0, 7, 200])
def test_files_that_references_name_are_used_wherever_both_were_met(cut):
    expected = {"taken_only_by_name": -301, "hidden": -1, "without_annotation": 101}
    hidden = named("/x/.hidden.jpg")
    assert join([*FILES, *OTHERS, *NAMED, hidden]) == expected
    assert join(NAMED[:cut], [*OTHERS, hidden, *FILES[:50]], NAMED[cut:], FILES[50:]) == expected


def test_rejected_and_excluded_images_are_named_and_notes_name_nothing():
    refs = [
        named(f"/x/{n}.jpg").notice(status, "why")
        for n, status in enumerate(("rejected", "left_out"))
    ]
    notices = [
        named("/x/2.jpg").notice(status, "why") for status in ("warning", "fatal", "names_images")
    ]
    assert join([*FILES[:3], *refs, *notices]) == {
        "taken_only_by_name": -3,
        "without_annotation": 1,
    }


def test_a_file_that_was_listed_twice_counts_twice():
    assert join([FILES[0], FILES[0], FILES[1], FILES[1]], [NAMED[0], NAMED[0]]) == {
        "taken_only_by_name": -4,
        "without_annotation": 2,
    }


def test_only_images_that_should_have_been_named_are_without_annotation():
    assert (
        join(
            [
                ignored("/x/a.jpg", "not_included"),
                ignored("/x/b.jpg", "ignored"),
                ignored("/x/c.txt"),
            ]
        )
        == {}
    )


def test_local_paths_are_one_however_they_are_spelled(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = join(
        [ignored("data/a.jpg"), ignored("../b.jpg"), ignored("s3://x/../c.jpg")],
        [named(f"{tmp_path}/data/a.jpg")],
    )
    assert found == {"taken_only_by_name": -3, "without_annotation": 2}


def test_yolos_text_files_are_used_with_their_images():
    texts = [ignored(f"/x/labels/{number}.txt", "read_only_with_images") for number in range(4)]
    images = [
        named("/x/images/0.jpg"),
        named("/x/images/1.jpg").notice("rejected", "why"),
        named("/x/images/2.jpg", lacks_file=True),
        named("/x/other/3.jpg").notice("rejected", "why"),
    ]
    assert join([*texts, *images], source=Yolo()) == {"read_only_with_images": -2}


def test_few_digests_are_held():
    digests = DigestFiles(Coco())
    digests.start_bundle()
    for number in range(MOST_HELD - 1):
        assert not list(digests.process(ReferenceBatch.of([named(f"/x/{number}.jpg")])))
    assert (
        sum(len(packed) for _, (_, packed) in digests.process(ReferenceBatch.of([FILES[0]])))
        == 16 * MOST_HELD
    )
    assert not let_go(digests)


def test_the_summary_counts_used_files_as_their_references_alone():
    summary = Summary(
        listed=20, ignored=Counter(taken_only_by_name=9, hidden=2, system_file=1), naming_files=3
    )
    changes = [
        Summary(listed=-5, ignored=Counter(taken_only_by_name=-5)),
        Summary(listed=-2, ignored=Counter(hidden=-2, taken_only_by_name=-3, without_annotation=3)),
    ]
    settled = Summary.sum_of([summary, *changes])
    assert settled.ignored == {"taken_only_by_name": 1, "system_file": 1, "without_annotation": 3}
    assert (settled.listed, settled.naming_files) == (13, 3)
    assert Summary.sum_of([summary]) == summary
