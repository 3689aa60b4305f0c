import dataclasses

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.typehints.decorators import TypeCheckError
from make_settings import make_settings

from recordmill.imaging import ImageSettings, prepare_image
from recordmill.schemas.rejection import Reject
from recordmill.schemas.settings.dataset import KeepSettings
from recordmill.transforms.records.image_functions import FunctionError, find_function
from recordmill.transforms.steps.elements import EncodedImage, RawImage, RejectedImage
from recordmill.transforms.steps.reencode_images import ReencodeImages

TEXT = "unknown format: the file begins with 74 65 78 74 ('text')"


def test_jpegs_are_copied_and_others_become_jpegs(draw, run_step):
    jpeg, png = draw(1), draw(2, kind="PNG")
    images = [
        RawImage("a", jpeg, "cat", {"source_id": "7"}, "g", "test"),
        RawImage("b", png),
        RawImage("c", b"text"),
    ]
    good, rejected = run_step(images, ReencodeImages())
    settings = ImageSettings(reencode="when_needed")
    assert good == [
        EncodedImage(
            "a", prepare_image(jpeg, settings), jpeg, "cat", {"source_id": "7"}, "g", "test"
        ),
        EncodedImage("b", prepare_image(png, settings), png),
    ]
    assert good[0].image.encoded == jpeg
    assert rejected == [RejectedImage("c", "unknown_format", TEXT)]


def test_settings_of_images(draw, run_step):
    settings = ImageSettings(quality=50)
    (image,), _ = run_step([RawImage("a", draw(1))], ReencodeImages(settings))
    always = dataclasses.replace(settings, reencode="always")
    assert image.image == prepare_image(draw(1), always)


def test_pixels_are_encoded(run_step):
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    step = ReencodeImages(ImageSettings(store="png"))
    (image,), _ = run_step([RawImage("a", b"from", pixels=pixels)], step)
    assert image.image == prepare_image(pixels, ImageSettings(store="png"))
    assert image.data == b"from"


@pytest.fixture
def functions(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own_steps.py").write_text(
        "import recordmill\n"
        "def invert(image):\n    return 255 - image\n"
        "def refuse(image):\n    raise recordmill.Reject('too dark')\n"
        "def fail(image):\n    raise KeyError('x')\n"
    )
    yield
    find_function.cache_clear()


@pytest.mark.usefixtures("functions")
def test_a_function_changes_pixels_or_rejects(draw, run_step):
    settings = ImageSettings(function="own_steps:invert", store="png")
    (image,), _ = run_step([RawImage("a", draw(1, kind="PNG"))], ReencodeImages(settings))
    assert image.image.changes == ("prepared", "reencoded")
    refuse = ReencodeImages(ImageSettings(function="own_steps:refuse"))
    assert run_step([RawImage("a", draw(1))], refuse) == (
        [],
        [RejectedImage("a", "function", "too dark")],
    )
    assert Reject.__name__ == "Reject"


@pytest.mark.usefixtures("functions")
def test_a_function_that_fails_raises_with_its_own_error(draw, run_step):
    with pytest.raises(FunctionError, match="own_steps:fail failed on a") as raised:
        run_step([RawImage("a", draw(1))], ReencodeImages(ImageSettings(function="own_steps:fail")))
    # A runner raises a copy, whose cause is in its text alone.
    assert "KeyError: 'x'" in str(raised.value)


def test_settings_of_a_dataset_filter(draw, run_step):
    step = ReencodeImages(make_settings(keep=KeepSettings(min_side=7)))
    images = [RawImage("a", draw(1, (8, 6))), RawImage("b", draw(1, (9, 7)))]
    good, rejected = run_step(images, step)
    assert [image.key for image in good] == ["b"]
    assert rejected == [RejectedImage("a", "too_small", "8 x 6 pixels")]


@pytest.mark.parametrize("wrong", [{"metadata": "stripp"}, {"quality": 101}, {"store": "pgn"}])
def test_settings_that_are_made_in_python_are_checked(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ReencodeImages(ImageSettings(**wrong))


def test_wrong_types_are_found_when_the_pipeline_is_built():
    with pytest.raises(TypeCheckError, match="Input type hint violation at ReencodeImages"):
        beam.Pipeline() | beam.Create(["photos/cat/0.jpg"]) | ReencodeImages()


def test_its_settings_are_display_data():
    assert ReencodeImages(ImageSettings(quality=90)).display_data()["quality"] == "90"
