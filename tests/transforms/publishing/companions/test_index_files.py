import os

from make_settings import make_settings

from recordmill.transforms.publishing.companions.describe_dataset import describe_index


def test_without_being_asked_for_there_is_no_index(stage, say):
    assert say(describe_index, stage()) == {}


def test_an_index_has_offset_and_framed_length_of_each_record(stage, say):
    dataset = stage(make_settings(index_files=True))
    assert say(describe_index, dataset) == {
        "sidecars/test-00000-of-00001.tfrecord.idx": b"0 116\n116 117\n",
        "sidecars/train-00000-of-00002.tfrecord.idx": b"0 116\n116 117\n233 119\n",
        "sidecars/train-00001-of-00002.tfrecord.idx": b"0 116\n116 117\n",
    }
    sizes = {
        shard.entry.name: os.path.getsize(dataset.path_of(shard.report, "tfrecord"))
        for shard in dataset.shards
    }
    assert list(sizes.values()) == [233, 352, 233]  # where the last records end
