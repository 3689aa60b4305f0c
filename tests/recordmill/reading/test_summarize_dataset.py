import json
from dataclasses import replace

from recordmill.reading.dataset import open_dataset
from recordmill.reading.inspect_dataset import FeatureSummary, summarize_dataset


def test_the_marker_and_the_records_say_the_same(published):
    dataset = open_dataset(str(published["none"]))
    stated, seen = summarize_dataset(dataset), summarize_dataset(replace(dataset, whole=False))
    assert (stated.scanned, seen.scanned) == (False, True)
    for name in ("train", "test"):
        one, other = stated.splits[name], seen.splits[name]
        assert (one.files, one.records, one.bytes, one.labels) == (
            other.files,
            other.records,
            other.bytes,
            other.labels,
        )
    assert sum(sum(split.labels.values()) for split in seen.splits.values()) == 24
    assert {key: (one.kind, one.shape) for key, one in stated.features.items()} == {
        key: (one.kind, one.shape) for key, one in seen.features.items()
    }


def test_a_stranger_is_what_its_records_hold(tmp_path, frame, example):
    records = [
        example(label=3, image=b"x" * 50, boxes=[0.5, 0.25]),
        example(label=3, image=b"y", mixed=1),
        example(label=4, image=b"z", boxes=[0.5] * 4, mixed=b"text"),
    ]
    content = b"".join(map(frame, records)) + frame(b"\xff") + b"\1"
    (tmp_path / "some_train.tfrecord").write_bytes(content)
    summary = summarize_dataset(open_dataset(str(tmp_path)))
    split = summary.splits["train"]
    assert (split.files, split.records, split.damages, split.bytes) == (1, 3, 2, len(content))
    assert split.labels == {"3": 2, "4": 1}
    assert summary.features == {
        "boxes": FeatureSummary("float", "[2..4]", 2),
        "image": FeatureSummary("bytes", "[]", 3),
        "label": FeatureSummary("int64", "[]", 3),
        "mixed": FeatureSummary("int64 or bytes", "[]", 2),
    }
    said = summary.as_dict()
    assert json.loads(json.dumps(said))["splits"]["train"]["labels"] == {"3": 2, "4": 1}
