"""What a user can get wrong in a convention of their own: one sentence before any work."""

import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

IMAGE = {"field": "encoded", "type": "bytes"}


@pytest.fixture
def refused(convert, photos, state_of):
    """`refused(mapping, settings)`: the one sentence."""
    earlier = convert(photos)
    before = state_of(earlier.output)

    def run(mapping, settings=None):
        done = convert(photos, settings={"convention": mapping, **(settings or {})})
        (sentence,) = done.errors
        assert (done.code, done.line["message"]) == (2, sentence)
        assert state_of(earlier.output) == before
        return sentence.removeprefix("--set: ")

    return run


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (
            "jpeg/{split}/{index:02d}.tfrec",
            "gives the name 'jpeg/s/00.tfrec': names of visible files",
        ),
        (
            "{split}{index}-{shards}.tfrec",
            "is not a valid pattern ('shards'): it may use {name}, {split}, {index}, {number}, "
            "{count}, {records}",
        ),
        ("{split}.tfrec", "gives several files one name: add {split} and {index}"),
    ],
)
def test_files_that_cannot_be_named(refused, pattern, why):
    sentence = refused({"features": {"image": IMAGE}, "shard_name": pattern})
    assert sentence.startswith(f"convention.shard_name {pattern!r} {why}")


def test_features_of_another_type_than_their_fields(refused):
    sentence = refused(
        {"features": {"image": IMAGE, "name": {"field": "label_text", "type": "int64"}}}
    )
    assert sentence == (
        "convention.features.name does not have the type of the field 'label_text': "
        "write {field: label_text, type: bytes}"
    )


def test_fields_that_no_image_of_the_source_has(refused):
    sentence = refused(
        {"features": {"image": IMAGE, "left": {"field": "xmin", "type": "float", "shape": [None]}}}
    )
    assert sentence.startswith(
        "convention.features.left.field: the source gives no 'xmin', only channels,"
    )


def test_several_labels_where_one_is_stored(refused):
    source = {"source": {"kind": "manifest", "columns": {"uri": "path", "labels": "tags"}}}
    sentence = refused(
        {"features": {"image": IMAGE, "class": {"field": "label", "type": "int64", "default": -1}}},
        source,
    )
    assert sentence.startswith(
        "source.columns.labels gives several labels, and the convention (the user's own) stores one"
    )
