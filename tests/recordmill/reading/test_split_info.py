import json
import subprocess
import sys

import pytest

from recordmill.reading.dataset import describe_split
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def test_samples_classes_label_names_and_descriptions_as_slims_dataset_reader_gives_them(
    animal_dataset,
):
    info = describe_split(str(animal_dataset))
    assert info.num_examples == 24
    assert info.num_classes == 3
    assert info.class_names == ("cat", "dog", "eel")
    assert info.labels_to_names == {0: "cat", 1: "dog", 2: "eel"}
    assert info.items_to_descriptions == {
        feature.key: feature.meaning for feature in load_convention("default").example_features
    }
    assert info.label_depth == 3


def test_shards_and_compression_are_those_of_the_marker(animal_dataset):
    info = describe_split(f"{animal_dataset}/", "train")
    assert info.folder == str(animal_dataset)
    assert [shard.path for shard in info.shards] == sorted(
        map(str, animal_dataset.glob("*.tfrecord"))
    )
    assert [shard.bytes for shard in info.shards] == [
        path.stat().st_size for path in sorted(animal_dataset.glob("*.tfrecord"))
    ]
    assert (info.compression, info.raw) == ("none", False)
    assert info.key_of("encoded") == "image/encoded"
    assert info.key_of("nothing") is None


def test_class_weights_make_classes_count_alike(animal_dataset):
    info = describe_split(str(animal_dataset))
    weights = info.class_weights
    assert weights == {0: 24 / (3 * 13), 1: 24 / (3 * 7), 2: 24 / (3 * 4)}
    counts = {0: 13, 1: 7, 2: 4}
    assert [counts[label] * weight for label, weight in weights.items()] == pytest.approx([8.0] * 3)
    assert sum(counts[label] * weight for label, weight in weights.items()) == pytest.approx(24)


def test_a_class_without_records_has_no_weight(publish):
    labels = {"background": 1, "a": 2, "b": 3}
    info = describe_split(str(publish([], [{}, {}], labels=labels, classes={"a": 2, "b": 0})))
    assert info.class_weights == {2: 1.0}
    assert info.num_classes == 3
    assert info.label_depth == 4


def test_one_size_is_distinguished_from_several(animal_dataset, uneven_dataset):
    assert describe_split(str(animal_dataset)).image_size == (16, 24)
    assert describe_split(str(uneven_dataset)).image_size is None


def test_rejected_rows_have_no_size_and_lost_sidecars_none(publish):
    rows = [{"key": "x", "rejected": "empty"}, {"key": "y", "height": 5, "width": 7}]
    folder = publish([], [{}], rows=rows, shards=1)
    assert describe_split(str(folder)).image_size == (5, 7)
    next((folder / "sidecars").iterdir()).unlink()
    assert describe_split(str(folder)).image_size is None


def test_nothing_to_open_is_one_sentence(tmp_path, animal_dataset):
    with pytest.raises(LoadError, match=r"does not exist or is empty: name a dataset's folder"):
        describe_split(str(tmp_path))
    (tmp_path / "train-00000-of-00001.tfrecord").write_bytes(b"")
    with pytest.raises(
        LoadError, match=r"holds no recordmill\.json: name the folder of a finished dataset$"
    ):
        describe_split(str(tmp_path))
    with pytest.raises(LoadError, match=r"split is 'val', and .* has train: name one of them"):
        describe_split(str(animal_dataset), "val")
    with pytest.raises(LoadError, match=r"which its recordmill\.json describes: name the folder$"):
        describe_split(str(next(animal_dataset.glob("*.tfrecord"))))


def test_a_marker_that_is_none_is_one_sentence(publish):
    folder = publish([Feature("a", "int64", "a", "")], [{"a": 1}])
    marker = json.loads((folder / "recordmill.json").read_text())
    del marker["features"]["a"]["field"]
    (folder / "recordmill.json").write_text(json.dumps(marker))
    with pytest.raises(
        LoadError,
        match=r"cannot be understood: features\.a\.field is missing: restore it, or convert",
    ):
        describe_split(str(folder))
    (folder / "recordmill.json").write_text("{")
    with pytest.raises(LoadError, match="cannot be understood"):
        describe_split(str(folder))


def test_a_description_needs_no_tensorflow(animal_dataset, tmp_path):
    script = (
        f"import sys, recordmill; recordmill.describe_split({str(animal_dataset)!r}).image_size; "
    )
    script += "sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path).returncode == 0


def test_labels_that_no_example_has_are_not_features(publish):
    features = [
        Feature("image", "bytes", "encoded", ""),
        Feature("label", "int64", "label", "", default=-1),
        Feature("objects/label", "int64", "box_labels", "", many=True),
    ]
    records = [{"encoded": b"x", "box_labels": [1, 1, 0]}] * 2
    folder = publish(
        features,
        records,
        labels={"cat": 0, "dog": 1},
        classes={"": 2},
        instances={"dog": 4, "cat": 2},
    )
    info = describe_split(str(folder))
    assert [feature.key for feature in info.features] == ["image", "objects/label"]
    assert info.class_counts == {"dog": 4, "cat": 2}
    assert info.class_weights == {0: 6 / (2 * 2), 1: 6 / (2 * 4)}
