import json

from make_settings import make_settings

from recordmill.schemas.dataset.side_files import row_to_json
from recordmill.schemas.settings.dataset import ShardSettings
from recordmill.storage.dataset_files import read_rows
from recordmill.transforms.publishing.companions.describe_dataset import describe_croissant


def test_files_and_rows_of_each_split_are_described(stage, say):
    (name, text), *others = say(describe_croissant, stage()).items()
    described = json.loads(text)
    assert (name, others) == ("croissant.json", [])
    assert (described["name"], described["description"]) == (
        "pets",
        "7 images as tf.train.Example in TFRecord files.",
    )
    assert {each["@id"]: each["includes"] for each in described["distribution"]} == {
        "shards-train": ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"],
        "sidecars-train": [
            "sidecars/train-00000-of-00002.tfrecord.jsonl",
            "sidecars/train-00001-of-00002.tfrecord.jsonl",
        ],
        "shards-test": ["test-00000-of-00001.tfrecord"],
        "sidecars-test": ["sidecars/test-00000-of-00001.tfrecord.jsonl"],
    }
    train, test = described["recordSet"]
    assert [each["@id"] for each in (train, test)] == ["images-train", "images-test"]
    assert train["field"][4]["source"] == {
        "fileSet": {"@id": "sidecars-train"},
        "extract": {"column": "width"},
    }


def test_its_columns_are_the_sidecars(stage, say):
    dataset = stage()
    described = json.loads(say(describe_croissant, dataset)["croissant.json"])
    columns = [field["name"] for field in described["recordSet"][1]["field"]]
    row = row_to_json(next(read_rows(dataset.path_of(dataset.shards[0].report, "jsonl"))))
    assert set(columns) <= set(row)


def test_a_name_is_not_a_pattern(stage, say):
    dataset = stage(make_settings(shards=ShardSettings(name="[{split}]{index}")))
    described = json.loads(say(describe_croissant, dataset)["croissant.json"])
    assert described["distribution"][0]["includes"] == ["[[]train]0", "[[]train]1"]
