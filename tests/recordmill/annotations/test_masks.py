import hashlib
import io
import zlib
from collections import Counter

import numpy as np
import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.annotations import mask_files
from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationOutcome,
    DroppedAnnotation,
    ListedLabels,
    LostAnnotations,
    PlacedObjects,
    ReadFile,
)
from recordmill.annotations.masks import MASKS, Masks
from recordmill.imaging import ImageSettings, Resize, prepare_image
from recordmill.imaging.masks.mask_file import decode_mask
from recordmill.imaging.masks.outline import (
    FaultyOutline,
    FileIds,
    MaskFile,
    NumberedObject,
    Polygons,
    Runs,
)
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import AnnotationCounts, AnnotationTotals
from recordmill.schemas.image_ref import SourceFile
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.dataset import Contract

SQUARE = Polygons(((2.0, 1.0, 6.0, 1.0, 6.0, 4.0, 2.0, 4.0),))
TINY = Polygons(((2.1, 1.1, 2.3, 1.1, 2.3, 1.3),))
LABELS = LabelMap({"cat": 0})
NO_MASK = np.zeros((8, 10), np.uint8)
SQUARE_MASK = NO_MASK.copy()
SQUARE_MASK[1:4, 2:6] = 1


def place(
    outlines,
    stored=None,
    settings=None,
    unwanted=(),
    size=(10, 8),
    files=None,
    file_size=-1,
    sides=(),
):
    """The masks as arrays, the reasons of those that are dropped, and the unwanted objects."""
    file = io.BytesIO()
    Image.new("RGB", size).save(file, "PNG")
    settings = settings or make_settings_with()
    image = prepare_image(file.getvalue(), settings.images)
    on = AnnotatedImage(file.getvalue(), image, settings, LABELS)
    stored = range(len(outlines)) if stored is None else stored
    names = ["cat"] * len(outlines)
    on.objects = PlacedObjects(len(outlines), list(stored), names, "displayed", sides)
    on.unwanted = dict(unwanted)
    if files is not None:
        on.files = {key: SourceFile(key, f"/{key}", file_size) for key in files}
        on.read_file = lambda file: read(files[file.key])
    placed = MASKS.place(Masks(outlines).pack(), on)
    return [decode(each) for each in placed.fields["masks"]], placed.outcome, placed.unwanted


def read(data):
    if isinstance(data, Rejected):
        raise data
    return data


def decode(png):
    image = Image.open(io.BytesIO(png))
    assert image.mode == "L"
    return np.asarray(image)


def make_settings_with(**settings):
    return make_settings(convention="tf_object_detection", **settings)


def test_each_stored_object_has_a_mask_in_the_order_of_the_boxes():
    runs = Runs((10, 8), (0, 3, 77))
    masks, outcome, unwanted = place([SQUARE, None, runs], stored=[2, 1, 0])
    column = NO_MASK.copy()
    column[:3, 0] = 1
    assert np.array_equal(masks, [column, NO_MASK, SQUARE_MASK])
    assert outcome == AnnotationOutcome(AnnotationCounts(2, 2))
    assert unwanted == {}


def encode_ids(ids, mode="L"):
    file = io.BytesIO()
    image = Image.fromarray(np.array(ids, np.uint8), mode="L")
    if mode == "P":
        image = image.convert("P")
        image.putpalette(list(range(3, 255)) * 3)
    image.save(file, "PNG")
    return file.getvalue()


def ids_of(*ids, key="m.png"):
    return FileIds(MaskFile(key, ""), ids)


def test_objects_may_be_values_in_a_mask_file_that_is_read_once():
    numbers = np.zeros((8, 10), np.uint8)
    numbers[1:4, 2:6], numbers[0, 0] = 7, 9
    data = encode_ids(numbers)
    masks, outcome, _ = place([ids_of(7), ids_of(7, 9), ids_of(8)], files={"m.png": data})
    both = SQUARE_MASK.copy()
    both[0, 0] = 1
    assert np.array_equal(masks, [SQUARE_MASK, both, NO_MASK])
    assert outcome.counts.dropped == Counter(empty_mask=1)
    digest = hashlib.sha256(data).hexdigest()
    assert outcome.files == [ReadFile("m.png", len(data), digest)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (Rejected("read", "vanished", ""), "no_mask_file"),
        (Rejected("read", "too_many_bytes", ""), "bad_mask"),
        (b"text", "bad_mask"),
        (encode_ids(np.ones((9, 10))), "mask_size"),
        (encode_ids(np.ones((8, 11))), "mask_size"),
    ],
)
def test_a_mask_file_that_cannot_be_used_is_a_fault_of_its_objects(data, reason):
    _, outcome, _ = place([ids_of(1), ids_of(2)], files={"m.png": data})
    assert outcome.counts.dropped == Counter({reason: 2})
    assert {each.is_faulty for each in outcome.dropped} == {True}
    _, outcome, _ = place([ids_of(1, key="other.png")], files={"m.png": data})
    assert outcome.counts.dropped == Counter(no_mask_file=1)


