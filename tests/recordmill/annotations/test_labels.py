from collections import Counter

import pytest
from make_settings import make_settings

from recordmill.annotations.annotation import AnnotatedImage, AnnotationOutcome, ListedLabels
from recordmill.annotations.labels import LABELS, Labels
from recordmill.schemas.dataset.totals import AnnotationCounts
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import LeftOut, Rejected

CLASSES = LabelMap({"cat": 0, "dög": 1, "other": 2})


def place(*names, label_map=CLASSES):
    on = AnnotatedImage(b"", None, make_settings(), label_map)
    return LABELS.place(Labels(names).pack(), on)


def test_several_labels_get_their_ids():
    placed = place("dög", "cat")
    assert placed.fields == {"label_texts": ["dög".encode(), b"cat"], "labels": [1, 0]}
    assert placed.classes == ["dög", "cat"]
    assert placed.outcome == AnnotationOutcome(AnnotationCounts(2, 2))
    assert LABELS.list_labels(Labels(["dög", "cat"]).pack()) == ListedLabels(["dög", "cat"])


def test_a_label_without_a_place_rejects_the_image_or_becomes_the_catch_all():
    with pytest.raises(Rejected, match="unknown_label: the label 'emu' is not one of the classes"):
        place("cat", "emu")
    caught = LabelMap(CLASSES.ids, "other")
    assert place("emu", label_map=caught).fields == {"label_texts": [b"other"], "labels": [2]}


def test_labels_of_an_image_that_is_not_written_are_counted_by_the_reason():
    def count(rejected, label_map, names=("cat", "emu", "gnu")):
        outcome = LABELS.lose(Labels(names).pack(), rejected, label_map)
        return outcome and outcome.counts

    unknown = Rejected("encode", "unknown_label", "")
    assert count(unknown, CLASSES) == AnnotationCounts(
        3, dropped=Counter(unknown_label=2, with_rejected_images=1)
    )
    chosen = LabelMap({"cat": 0}, is_chosen=True)
    assert count(unknown, chosen).dropped == {"not_chosen": 2, "with_rejected_images": 1}
    assert count(Rejected("decode", "truncated", ""), CLASSES).dropped == {
        "with_rejected_images": 3
    }
    assert count(LeftOut("too_small", ""), CLASSES).dropped == {"with_left_out_images": 3}
    assert count(unknown, CLASSES, ()) is None
