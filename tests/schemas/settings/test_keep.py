import pytest

from recordmill.schemas.settings.dataset import KeepSettings


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({}, False),
        ({"min_side": 3, "max_aspect": 2.0}, False),
        ({"min_sharpness": 0.0}, True),
        ({"min_brightness": 0.0}, True),
        ({"function": "a:b"}, True),
    ],
)
def test_images_are_decoded_only_for_filters_of_pixels(settings, needs):
    assert KeepSettings(**settings).needs_pixels is needs
