import io
from collections import Counter

import pytest
from carried_annotations import carry
from make_settings import make_settings
from PIL import Image

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationOutcome,
    DroppedAnnotation,
    ReadFile,
)
from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.labels import Labels
from recordmill.imaging import prepare_image
from recordmill.schemas.dataset.record_index import RowOrigin, parse_origins
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.dataset.totals import AnnotationCounts, AnnotationTotals, LostExample
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.records.annotations import (
    add_image,
    describe_details,
    describe_outcomes,
    lose_annotations,
    read_outcomes,
    resolve_annotations,
)

LABELS = LabelMap({"cat": 0, "dög": 1, "other": 2})
REF = ImageRef("a.jpg", "/a.jpg")
BOX = boxes_of([(0, 0, 20, 20)], ["dög"], values={"pose": ["Left"]})


@pytest.fixture
def resolve():
    file = io.BytesIO()
    Image.new("RGB", (40, 20)).save(file, "JPEG")
    settings = make_settings()
    image = prepare_image(file.getvalue(), settings.images)
    on = AnnotatedImage(file.getvalue(), image, settings, LABELS)
    return lambda ref: resolve_annotations(ref, on)


def test_each_kind_is_placed_in_the_order_of_kinds(resolve):
    placed = resolve(carry(REF.replace(lacks_file=True), Labels(["cat"]), BOX))
    assert list(placed) == ["boxes", "labels"]
    assert placed["labels"].fields == {"label_texts": [b"cat"], "labels": [0]}
    assert placed["boxes"].outcome == AnnotationOutcome(AnnotationCounts(1, 1), [], lacks_file=True)
    assert placed["boxes"].classes == ["dög"]
    assert placed["boxes"].fields == {
        "xmin": [0.0],
        "xmax": [0.5],
        "ymin": [0.0],
        "ymax": [1.0],
        "bbox": [0.0, 0.0, 1.0, 0.5],
        "box_labels": [1],
        "box_label_texts": ["dög".encode()],
        "pose": [b"Left"],
    }


def test_an_image_without_annotations_has_none(resolve):
    assert resolve(REF) == {}
    assert lose_annotations(REF, Rejected("read", "unreadable", ""), LABELS) == {}


def test_annotations_of_an_image_that_is_not_written_are_lost_kind_by_kind():
    lost = lose_annotations(
        carry(REF, Labels(["cat", "emu"]), BOX), Rejected("encode", "unknown_label", ""), LABELS
    )
    assert describe_outcomes(lost) == {
        "boxes": {"listed": 1, "written": 0, "dropped": {"with_rejected_images": 1}},
        "labels": {
            "listed": 2,
            "written": 0,
            "dropped": {"unknown_label": 1, "with_rejected_images": 1},
        },
    }
    assert describe_outcomes({}) is None


def test_a_later_run_reads_outcomes_from_the_row_and_from_what_it_lacks():
    dropped = [DroppedAnnotation("outside", "cat", 2, True)]
    counts = AnnotationCounts(2, 1, Counter(outside=1), Counter(clipped=1))
    outcomes = {
        "boxes": AnnotationOutcome(counts, dropped, lacks_file=True),
        "labels": AnnotationOutcome(AnnotationCounts(1, 1)),
    }
    row = SidecarRow("a.jpg", 1, "", None, None, annotations=describe_outcomes(outcomes))
    line = RowOrigin(1, 2, {"annotations": describe_details(outcomes)}).as_line()
    assert line == (
        b'[1,2,{"annotations":{"boxes":{"dropped":[["outside","cat",2,true]],"lacks_file":true}}}]\n'
    )
    (origin,) = parse_origins([line])
    assert read_outcomes(row, origin.counts["annotations"]) == outcomes


def test_rows_name_the_files_that_annotations_were_read_from():
    files = [ReadFile("m.png", 7, "ab")]
    outcomes = {"masks": AnnotationOutcome(AnnotationCounts(1, 1), files=files)}
    described = describe_outcomes(outcomes)
    assert described == {
        "masks": {
            "listed": 1,
            "written": 1,
            "files": [{"key": "m.png", "size": 7, "sha256": "ab"}],
        }
    }
    row = SidecarRow("a.jpg", 1, "", None, None, annotations=described)
    assert read_outcomes(row, {}) == outcomes


def boxes(*dropped, written=0, lacks_file=False):
    reasons = Counter(box.reason for box in dropped)
    counts = AnnotationCounts(len(dropped) + written, written, reasons)
    return {"boxes": AnnotationOutcome(counts, list(dropped), lacks_file)}


def test_a_shard_tells_of_dropped_boxes_and_of_images_without_any():
    totals = {}
    add_image(totals, "b.jpg", boxes(DroppedAnnotation("outside", "cat", 2, True), written=1))
    add_image(
        totals,
        "a.jpg",
        boxes(
            DroppedAnnotation("outside", "dog", 1, True),
            DroppedAnnotation("cropped_away", "cat", 2, False),
        ),
    )
    add_image(totals, "c.jpg", boxes(lacks_file=True))
    add_image(totals, "d.jpg", boxes())
    add_image(totals, "e.jpg", boxes(written=3))
    add_image(totals, "f.jpg", {"labels": AnnotationOutcome(AnnotationCounts(2, 2))})
    assert totals == {
        "boxes": AnnotationTotals(
            dropped={"outside": {"cat": 1, "dog": 1}, "cropped_away": {"cat": 1}},
            faulty={"outside": {"cat": 1, "dog": 1}},
            emptied={"outside": {"dog": 1}, "cropped_away": {"cat": 1}},
            bare={"all_dropped": 1, "no_file": 1, "no_objects": 1},
            examples={"outside": LostExample("a.jpg", 1, "box 1 of 2 of a.jpg (class dog)")},
        )
    }


def test_shapes_that_a_source_dropped_are_of_any_class():
    totals = {}
    for key, written, shapes in (("a.jpg", 0, 2), ("b.jpg", 2, 1)):
        counts = AnnotationCounts(written + shapes, written, Counter(other_shape=shapes))
        add_image(totals, key, {"boxes": AnnotationOutcome(counts)})
    assert totals["boxes"] == AnnotationTotals(
        dropped={"other_shape": {"": 3}},
        emptied={"other_shape": {"": 2}},
        bare={"all_dropped": 1},
    )


def test_images_that_are_not_written_are_not_without_annotations():
    totals = {}
    for why in ("with_rejected_images", "with_left_out_images"):
        counts = AnnotationCounts(2, 0, Counter({why: 2}))
        add_image(totals, "a.jpg", {"boxes": AnnotationOutcome(counts)})
    assert totals == {}


def test_a_rejected_image_is_not_without_annotations_whatever_it_was_rejected_for():
    totals = {}
    counts = AnnotationCounts(1, 0, Counter(unknown_label=1))
    add_image(totals, "a.jpg", {"labels": AnnotationOutcome(counts)}, is_written=False)
    assert totals == {"labels": AnnotationTotals()}


def test_unknown_classes_are_distinguished_up_to_a_number():
    totals = {}
    add_image(
        totals,
        "a.jpg",
        boxes(
            *(
                DroppedAnnotation("unknown_class", str(number), number, True)
                for number in range(1, 131)
            )
        ),
    )
    (counts,) = totals["boxes"].dropped.values()
    assert (len(counts), counts["1"], counts["100"], counts["others"]) == (101, 1, 1, 30)
