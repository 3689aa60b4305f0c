import pytest
from carried_annotations import labels_in

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.sources.imagefolder import ImageFolder
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.tables.manifest_columns import FeatureColumn


def test_rows_name_images_next_to_them(tmp_path):
    (tmp_path / "train" / "in").mkdir(parents=True)
    (tmp_path / "train" / "in" / "1.jpg").write_bytes(b"image")
    (tmp_path / "train" / "metadata.jsonl").write_text(
        '{"input_file_name": "in/1.jpg", "tags": ["a"], "n": 2}\n'
    )
    features = {"n": FeatureColumn(column="n", type="int64")}
    source = ImageFolder(file_name="input_file_name", labels="tags", features_from=features)
    file = ImageRef(
        "train/metadata.jsonl", str(tmp_path / "train" / "metadata.jsonl"), split="train"
    )
    classes, ref = list_file(source, "metadata.jsonl", file)
    assert classes.names == ("a",)
    assert (ref.key, ref.split, ref.features) == (
        "train/in/1.jpg",
        "train",
        '{"n":2}',
    )
    assert labels_in(ref) == ["a"]
    assert source.read(ref, 100).data == b"image"
    assert [each.key for each in source.features()] == ["n"]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"file_name": ""}, "source.file_name is empty"),
    ],
)
def test_settings_that_cannot_be(settings, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        ImageFolder(**settings)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("file,label", "it has no column 'file_name' (source.file_name)"),
        ("file_name", "it has no column 'label' (source.label)"),
    ],
)
def test_a_missing_column_is_reported_by_this_sources_own_key(tmp_path, header, sentence):
    (tmp_path / "metadata.csv").write_text(f"{header}\n")
    (ref,) = list_file(
        ImageFolder(label="label"), "metadata.csv", ImageRef("m", str(tmp_path / "metadata.csv"))
    )
    assert ref.status == "fatal"
    assert ref.detail.startswith(sentence)


def test_it_says_what_its_images_may_have():
    assert ImageFolder().annotations() == {}
    assert ImageFolder(label="l").annotations() == {}
    both = ImageFolder(labels="tags", objects="o").annotations()
    assert both == {"boxes": "source.objects", "labels": "source.labels"}
