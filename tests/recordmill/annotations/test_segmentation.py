import hashlib
import io
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.annotations.annotation import (
    AnnotatedImage,
    AnnotationOutcome,
    ListedLabels,
    LostAnnotations,
    ReadFile,
)
from recordmill.annotations.segmentation import SEGMENTATION, Segmentation
from recordmill.imaging import Resize, prepare_image
from recordmill.imaging.geometry import turn_values
from recordmill.imaging.masks.mask_file import encode_values, pack_color
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import AnnotationCounts, AnnotationTotals
from recordmill.schemas.image_ref import SourceFile
from recordmill.schemas.label_map import LabelMap, LabelSettings, build_label_map
from recordmill.schemas.rejection import LeftOut, Rejected
from recordmill.schemas.settings.dataset import BoxSettings, Contract
from recordmill.schemas.settings.images import ImageSettings
from recordmill.transforms.inputs.sources.image_masks import ImageMasks
from recordmill.transforms.inputs.sources.manifest import Manifest
from recordmill.transforms.inputs.tables.manifest_columns import Columns

IDS = np.arange(80, dtype=np.uint8).reshape(8, 10)
NO_LABELS = LabelMap({})
SOURCE = Manifest(columns=Columns(uri="image", mask="mask"))
PALETTE = [0, 0, 0, 128, 0, 0, 0, 128, 0]


def encode(image, **options):
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue()


def make_image(size=(10, 8), orientation=1, images=None, masks="none", **more):
    """An image in PNG and what is stored of it, for annotations to be placed on."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(Image.new("RGB", size), exif=exif)
    settings = make_settings(
        source=SOURCE,
        convention="deeplab",
        masks=masks,
        **({"images": images} if images else {}),
        **more,
    )
    return AnnotatedImage(data, prepare_image(data, settings.images), settings, NO_LABELS)


def place(mask, on=None, **given):
    """What is stored of a mask's file, or None for one that does not exist."""
    on = on or make_image()
    on.files = {"m.png": SourceFile("m.png", "/m.png")}

    def read(file):
        assert file.uri == "/m.png"
        if mask is None:
            raise Rejected("read", "vanished", "it is gone")
        return mask

    on.read_file = read
    return SEGMENTATION.place(Segmentation("m.png", **given).pack(), on)


def decode(placed, mode="L"):
    image = Image.open(io.BytesIO(placed.fields["segmentation"]))
    assert image.mode == mode
    return np.asarray(image)


def test_ids_are_stored_as_they_are_with_the_digest_of_their_file():
    mask = encode(Image.fromarray(IDS))
    placed = place(mask)
    assert np.array_equal(decode(placed), IDS)
    assert placed.fields["segmentation_format"] == b"png"
    file = ReadFile("m.png", len(mask), hashlib.sha256(mask).hexdigest())
    assert placed.outcome == AnnotationOutcome(AnnotationCounts(1, 1), files=[file])


def test_indices_of_a_palette_are_ids():
    indices = Image.fromarray((IDS % 3).astype(np.uint8), "P")
    indices.putpalette(PALETTE)
    assert np.array_equal(decode(place(encode(indices))), IDS % 3)


def test_gray_values_are_ids_if_they_are_stored_as_colors():
    assert np.array_equal(decode(place(encode(Image.fromarray(IDS).convert("RGB")))), IDS)


def test_colors_become_ids_by_their_place_in_the_table():
    indices = Image.fromarray((IDS % 3).astype(np.uint8), "P")
    indices.putpalette(PALETTE)
    colors = [pack_color(0, 128, 0), pack_color(0, 0, 0), pack_color(128, 0, 0)]
    placed = place(encode(indices.convert("RGB")), colors=colors)
    assert np.array_equal(decode(placed), (IDS + 1) % 3)


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_threshold_makes_two_levels(mode):
    placed = place(encode(Image.fromarray(IDS).convert(mode)), threshold=40)
    assert np.array_equal(decode(placed), (IDS >= 40).astype(np.uint8))


