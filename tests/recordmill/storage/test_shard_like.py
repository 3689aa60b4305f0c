import pytest

from recordmill.schemas.conventions import convention_names, load_convention
from recordmill.schemas.shard_name import fill_pattern
from recordmill.storage.shard_like import looks_like_shard


@pytest.mark.parametrize("name", convention_names())
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_every_conventions_shards_look_like_some(name, ending):
    pattern = load_convention(name).shard_name
    filled = fill_pattern(pattern, name="pets", split="train", index=3, count=12, records=5)
    assert looks_like_shard(filled + ending)


@pytest.mark.parametrize(
    "name",
    [
        "00-192x192-798.tfrec",
        "a.TFRecords",
        "a.tf_record",
        "train.record",
        "shard_0",
        "train.tfrecord-00000-of-00001",
        "01of02",
    ],
)
def test_the_names_that_people_use_do(name):
    assert looks_like_shard(name)


@pytest.mark.parametrize("name", ["records", "a.recording", "tfrecords", "shard_x", "hazard_7", "shards_1", "7.jpg"])
def test_other_names_do_not(name):
    assert not looks_like_shard(name)
