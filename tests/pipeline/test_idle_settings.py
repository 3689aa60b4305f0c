"""Settings that cannot act, or acted on nothing, in whole runs."""

import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def test_a_setting_that_cannot_act_is_refused_at_launch(convert, photos):
    done = convert(
        photos, settings={"images.store": "png", "images.quality": 50, "boxes.invalid": "drop"}
    )
    assert done.answer == (
        2,
        "images.quality has no effect, since images are stored as png: remove it",
        "boxes.invalid has no effect, since the source gives no boxes: remove it",
    )
    assert not done.output.exists()


def test_a_setting_that_affected_no_image_is_reported(convert, photos):
    settings = {"images.quality": 50, "images.reencode": "when_needed"}
    done = convert(photos, settings=settings)
    note = "images.quality had no effect on any of 10 images"
    assert (done.code, done.line["notes"]) == (0, [note])
    assert f"note: {note}" in done.stderr.splitlines()
    again = convert(photos, settings=settings)
    assert (again.line["status"], again.line["notes"]) == ("kept", [note])


def test_quality_acts_on_every_image(convert, photos):
    done = convert(photos, settings={"images.quality": 50})
    assert (done.line["changes"], done.line["notes"]) == ({"reencoded": 10}, [])
    assert "reencode: always" in (done.output / "config.yaml").read_text()
    assert done.marker["plan"]["settings"]["images"]["reencode"] == "always"


def test_by_default_jpegs_that_fit_are_copied(convert, photos):
    done = convert(photos, "--config=configs/class_folders.yaml")
    assert done.line["notes"] == []
    assert "reencode: when_needed" in (done.output / "config.yaml").read_text()
    assert done.marker["plan"]["settings"]["images"]["reencode"] == "when_needed"