def make_named(label_map, masks="none"):
    """An image whose source names the classes of the ids in masks."""
    on = make_image()
    source = ImageMasks(class_names=("sky", "car", "van"))
    labels = LabelSettings(ids="integers")
    on.settings = make_settings(source=source, labels=labels, convention="deeplab", masks=masks)
    on.label_map = label_map
    return on


@pytest.mark.parametrize("masks", ["none", "png16"])
@pytest.mark.parametrize(
    ("renamed", "expected"),
    [
        ({"van": "car"}, [0, 1, 1]),
        ({"sky": "van"}, [0, 1, 0]),
        ({"car": "truck"}, [0, 1, 2]),
        ({"van": None}, [0, 1, None]),
    ],
)
def test_ids_of_renamed_classes_are_those_of_the_label_map(renamed, expected, masks):
    settings = LabelSettings(ids="integers", rename=renamed)
    label_map = build_label_map([], settings, 0, {"sky": 0, "car": 1, "van": 2})
    placed = place(encode(Image.fromarray(IDS % 3)), make_named(label_map, masks))
    ignored, mode = (65_535, "I;16") if masks == "png16" else (255, "L")
    table = np.array([ignored if each is None else each for each in expected])
    assert np.array_equal(decode(placed, mode), table[IDS % 3])
    assert not placed.outcome.counts.noted


def test_ids_without_a_name_are_noted():
    named = make_named(LabelMap({"sky": 0, "car": 1}))
    ids = np.where(IDS % 3 == 2, 255, IDS % 3).astype(np.uint8)
    assert not place(encode(Image.fromarray(ids)), named).outcome.counts.noted
    placed = place(encode(Image.fromarray(IDS % 3)), named)
    assert placed.outcome.counts == AnnotationCounts(1, 1, noted=Counter(unnamed_ids=1))
    entry = AnnotationEntry(
        unit="semantic mask", listed=4, written=4, dropped={}, noted={"unnamed_ids": 1}
    )
    assert list(SEGMENTATION.find_remarks(entry, "image", named.settings)) == [
        "1 semantic mask has ids of classes without a name: name them in source.class_names, or "
        "they are not in the label map."
    ]


def test_pixels_of_segments_are_ignored_unless_their_class_is_chosen():
    segments, classes = encode(Image.fromarray(IDS % 3)), ((1, "car"), (2, "sky"))
    chosen, other = make_image(), make_image()
    chosen.label_map = LabelMap({"sky": 0}, numbers={"car": 1, "sky": 7}, is_chosen=True)
    other.label_map = replace(chosen.label_map, ids={"van": 0})
    placed = place(segments, chosen, classes=classes)
    assert np.array_equal(decode(placed), np.where(IDS % 3 == 2, 0, 255))
    assert not placed.outcome.counts.noted
    placed = place(segments, other, classes=classes)
    assert (decode(placed) == 255).all()
    assert placed.outcome.counts.noted == {"without_class": 1}
    entry = AnnotationEntry(
        unit="semantic mask", listed=1, written=1, dropped={}, noted={"without_class": 1}
    )
    assert list(SEGMENTATION.find_remarks(entry, "image", other.settings)) == [
        "1 semantic mask has no pixel of a class in labels.classes: all pixels have the ignored id."
    ]


def test_ids_from_jpeg_are_noted_and_two_levels_are_not():
    file = io.BytesIO()
    Image.fromarray(IDS).save(file, "JPEG")
    on = make_image()
    on.files = {"m.JPG": SourceFile("m.JPG", "/m.JPG")}
    on.read_file = lambda _: file.getvalue()
    assert SEGMENTATION.place(Segmentation("m.JPG").pack(), on).outcome.counts.noted == {
        "lossy_ids": 1
    }
    two_levels = Segmentation("m.JPG", threshold=40)
    assert not SEGMENTATION.place(two_levels.pack(), on).outcome.counts.noted
    entry = AnnotationEntry(
        unit="semantic mask", listed=1, written=1, dropped={}, noted={"lossy_ids": 1}
    )
    assert list(SEGMENTATION.find_remarks(entry, "image", on.settings)) == [
        "1 semantic mask is in JPEG, which changes ids: store masks as PNG, or set "
        "source.mask_threshold if they have two levels."
    ]


