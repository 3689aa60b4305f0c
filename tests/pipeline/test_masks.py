"""Masks of objects, from COCO's outlines to the PNGs in records."""

import copy
import json

import numpy as np
import pytest
from faster_coco_eval.core import mask as other_mask
from PIL import Image
from stored_records import read_records

import recordmill
from recordmill.reading.epoch_order import EpochOrder
from recordmill.reading.torch_stream import TorchStream
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.features import Example
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

WIDTH, HEIGHT = 64, 48
RNG = np.random.default_rng(38)
STAR = (RNG.random(24) * 40).round(2).tolist()


def bitmap():
    """A mask with a hole."""
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[5:30, 6:40] = 1
    mask[10:20, 12:20] = 0
    return mask


def packed(mask):
    runs = other_mask.encode(np.asfortranarray(mask))
    return {"size": [HEIGHT, WIDTH], "counts": runs["counts"].decode()}


def unpacked(mask):
    flat = mask.T.ravel()
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flat)))).tolist()
    counts = np.diff([0, *edges, flat.size]).tolist()
    return {"size": [HEIGHT, WIDTH], "counts": counts}


SEGMENTATIONS = [
    [[2, 3, 22, 3, 12, 23.5]],
    [[2, 3, 22, 3, 12, 23.5], [30, 30, 60.25, 31, 45, 47]],
    [STAR],
    packed(bitmap()),
    unpacked(bitmap()),
    [],
    [[6.1, 5.1, 6.4, 5.1, 6.4, 5.4]],
    {"size": [WIDTH, HEIGHT], "counts": [WIDTH * HEIGHT]},
]
CATEGORIES = [{"id": 3, "name": "cat"}]


def drawn(segmentation):
    """The mask as another library draws it; None if it cannot."""
    if isinstance(segmentation, dict):
        if isinstance(segmentation["counts"], list):
            return bitmap() if sum(segmentation["counts"][1:]) else None
        return other_mask.decode(segmentation)
    if not segmentation:
        return None
    runs = other_mask.frPyObjects(segmentation, HEIGHT, WIDTH)
    return other_mask.decode(other_mask.merge(runs))


