from collections import Counter

from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.dataset.totals import AnnotationTotals, RowTotals
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.reference_digest import add_digests, digest_of
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.records.convert_image import ConvertedImage, reject_image
from recordmill.transforms.tally import Tally, merge_tallies

REFS = [ImageRef(key, key, 5, label="cat") for key in "abc"]


def written(split, records, index=0):
    return ShardReport(split, index, 0, RowTotals(), AnnotationTotals(), records=records)


def tallies():
    """Of two images of split x that were built, one of y that was rejected, and the files of both."""
    found = [Tally(), Tally(), Tally(files=[written("x", 1)]), Tally(files=[written("x", 1, 1), written("y", 0)])]
    for tally, ref in zip(found, REFS[:2], strict=False):
        tally.assigned["x"] += 1
        tally.add("x", ref, ConvertedImage(b"r", SidecarRow(ref.key, 5, "", "cat", 0)))
    found[1].assigned["y"] += 1
    rejected = Rejected("decode", "unknown_format", "it is  a\ntext")
    found[1].add("y", REFS[2], reject_image(REFS[2], rejected, LabelMap({"cat": 0})))
    return found


def test_tallies_are_added_in_any_order():
    total = merge_tallies(tallies())
    assert merge_tallies([merge_tallies(tallies()[::-1])]).splits == total.splits
    assert total.splits["x"].classes == Counter(cat=2)
    assert total.splits["y"].rejected == Counter(unknown_format=1)
    assert total.rejected_such["unknown_format"].text == "c (it is a text)"
    assert add_digests(total.digest) == add_digests(*map(digest_of, REFS))


def test_the_first_rejected_image_by_key_is_named():
    tally = Tally()
    for ref in reversed(REFS):
        tally.add("x", ref, reject_image(ref, Rejected("read", "vanished", "gone"), LabelMap({})))
    assert tally.rejected_such["vanished"].text == "a (gone)"


def test_nothing_is_lost_where_each_split_adds_up():
    assert merge_tallies(tallies()).find_loss() == ""


def test_a_split_that_lacks_a_record_is_named_though_another_has_one_more():
    total = merge_tallies([*tallies(), Tally(files=[written("y", 1)])])
    total.files[0] = written("x", 0)
    assert total.find_loss() == (
        "split x has 2 references, 0 of them rejected, and its files hold 1 record: something was lost or written twice"
    )