@pytest.mark.parametrize("smooth", [False, True])
def test_two_levels_that_are_taken_for_ids_are_noted(smooth):
    levels = np.zeros((40, 50), np.uint8)
    levels[10:30, 10:40] = 255
    if smooth:
        levels[10, 10:40] = range(20, 200, 6)
    mask, on = encode(Image.fromarray(levels)), make_image((50, 40))
    assert place(mask, on).outcome.counts.noted == {"two_levels": 1}
    assert not place(mask, on, threshold=128).outcome.counts.noted
    entry = AnnotationEntry(
        unit="semantic mask", listed=3, written=3, dropped={}, noted={"two_levels": 2}
    )
    assert list(SEGMENTATION.find_remarks(entry, "image", on.settings)) == [
        "2 of 3 semantic masks have two levels, 0 and 255: readers ignore 255, so set "
        "source.mask_threshold=128 to store 0 and 1."
    ]
    some = replace(entry, noted={"two_levels": 1})  # a border of void pixels
    assert not list(SEGMENTATION.find_remarks(some, "image", on.settings))


def test_void_borders_and_padding_are_not_taken_for_levels():
    ids = np.zeros((40, 50), np.uint8)
    resized = ImageSettings(resize=Resize(exact=(60, 60), fit="pad"))
    padded = make_image((50, 40), images=resized)
    assert not place(encode(Image.fromarray(ids)), padded).outcome.counts.noted
    ids[10:30, 10:40], ids[11:29, 11:39] = 255, 7
    assert not place(encode(Image.fromarray(ids)), make_image((50, 40))).outcome.counts.noted


def test_a_threshold_that_no_mask_reaches_is_noted():
    mask = encode(Image.fromarray(IDS))
    placed = place(mask, threshold=200)
    assert placed.outcome.counts == AnnotationCounts(1, 1, noted=Counter(all_zero=1))
    assert not place(mask, threshold=79).outcome.counts.noted
    entry = AnnotationEntry(
        unit="semantic mask", listed=2, written=2, dropped={}, noted={"all_zero": 2}
    )
    assert list(SEGMENTATION.find_remarks(entry, "image", make_settings())) == [
        "2 semantic masks are 0 everywhere, and there are no others: lower source.mask_threshold, "
        "or remove it if values are ids."
    ]
    some = replace(entry, noted={"all_zero": 1})
    assert not list(SEGMENTATION.find_remarks(some, "image", make_settings()))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_ids_turn_with_the_image(orientation):
    on = make_image((10, 8), orientation)
    size = on.image.height, on.image.width
    upright = np.arange(80, dtype=np.uint8).reshape(size)
    assert np.array_equal(decode(place(encode(Image.fromarray(upright)), on)), upright)
    if orientation > 4:  # its size tells that the mask has the pixels as they are stored
        stored = decode(place(encode(Image.fromarray(IDS)), make_image((10, 8), orientation)))
        assert np.array_equal(stored, turn_values(IDS, orientation))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_drawn_on_says_that_ids_are_those_of_the_image_as_stored(orientation):
    on = make_image((8, 8), orientation, boxes=BoxSettings(drawn_on="stored"))
    ids = np.arange(64, dtype=np.uint8).reshape(8, 8)
    placed = place(encode(Image.fromarray(ids)), on)
    assert np.array_equal(decode(placed), turn_values(ids, orientation))


def test_ids_are_cropped_with_the_image():
    on = make_image(images=ImageSettings(resize=Resize(exact=(8, 8))))
    assert np.array_equal(decode(place(encode(Image.fromarray(IDS)), on)), IDS[:, 1:9])


def test_padding_is_ignored():
    on = make_image(images=ImageSettings(resize=Resize(exact=(10, 10), fit="pad")))
    expected = np.full((10, 10), 255, np.uint8)
    expected[1:9] = IDS
    assert np.array_equal(decode(place(encode(Image.fromarray(IDS)), on)), expected)