@pytest.mark.parametrize(
    ("size", "reason"), [(-1, "unreadable"), (-1, "changed"), (9, "unreadable"), (9, "vanished")]
)
def test_a_mask_file_that_was_listed_and_cannot_be_read_rejects_its_image(size, reason):
    with pytest.raises(Rejected) as caught:
        place([ids_of(1)], files={"m.png": Rejected("read", reason, "why")}, file_size=size)
    assert (caught.value.stage, caught.value.reason) == ("read", reason)
    assert caught.value.detail == "m.png: why"


def number_objects(count):
    return [NumberedObject(MaskFile("m.png", ""), number, count) for number in range(1, count + 1)]


def test_objects_with_numbers_have_the_pixels_in_their_boxes(monkeypatch):
    numbers = np.full((8, 10), 255, np.uint8)
    numbers[1:4, 2:6], numbers[5:, :3] = 1, 2
    read = []
    monkeypatch.setattr(mask_files, "decode_mask", lambda *a: read.append(1) or decode_mask(*a))
    sides = [(0.2, 0.125, 0.6, 0.5), (0.7, 0.6, 1.0, 1.0), (0.1, 0.1, 0.2, 0.2)]
    masks, outcome, _ = place(number_objects(3), files={"m.png": encode_ids(numbers)}, sides=sides)
    assert np.array_equal(masks, [SQUARE_MASK, NO_MASK, NO_MASK])
    assert outcome.dropped == [
        DroppedAnnotation("other_object", "cat", 2, is_faulty=True),
        DroppedAnnotation("no_mask", "cat", 3, is_faulty=False),
    ]
    assert outcome.counts == AnnotationCounts(3, 1, Counter(other_object=1, no_mask=1))
    assert read == [1]


def test_a_mask_of_more_objects_than_the_image_has_is_that_of_none():
    data = encode_ids(np.full((8, 10), 3))
    _, outcome, _ = place(number_objects(2), files={"m.png": data})
    assert outcome.counts.dropped == Counter(unknown_mask_value=2)


FAULTS = [
    (TINY, "empty_mask"),
    (FaultyOutline("bad_rle", ""), "bad_rle"),
    (Polygons(((0.0, 0.0, 1.0, 1.0),)), "bad_polygon"),
    (Runs((8, 10), (80,)), "mask_size"),
]


@pytest.mark.parametrize(("outline", "reason"), FAULTS)
def test_an_object_with_an_unusable_mask_gets_one_of_zeros(outline, reason):
    masks, outcome, unwanted = place([SQUARE, outline])
    assert np.array_equal(masks, [SQUARE_MASK, NO_MASK])
    assert outcome.dropped == [DroppedAnnotation(reason, "cat", 2, is_faulty=True)]
    assert outcome.counts == AnnotationCounts(2, 1, Counter({reason: 1}))
    assert unwanted == {}


@pytest.mark.parametrize(("outline", "reason"), [*FAULTS, (None, "no_mask")])
def test_an_object_without_a_mask_is_unwanted_where_masks_are_required(outline, reason):
    settings = make_settings_with(masks_required=True)
    *_, unwanted = place([SQUARE, outline], settings=settings)
    assert unwanted == {1: reason}


def test_masks_of_objects_that_are_not_stored_are_dropped():
    masks, outcome, _ = place([SQUARE, None, TINY], stored=[], unwanted={2: "empty_mask"})
    assert masks == []
    assert outcome.dropped == [
        DroppedAnnotation("without_box", "cat", 1, is_faulty=False),
        DroppedAnnotation("empty_mask", "cat", 3, is_faulty=True),
    ]
    assert outcome.counts == AnnotationCounts(2, 0, Counter(without_box=1, empty_mask=1))


def test_a_mask_that_vanishes_when_its_image_is_resized_is_not_faulty():
    settings = make_settings_with(images=ImageSettings(resize=Resize(exact=(4, 5))))
    masks, outcome, _ = place([SQUARE, TINY], settings=settings)
    assert [mask.shape for mask in masks] == [(4, 5)] * 2
    assert [mask.any() for mask in masks] == [True, False]
    assert outcome.dropped == [DroppedAnnotation("resized_away", "cat", 2, is_faulty=False)]


def test_images_with_more_objects_than_readers_keep_are_noted():
    _, outcome, _ = place([SQUARE] * 101)
    assert outcome.counts.noted == Counter(crowded=1)
    assert place([SQUARE] * 100)[1].counts.noted == Counter()


def test_masks_of_images_that_are_not_stored_or_not_written_are_counted():
    packed = Masks([SQUARE, None]).pack()
    on = AnnotatedImage(b"", None, make_settings_with(), LABELS)
    assert MASKS.place(packed, on).outcome.counts.as_row() == {
        "listed": 1,
        "written": 0,
        "dropped": {"not_decoded": 1},
    }
    lost = MASKS.lose(packed, Rejected("read", "unreadable", ""), LABELS)
    assert lost.counts == AnnotationCounts(1, 0, Counter(with_rejected_images=1))
    assert MASKS.lose(Masks([None]).pack(), Rejected("read", "unreadable", ""), LABELS) is None


