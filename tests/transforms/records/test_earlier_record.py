import pytest
from make_settings import make_settings

from recordmill.annotations.boxes import boxes_of
from recordmill.annotations.labels import Labels
from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.dataset.record_index import UNKNOWN
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.image_ref import ImageRef, SourceFile
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.transforms.records.earlier_datasets import (
    EarlierRecord,
    ReferenceDigests,
    find_decisive,
)

BOXES = (("boxes", boxes_of([(0, 0, 1, 1)], ["cat"]).pack()),)
LABELS = (("labels", Labels(["cat"]).pack()),)


@pytest.mark.parametrize(
    ("is_current", "changes", "annotations", "expected"),
    [
        (True, (), (), True),
        (True, (), BOXES, True),
        (True, ("reencoded",), (), True),
        (True, ("reencoded",), LABELS, True),
        (True, ("reencoded",), BOXES, False),
        (False, (), (), False),
    ],
)
def test_the_source_is_needed_for_boxes_of_changed_images_and_if_it_may_have_changed(
    is_current, changes, annotations, expected
):
    row = SidecarRow("a", 1, "", None, None, changes=changes)
    for is_same, replaces in ((False, expected), (True, is_current)):
        earlier = EarlierRecord(row, UNKNOWN, is_current, is_same)
        assert earlier.replaces_source(ImageRef("a", "/a", annotations=annotations)) is replaces


@pytest.mark.parametrize("store", ["auto", "png", "raw"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_an_image_is_as_a_conversion_prepares_it(draw, kind, store):
    settings = ImageSettings(store=store, moments=True, near_duplicates=True)
    image = prepare_image(draw(1, kind=kind), settings)
    row = SidecarRow(
        "a", 1, "", None, None, image.height, image.width, image.channels, changes=image.changes
    )
    row.moments, row.difference_hash, row.pixels = (
        image.moments,
        f"{image.difference_hash:016x}",
        image.pixels,
    )
    again = EarlierRecord(
        row, UNKNOWN, True, False, encoded=image.encoded, sha256="0" * 64
    ).as_prepared(settings)
    assert again == image
    assert (again.pixels, again.sha256) == (image.pixels, "0" * 64)


def test_what_says_which_images_there_are_decides_no_record():
    recipe = {"seed": 1, "images": {"quality": 9}, "versions": {"pillow": "1", "zlib": "2"}}
    more = {
        "limit": 3,
        "shards": {"count": 2},
        "splits": {},
        "cuts": "a",
        "label_ids": "b",
        "listing": {},
        "exclude": "c",
    }
    assert find_decisive(recipe | more) == {
        "seed": 1,
        "images": {"quality": 9},
        "versions": {"pillow": "1"},
    }


@pytest.fixture
def digest():
    """`digest(ref, split, recipe, ids)`: the digest of a reference."""

    def make(ref, split="train", recipe=None, ids=None, **settings):
        layout = ExampleLayout(make_settings(**settings))
        return ReferenceDigests(recipe or {}, layout, LabelMap(ids or {"cat": 0, "dog": 1})).digest(
            ref, split
        )

    return make


CAT = ImageRef("a", "/a", 7, "1", label="cat")


def test_a_rewritten_file_of_annotations_is_another_reference(digest):
    mask = SourceFile("m", "/m", 7, "1")
    files = [(), (mask,), (mask._replace(version="2"),), (mask._replace(size=8),)]
    assert len({digest(CAT.replace(files=each)) for each in files}) == 4
    assert digest(CAT.replace(files=(mask._replace(version=""),))) == 0


@pytest.mark.parametrize(
    ("changed", "more"),
    [
        ({"label": "dog"}, {}),
        ({"features": '{"age":1}'}, {}),
        ({"sha256": "ab"}, {}),
        ({"lacks_file": True}, {}),
        ({"spelling": "A"}, {}),
        ({}, {"recipe": {"convention": "slim"}}),
        ({}, {"ids": {"bat": 0, "cat": 1}}),
    ],
)
def test_a_digest_depends_on_what_decides_a_record(digest, changed, more):
    assert digest(CAT.replace(**changed), **more) != digest(CAT)


def test_a_digest_does_not_depend_on_the_place_the_time_the_split_or_other_classes(digest):
    elsewhere = CAT.replace(uri="/b", version="2", group="g", split="s")
    assert digest(elsewhere, "test", {"limit": 3}, {"cat": 0, "emu": 1}) == digest(CAT) != 0


def test_annotations_decide_a_record_and_depend_on_all_classes(digest):
    boxes = CAT.replace(annotations=BOXES)
    assert len({digest(CAT.replace(annotations=each)) for each in ((), BOXES, LABELS)}) == 3
    assert digest(boxes, ids={"cat": 0, "dog": 1, "emu": 2}) != digest(boxes)


def test_the_split_decides_where_records_hold_it(digest):
    one, other = (digest(CAT, split, convention="tfrecorder") for split in ("train", "test"))
    assert one != other


def test_what_cannot_become_a_record_has_no_digest(digest):
    assert digest(CAT.replace(label="emu")) == digest(CAT.notice("rejected", "no_class")) == 0
