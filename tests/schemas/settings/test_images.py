import pytest
from pydantic import TypeAdapter, ValidationError

from recordmill.schemas.settings.images import ImageSettings, Resize


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"formats": ()}, "formats"),
        ({"formats": ("JPEG", "MPO")}, "formats"),
        ({"metadata": "orientation", "reencode": "never", "formats": ("JPEG", "AVIF")}, "metadata"),
        ({"max_bytes": 0}, "max_bytes"),
        ({"max_pixels": -1}, "max_pixels"),
        ({"max_side": 0}, "max_side"),
        ({"max_side": 65_501}, "max_side"),
        ({"check": "glance"}, "check"),
        ({"reencode": "sometimes"}, "reencode"),
        ({"store": "gif"}, "store"),
        *(({"store": store, "reencode": "never"}, "store") for store in ("jpeg", "png", "raw")),
        ({"quality": 0}, "quality"),
        ({"quality": 101}, "quality"),
        ({"subsampling": "4:1:1"}, "subsampling"),
        ({"grayscale": "drop"}, "grayscale"),
        ({"grayscale": "expand", "reencode": "never"}, "grayscale"),
        ({"background": (0, 0, 256)}, "background"),
        ({"background": (0, 0)}, "background"),
        ({"resize": Resize(longest=9), "reencode": "never"}, "resize"),
        ({"metadata": "drop"}, "metadata"),
        ({"metadata": "strip", "reencode": "never", "formats": ("JPEG",)}, "metadata"),
        ({"metadata": "orientation", "reencode": "never"}, "metadata"),
        ({"near_duplicates": True, "check": "header"}, "near_duplicates"),
        ({"near_duplicates": True, "check": "header", "reencode": "never"}, "near_duplicates"),
    ],
)
def test_a_wrong_value_names_its_key(values, key):
    with pytest.raises(ValueError, match=f"^{key}: "):
        ImageSettings(**values)


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({}, "resize"),
        ({"longest": 5, "exact": (5, 5)}, "resize"),
        ({"longest": 5, "shortest": 5}, "resize"),
        ({"longest": 0}, "resize.longest"),
        ({"shortest": 65_501}, "resize.shortest"),
        ({"exact": (0, 5)}, "resize.exact"),
        ({"exact": (5, 65_501)}, "resize.exact"),
        ({"exact": (5, 5), "fit": "stretch"}, "resize.fit"),
    ],
)
def test_a_wrong_resize_names_its_key(values, key):
    with pytest.raises(ValueError, match=f"^{key}: "):
        Resize(**values)


def test_yaml_values_become_settings():
    adapter = TypeAdapter(ImageSettings)
    settings = adapter.validate_python(
        {"formats": ["PNG"], "background": [1, 2, 3], "resize": {"exact": [4, 5], "fit": "pad"}}
    )
    assert settings == ImageSettings(formats=("PNG",), background=(1, 2, 3), resize=Resize(exact=(4, 5), fit="pad"))
    with pytest.raises(ValidationError, match="quality"):
        adapter.validate_python({"quality": "high"})
