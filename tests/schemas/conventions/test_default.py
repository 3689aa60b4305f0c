"""Slim's keys plus class text, file name and digest of the encoded bytes."""

from recordmill.schemas.conventions import load_convention

CONVENTION = load_convention("default")


def test_keys_and_kinds_are_slims_and_three_more():
    assert {
        feature.key: (feature.kind, feature.many) for feature in CONVENTION.example_features
    } == {
        "image/encoded": ("bytes", False),
        "image/format": ("bytes", False),
        "image/class/label": ("int64", False),
        "image/height": ("int64", False),
        "image/width": ("int64", False),
        "image/class/text": ("bytes", False),
        "image/filename": ("bytes", False),
        "image/key/sha256": ("bytes", False),
    }


def test_only_the_image_is_required_of_a_file():
    assert [feature.key for feature in CONVENTION.example_features if feature.default is None] == [
        "image/encoded"
    ]


def test_the_format_is_called_jpg_as_slim_calls_it():
    assert CONVENTION.format_names == {"JPEG": "jpg"}


def test_labels_count_from_zero_and_names_are_the_designs():
    assert CONVENTION.label_offset == 0
    assert (
        CONVENTION.shard_name.format(split="train", index=0, count=5)
        == "train-00000-of-00005.tfrecord"
    )