@pytest.fixture
def animals(tmp_path):
    """Writes a collection: `animals(segmentations)` are those of the objects in `a.jpg`."""

    def write(segmentations=SEGMENTATIONS, changed=()):
        root = tmp_path / "animals"
        for folder in ("annotations", "train"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for name in "ab":
            path = root / "train" / f"{name}.jpg"
            if not path.exists():
                path.write_bytes(encode_picture(name, (WIDTH, HEIGHT)))
        images = [
            {"id": number, "file_name": f"{name}.jpg", "width": WIDTH, "height": HEIGHT}
            for number, name in enumerate("ab")
        ]
        box = {"category_id": 3, "image_id": 0, "bbox": [2, 3, 40, 40], "area": 9}
        annotations = [
            {**box, "id": number, "segmentation": copy.deepcopy(each), **dict(changed)}
            for number, each in enumerate(segmentations)
        ]
        content = {"images": images, "annotations": annotations, "categories": CATEGORIES}
        place = root / "annotations" / "instances_train2017.json"
        place.write_text(json.dumps(content), encoding="utf-8")
        return root

    return write


SETTINGS = {"masks": "png", "max_rejected.masks.count": 3}


def masks_in(done, key="image/object/mask"):
    """The masks of each record by the number of its boxes, as TensorFlow decodes them."""
    import tensorflow as tf

    found = {}
    for path in done.shards():
        for record in read_records(path):
            features = Example.FromString(record).features.feature
            masks = features[key].bytes_list.value
            boxes = len(features["image/object/bbox/xmin"].float_list.value)
            found[boxes] = [np.asarray(tf.io.decode_png(each))[..., 0] for each in masks]
    return found


def test_masks_are_those_that_other_libraries_draw_and_decode(convert, animals):
    done = convert(animals(), settings=SETTINGS)
    assert done.code == 0, done.stderr
    nothing = np.zeros((HEIGHT, WIDTH), np.uint8)
    expected = [drawn(each) for each in SEGMENTATIONS]
    found = masks_in(done)
    assert found.keys() == {0, len(SEGMENTATIONS)}
    assert found[0] == []
    for mask, wanted in zip(found[len(SEGMENTATIONS)], expected, strict=True):
        assert mask.dtype == np.uint8
        assert np.array_equal(mask, nothing if wanted is None else wanted)
    entry = done.marker["annotations"]["masks"]
    assert (entry["unit"], entry["listed"], entry["written"]) == ("mask", 7, 5)
    assert entry["dropped"] == {"empty_mask": 1, "mask_size": 1}
    assert done.marker["plan"]["recipe"]["versions"]["pycocotools"]
    assert verify_dataset(done.output, level="pixels").findings == ()


def stacked_masks():
    """The masks of the image with objects, of shape (objects, height, width)."""
    nothing = np.zeros((HEIGHT, WIDTH), np.uint8)
    drawings = [drawn(each) for each in SEGMENTATIONS]
    return np.stack([nothing if each is None else each for each in drawings])


@pytest.mark.parametrize("convention", ["tf_object_detection", "tfds"])
def test_loading_gives_masks_as_arrays_if_asked(convert, animals, convention):
    settings = {**SETTINGS, "convention": convention, "labels.ids": "names"}
    done = convert(animals(), settings=settings)
    expected = stacked_masks()
    opened = recordmill.open(done.output, features="all", annotations=["masks"])["train"]
    loaded = recordmill.load(done.output, "train", features="all", annotations=["masks"])
    found = [each["masks"] for each in opened], [each["masks"].numpy() for each in loaded]
    for masks in (sorted(each, key=len) for each in found):
        assert masks[0].shape == (0, HEIGHT, WIDTH)
        assert masks[1].dtype == np.uint8
        assert np.array_equal(masks[1], expected)


def test_loaded_masks_are_resized_batched_and_left_out(convert, animals):
    done = convert(animals(), settings={**SETTINGS, "labels.ids": "names"})
    expected = stacked_masks()
    half = HEIGHT // 2, WIDTH // 2
    resized = recordmill.load(done.output, "train", image_size=half, annotations=["masks"])
    masks = sorted((each["masks"].numpy() for each in resized), key=len)
    assert masks[0].shape == (0, *half)
    assert np.array_equal(masks[1], expected[:, 1::2, 1::2])
    batches = [
        *recordmill.load(done.output, "train", features="all", annotations="masks", batch_size=2)
    ]
    assert batches[0]["masks"].shape[0] == 2
    assert "masks" not in recordmill.open(done.output, features="all")["train"][0]
    undecoded = recordmill.load(done.output, decode=False, annotations=["masks"])
    masks = sorted((each["masks"].numpy() for each in undecoded), key=len)
    assert np.array_equal(masks[1], expected)


def test_batches_for_pytorch_have_masks(convert, animals):
    pytest.importorskip("torch")
    done = convert(animals(), settings=SETTINGS)
    opened = recordmill.open(done.output, annotations=["masks"])["train"]
    stream = TorchStream(opened, EpochOrder(records=len(opened), shuffle=False), collate=list)
    assert sorted(len(batch[0]["masks"]) for batch in stream) == [0, len(SEGMENTATIONS)]


def test_arrays_of_annotations_that_are_not_there_are_refused(convert, animals):
    done = convert(animals())
    opened = recordmill.open(done.output, annotations=["masks"])
    for read in (
        lambda: opened["train"],
        lambda: recordmill.load(done.output, annotations=["masks"]),
    ):
        with pytest.raises(recordmill.LoadError, match="has no annotations 'masks': choose from"):
            read()


def test_without_the_setting_nothing_changes_and_a_note_gives_the_command(convert, animals):
    plain = convert(animals([[]] * len(SEGMENTATIONS)))
    done = convert(animals(), output=plain.output.with_name("other"))
    assert "not stored: masks (7); --set masks=png stores them" in done.line["notes"]
    assert done.deterministic_files == plain.deterministic_files
    assert done.marker["plan"] == plain.marker["plan"]
    assert "pycocotools" not in done.marker["plan"]["recipe"]["versions"]


def test_objects_without_a_mask_are_dropped_where_masks_are_required(convert, animals):
    done = convert(animals(), settings={**SETTINGS, "masks_required": True})
    assert done.code == 0, done.stderr
    assert {boxes: len(masks) for boxes, masks in masks_in(done).items()} == {0: 0, 5: 5}
    counts = done.marker["annotations"]
    assert counts["boxes"]["dropped"] == {"empty_mask": 1, "mask_size": 1, "no_mask": 1}
    assert counts["masks"]["dropped"] == {"empty_mask": 1, "mask_size": 1}


def test_an_update_after_an_edited_outline_equals_a_rebuild(convert, animals, tmp_path):
    settings = {**SETTINGS, "splits.from_source": {"train": "train"}}
    first = convert(animals(), settings=settings)
    root = animals([*SEGMENTATIONS[:-1], [[1, 1, 9, 1, 9, 9]]])
    updated = convert(root, "--update", output=first.output, settings=settings)
    rebuilt = convert(root, output=tmp_path / "rebuilt", settings=settings)
    assert updated.deterministic_files == rebuilt.deterministic_files
    assert updated.marker["plan"]["id"] == rebuilt.marker["plan"]["id"]


def test_too_many_faulty_masks_fail_the_run(convert, animals):
    segmentations = [*[[[1, 1, 2]]] * 11, [[2, 3, 42, 3, 42, 43]]]
    done = convert(animals(segmentations), settings={"masks": "png"})
    (staging,) = done.staging
    assert done.answer == (
        3,
        "11 of 12 masks (91.67%) were dropped (11 bad_polygon: cat), such as mask 1 of 12 of "
        "train/a.jpg (class cat), which is over max_rejected.masks.count (10) and "
        "max_rejected.masks.share (1.00%); correct these outlines, or add "
        "--set max_rejected.masks.count=11 to do without them",
        "docs/fix_rejected.md has a remedy for each reason",
        f"{staging}/report.html shows what was converted",
    )


def test_no_limit_allows_a_run_to_lose_all_masks(convert, animals):
    settings = {"masks": "png", "max_rejected.masks.count": 9}
    done = convert(animals([[[1, 1, 2]]] * 2), settings=settings)
    assert done.code == 3
    assert (
        "all masks (2) were dropped (2 bad_polygon: cat), such as mask 1 of 2 of train/a.jpg "
        "(class cat), which no limit allows: correct these outlines"
    ) in done.stderr


@pytest.mark.parametrize(
    ("settings", "answer"),
    [
        (
            {"masks": "png", "convention": "slim"},
            "--set: masks is png, and the convention (TF-Slim's image_to_tfexample) stores no "
            "masks: remove it, or set convention=tf_object_detection",
        ),
        ({"masks_required": True}, "masks_required has no effect, since masks is none: remove it"),
        (
            {"max_rejected.masks.count": 3},
            "max_rejected.masks has no effect, since masks is none: remove it",
        ),
        (
            {"masks": "png", "source.kind": "class_folders", "convention": "tfds"},
            "masks has no effect, since the source gives no masks: remove it",
        ),
        (
            {
                "convention": {
                    "features": {
                        "image": {"field": "encoded", "type": "bytes"},
                        "m": {"field": "masks", "type": "bytes", "shape": [None]},
                    }
                }
            },
            "--set: convention.features.m stores masks, and masks is none: add --set masks=png, or "
            "remove it",
        ),
    ],
)
def test_a_setting_that_stores_no_mask_is_refused(convert, animals, settings, answer):
    assert convert(animals(), settings=settings).answer == (2, answer)


def test_masks_turn_with_their_image(convert, animals, tmp_path):
    root = animals()
    with Image.open(root / "train" / "a.jpg") as image:
        exif = Image.Exif()
        exif[0x0112] = 6
        image.transpose(Image.Transpose.ROTATE_90).save(root / "train" / "a.jpg", exif=exif)
    done = convert(root, settings=SETTINGS)
    assert done.code == 0, done.stderr
    found = masks_in(done)[len(SEGMENTATIONS)]
    assert np.array_equal(found[1], drawn(SEGMENTATIONS[1]))
    assert np.array_equal(found[3], bitmap())