def test_png16_stores_ids_over_255_and_ignores_the_largest():
    ids = IDS.astype(np.uint16) * 700
    images = ImageSettings(resize=Resize(exact=(10, 10), fit="pad"))
    expected = np.full((10, 10), 65_535, np.uint16)
    expected[1:9] = ids
    placed = place(encode_values(ids), make_image(images=images, masks="png16"))
    assert np.array_equal(decode(placed, "I;16"), expected)
    assert SEGMENTATION.check_pixels({"segmentation": [placed.fields["segmentation"]]}) is None


def test_void_of_voc_is_ignored_in_16_bits_too():
    void = IDS.copy()
    void[0] = 255
    placed = place(encode_values(void), make_image(masks="png16"), has_palette=True)
    expected = IDS.astype(np.uint16)
    expected[0] = 65_535
    assert np.array_equal(decode(placed, "I;16"), expected)


def test_png16_rejects_ids_over_16_bits():
    colors = np.zeros((8, 10, 3), np.uint8)
    colors[0, 0] = (1, 2, 3)
    with pytest.raises(Rejected) as raised:
        place(encode(Image.fromarray(colors)), make_image(masks="png16"))
    assert raised.value.reason == "unknown_mask_value"
    assert "values over 65535, such as (1, 2, 3)" in raised.value.detail


def test_a_resized_mask_has_the_ids_of_the_nearest_pixels():
    on = make_image(images=ImageSettings(resize=Resize(exact=(4, 5))))
    assert np.array_equal(decode(place(encode(Image.fromarray(IDS)), on)), IDS[1::2, 1::2])


@pytest.mark.parametrize(
    ("mask", "given", "reason", "detail"),
    [
        (None, {}, "no_mask_file", "m.png: it is gone"),
        (b"no image", {}, "bad_mask", "m.png: the mask is not in one of PNG, BMP, TIFF, JPEG, GIF"),
        (
            encode_values(IDS[:4]),
            {},
            "mask_size",
            "m.png: the mask has 10 x 4 pixels, and the image 10 x 8",
        ),
        (
            encode_values(IDS.astype(np.uint16) + 255),
            {},
            "unknown_mask_value",
            "m.png: the mask has values over 255, such as 256, 257, 258; --set masks=png16 stores "
            "ids up to 65,535",
        ),
        (
            encode_values(IDS % 2),
            {"colors": (0,)},
            "unknown_mask_value",
            "m.png: 1 value is not in the table, such as 1",
        ),
        (
            encode_values(IDS),
            {"colors": (*range(80, 256), *range(80))},
            "unknown_mask_value",
            "m.png: the mask has values over 254, such as 255; --set masks=png16 stores ids up to "
            "65,535",
        ),
    ],
)
def test_a_faulty_mask_rejects_its_image(mask, given, reason, detail):
    with pytest.raises(Rejected) as raised:
        place(mask, **given)
    assert (raised.value.stage, raised.value.reason, raised.value.detail) == (
        "encode",
        reason,
        detail,
    )
    lost = SEGMENTATION.lose(Segmentation("m.png").pack(), raised.value, NO_LABELS)
    assert lost == AnnotationOutcome(AnnotationCounts(1, dropped={reason: 1}))


def test_masks_are_lost_with_images_that_are_not_written():
    packed = Segmentation("m.png").pack()
    assert SEGMENTATION.list_labels(packed) == ListedLabels((), 1)
    for rejected, why in (
        (Rejected("decode", "truncated", ""), "with_rejected_images"),
        (LeftOut("limit", ""), "with_left_out_images"),
    ):
        lost = SEGMENTATION.lose(packed, rejected, NO_LABELS)
        assert lost == AnnotationOutcome(AnnotationCounts(1, dropped={why: 1}))


def test_a_mask_is_dropped_if_no_image_is_stored():
    on = AnnotatedImage(b"", None, make_settings(), NO_LABELS)
    placed = SEGMENTATION.place(Segmentation("m.png").pack(), on)
    assert (placed.fields, placed.outcome.counts) == (
        {},
        AnnotationCounts(1, dropped={"not_decoded": 1}),
    )


