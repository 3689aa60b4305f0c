import pytest
from pydantic import TypeAdapter, ValidationError

from recordmill.schemas.errors import SettingError
from recordmill.schemas.settings.images import ImageSettings, Resize


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"metadata": "orientation", "reencode": "never", "formats": ("JPEG", "AVIF")}, "metadata"),
        ({"max_side": 65_501}, "max_side"),
        *(({"store": store, "reencode": "never"}, "store") for store in ("jpeg", "png", "raw")),
        ({"grayscale": "expand", "reencode": "never"}, "grayscale"),
        ({"resize": Resize(longest=9), "reencode": "never"}, "resize"),
        ({"metadata": "strip", "reencode": "never", "formats": ("JPEG",)}, "metadata"),
        ({"metadata": "orientation", "reencode": "never"}, "metadata"),
        ({"near_duplicates": True, "check": "header"}, "near_duplicates"),
        ({"near_duplicates": True, "check": "header", "reencode": "never"}, "near_duplicates"),
    ],
)
def test_a_contradiction_names_its_key(values, key):
    with pytest.raises(SettingError) as raised:
        ImageSettings(**values)
    assert raised.value.path == key


@pytest.mark.parametrize(
    "values", [{}, {"longest": 5, "exact": (5, 5)}, {"longest": 5, "shortest": 5}]
)
def test_one_size_is_given(values):
    with pytest.raises(ValueError, match=r"^give one of longest, shortest and exact$"):
        Resize(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"formats": []},
        {"formats": ["JPEG", "MPO"]},
        {"max_bytes": 0},
        {"max_pixels": -1},
        {"max_side": 0},
        {"check": "glance"},
        {"quality": 0},
        {"quality": 101},
        {"background": [0, 0, 256]},
        {"background": [0, 0]},
        {"resize": {"longest": 0}},
        {"resize": {"shortest": 65_501}},
        {"resize": {"exact": [0, 5]}},
        {"resize": {"exact": [5, 5], "fit": "stretch"}},
    ],
)
def test_values_in_yaml_have_bounds(values):
    with pytest.raises(ValidationError):
        TypeAdapter(ImageSettings).validate_python(values)


def test_yaml_values_become_settings():
    adapter = TypeAdapter(ImageSettings)
    settings = adapter.validate_python(
        {"formats": ["PNG"], "background": [1, 2, 3], "resize": {"exact": [4, 5], "fit": "pad"}}
    )
    assert settings == ImageSettings(
        formats=("PNG",), background=(1, 2, 3), resize=Resize(exact=(4, 5), fit="pad")
    )
    with pytest.raises(ValidationError, match="quality"):
        adapter.validate_python({"quality": "high"})
