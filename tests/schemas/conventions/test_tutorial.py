"""Against CONVENTIONS.md 1."""

from schemas.conventions import load_convention

CONVENTION = load_convention("tutorial")


def test_keys_and_kinds_are_the_tutorials():
    assert [(feature.key, feature.kind, feature.many) for feature in CONVENTION.features] == [
        ("height", "int64", False),
        ("width", "int64", False),
        ("depth", "int64", False),
        ("label", "int64", False),
        ("image_raw", "bytes", False),
    ]


def test_the_raw_image_is_the_encoded_file_and_depth_its_channels():
    fields = {feature.key: feature.field for feature in CONVENTION.features}
    assert (fields["image_raw"], fields["depth"]) == ("encoded", "channels")