def test_masks_are_counted_unread_and_equal_ones_are_packed_to_equal_bytes():
    packed = Masks([SQUARE, None, TINY]).pack()
    assert MASKS.list_labels(packed) == ListedLabels((), 2)
    assert packed == Masks((SQUARE, None, TINY)).pack()
    assert Masks.unpack(packed) == Masks((SQUARE, None, TINY))


def test_too_many_faulty_masks_exceed_the_limits():
    totals = AnnotationTotals()
    totals.dropped = totals.faulty = {"bad_rle": Counter(cat=11)}
    lost = LostAnnotations(AnnotationCounts(100, 89), totals, {})
    settings = make_settings_with()
    assert MASKS.check_limits(lost, settings) == (
        "11 of 100 masks (11.00%) were dropped (11 bad_rle: cat), which is over "
        "max_rejected.masks.count (10) and max_rejected.masks.share (1.00%); correct these "
        "outlines, or add "
        "--set max_rejected.masks.count=11 to do without them"
    )
    totals.faulty = {}
    assert MASKS.check_limits(lost, settings) is None


def test_objects_without_pixels_do_not_hide_that_all_masks_are_faulty():
    totals = AnnotationTotals()
    totals.faulty = {"other_object": Counter(cat=1)}
    counts = AnnotationCounts(2, 0, Counter(other_object=1, no_mask=1))
    lost = LostAnnotations(counts, totals, {})
    assert MASKS.check_limits(lost, make_settings_with()).startswith("all masks (1) were dropped")
    assert MASKS.most_lost(Contract(lost_masks=0.5)) == 0.5


def test_dropped_masks_and_crowded_images_are_worth_a_look():
    entry = AnnotationEntry(
        unit="mask",
        listed=9,
        written=6,
        dropped={"bad_rle": 2, "without_box": 1},
        noted={"crowded": 2},
        dropped_classes={"bad_rle": {"cat": 2}, "without_box": {"dog": 1}},
    )
    settings = make_settings_with()
    assert list(MASKS.find_remarks(entry, "image", settings)) == [
        "Unusable: 2 of 9 masks (bad_rle: cat). Their objects have masks of zeros.",
        "2 images have more than 100 objects: common readers of masks keep 100 of an image, or "
        "fail.",
    ]
    required = make_settings_with(masks_required=True)
    assert next(MASKS.find_remarks(entry, "image", required)) == (
        "Unusable: 2 of 9 masks (bad_rle: cat). Their objects were dropped, since masks_required "
        "is set."
    )


def test_a_dataset_of_objects_without_outlines_is_worth_a_look():
    entry = AnnotationEntry(unit="mask", listed=0, written=0, dropped={})
    settings = make_settings_with(masks="png")
    assert list(MASKS.find_remarks(entry, "image", settings)) == [
        "No object has an outline: with masks: png, all masks are 0."
    ]
    assert not list(MASKS.find_remarks(entry, "image", make_settings_with(masks="none")))


def encode(mode, size=(10, 8), color=0):
    file = io.BytesIO()
    Image.new(mode, size, color).save(file, "PNG")
    return file.getvalue()


WHOLE = {"masks": [encode("L")], "xmin": [0.0], "height": [8], "width": [10]}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({}, None),
        ({"xmin": []}, "it has 1 masks for 0 boxes"),
        ({"masks": [encode("P")]}, "mask 1 is not a PNG in 8 bits of gray"),
        ({"masks": [encode("1")]}, "mask 1 is not a PNG in 8 bits of gray"),
        ({"masks": [encode("I;16")]}, "mask 1 is not a PNG in 8 bits of gray"),
        ({"masks": [b""]}, "mask 1 is not a PNG in 8 bits of gray"),
        ({"width": [9]}, "mask 1 has 10 x 8 pixels, and the record says 9 x 8"),
        (
            {"masks": [encode("L"), encode("L", (9, 8))], "xmin": [0.0, 0.0]},
            "mask 2 has 9 x 8 pixels, and the record says 10 x 8",
        ),
    ],
)
def test_masks_in_an_example_are_gray_and_have_the_size_of_the_image(changed, problem):
    assert MASKS.check({**WHOLE, **changed}) == problem


def test_masks_of_one_example_have_one_size():
    masks = [encode("L"), encode("L", (9, 8))]
    assert MASKS.check({"masks": masks}) == "mask 2 has 9 x 8 pixels, and mask 1 has 10 x 8"


@pytest.mark.parametrize(
    ("mask", "problem"),
    [
        (encode("L", color=1), None),
        (encode("L", color=255), "mask 1 has a pixel of 255, and should have only 0 and 1"),
        (encode("L")[:40], "mask 1 cannot be decoded: "),
    ],
)
def test_pixels_of_masks_are_0_or_1(mask, problem):
    found = MASKS.check_pixels({"masks": [mask]})
    if problem is None:
        assert found is None
    else:
        assert found.startswith(problem)


def test_the_libraries_that_decide_the_bytes_are_named():
    versions = {"pycocotools": "2.0.11", "masks.zlib": zlib.ZLIB_RUNTIME_VERSION}
    assert MASKS.find_versions() == versions