def test_the_packed_form_reads_back_as_it_was():
    forms = [{}, {"threshold": 3}, {"colors": (1, 2)}, {"has_palette": True}]
    for each in (Segmentation("a/ä.png", **form) for form in forms):
        assert Segmentation.unpack(each.pack()) == each


def test_too_many_faulty_masks_exceed_the_limits():
    counts = AnnotationCounts(100, 89, Counter(mask_size=10, bad_mask=1))
    lost = LostAnnotations(counts, AnnotationTotals(), {}, {"mask_size": "a.jpg (10 x 4)"})
    said = SEGMENTATION.check_limits(lost, make_settings())
    assert said.startswith("11 of 100 semantic masks (11.00%) were faulty")
    assert "faulty (bad_mask: 1, mask_size: 10), such as a.jpg (10 x 4), which is over" in said
    assert said.endswith(
        "correct these masks, or add --set max_rejected.segmentation.count=11 to do without them"
    )
    few = AnnotationCounts(100, 90, Counter(mask_size=10))
    assert (
        SEGMENTATION.check_limits(LostAnnotations(few, AnnotationTotals(), {}), make_settings())
        is None
    )
    assert SEGMENTATION.most_lost(Contract(lost_segmentation=0.5)) == 0.5


MASK = encode_values(IDS)
WIDE_MASK = encode_values(IDS.astype(np.uint16) * 700)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"segmentation": [MASK], "height": [8], "width": [10]}, None),
        ({"segmentation": [MASK]}, None),
        ({"segmentation": [WIDE_MASK], "height": [8], "width": [10]}, None),
        (
            {"segmentation": [MASK], "height": [10], "width": [8]},
            "its semantic mask has 10 x 8 pixels, and the record says 8 x 10",
        ),
        ({"segmentation": [b"x"]}, "its semantic mask is not a PNG in 8 or 16 bits of gray"),
        ({}, "its semantic mask is not a PNG in 8 or 16 bits of gray"),
        (
            {"segmentation": [encode(Image.fromarray(IDS).convert("RGB"))]},
            "its semantic mask is not a PNG in 8 or 16 bits of gray",
        ),
    ],
)
def test_the_mask_of_an_example_is_checked(values, problem):
    assert SEGMENTATION.check(values) == problem


def test_pixels_are_checked():
    assert SEGMENTATION.check_pixels({"segmentation": [MASK]}) is None
    problem = SEGMENTATION.check_pixels({"segmentation": [MASK[:40]]})
    assert problem.startswith("its semantic mask cannot be decoded: ")


def test_each_id_is_drawn_but_the_background_and_what_is_ignored():
    ids = np.array([[0, 3], [255, 7]], np.uint8)
    shapes = SEGMENTATION.trace({"segmentation": [encode_values(ids)]}, {3: "road"})
    regions = [(each.class_id, each.class_name, each.region) for each in shapes]
    assert regions == [
        (3, "road", encode_values(np.array([[0, 1], [0, 0]], np.uint8))),
        (7, None, encode_values(np.array([[0, 0], [0, 1]], np.uint8))),
    ]
    assert SEGMENTATION.trace({}, {}) == []


@pytest.mark.parametrize(("name", "drawn"), [("road", [0, 3]), ("Background", [3]), ("void", [3])])
def test_the_id_0_is_drawn_if_it_has_the_name_of_a_class(name, drawn):
    mask = encode_values(np.array([[0, 3]], np.uint8))
    shapes = SEGMENTATION.trace({"segmentation": [mask]}, {0: name, 3: "sky"})
    assert [each.class_id for each in shapes] == drawn


def test_in_16_bits_255_is_a_class_and_65535_is_ignored():
    ids = np.array([[0, 255], [65_535, 300]], np.uint16)
    shapes = SEGMENTATION.trace({"segmentation": [encode_values(ids)]}, {})
    assert [each.class_id for each in shapes] == [255, 300]
