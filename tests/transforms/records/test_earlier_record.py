import pytest

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.records.earlier_record import EarlierRecord

BOXES = '{"boxes":[[0,0,1,1]]}'


@pytest.mark.parametrize(
    ("is_current", "changes", "features", "expected"),
    [
        (True, (), "", True),
        (True, (), BOXES, True),
        (True, ("reencoded",), "", True),
        (True, ("reencoded",), BOXES, False),
        (False, (), "", False),
    ],
)
def test_the_source_is_needed_for_boxes_of_changed_images_and_if_it_may_have_changed(
    is_current, changes, features, expected
):
    earlier = EarlierRecord(SidecarRow("a", 1, "", None, None, changes=changes), b"", "", is_current)
    assert earlier.replaces_source(ImageRef("a", "/a", features=features)) is expected


@pytest.mark.parametrize("store", ["auto", "png", "raw"])
@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_an_image_is_as_a_conversion_prepares_it(draw, kind, store):
    settings = ImageSettings(store=store, moments=True, near_duplicates=True)
    image = prepare_image(draw(1, kind=kind), settings)
    row = SidecarRow("a", 1, "", None, None, image.height, image.width, image.channels, changes=image.changes)
    row.moments, row.difference_hash, row.pixels = image.moments, f"{image.difference_hash:016x}", image.pixels
    again = EarlierRecord(row, image.encoded, "0" * 64, is_current=True).as_prepared(settings)
    assert again == image
    assert (again.pixels, again.sha256) == (image.pixels, "0" * 64)
