import io
import json
import struct

import pytest
from crc32c import crc32c
from PIL import Image

from recordmill.schemas.features import Example
from recordmill.storage.tfrecord_file import masked

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def write_examples(path, examples):
    frames = []
    for fields in examples:
        example = Example()
        for key, value in fields.items():
            entry = example.features.feature[key]
            values = value if isinstance(value, list) else [value]
            kind = {bytes: entry.bytes_list, int: entry.int64_list, float: entry.float_list}[
                type(values[0])
            ]
            kind.value.extend(values)
        record = example.SerializeToString()
        length = struct.pack("<Q", len(record))
        checksums = [struct.pack("<I", masked(crc32c(part))) for part in (length, record)]
        frames += [length, checksums[0], record, checksums[1]]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(frames))


def picture(number):
    stream = io.BytesIO()
    Image.new("RGB", (32, 24), (20 * number, 90, 90)).save(stream, "JPEG")
    return stream.getvalue()


@pytest.fixture
def datasets(tmp_path):
    for split, numbers in (("train", range(8)), ("test", range(8, 10))):
        images = [{"image": picture(number), "label": number % 3} for number in numbers]
        write_examples(tmp_path / "old-dataset" / f"{split}-00000-of-00001.tfrecord", images)
    others = [
        {"image/encoded": picture(number), "image/class/label": 4} for number in range(10, 20)
    ]
    write_examples(tmp_path / "other-dataset" / "all.record", others)
    odd = [
        {"x": bytes([number] * 192), "y": number % 2, "id": f"n/{number}".encode(), "weight": 0.5}
        for number in range(4)
    ]
    write_examples(tmp_path / "odd.tfrecord", odd)
    vectors = [
        {"sha256": b"%064x" % number, "feature": [0.5, number / 4], "label": number % 2}
        for number in range(30)
    ]
    write_examples(tmp_path / "vectors" / "shard_0", vectors[::2])
    write_examples(tmp_path / "vectors" / "shard_1", vectors[1::2])
    write_examples(
        tmp_path / "numbered" / "a.tfrecord", [{"image": picture(n), "label": n} for n in (0, 1)]
    )
    return tmp_path


def test_the_page_does_what_it_says(datasets, run_page):
    run_page("docs/tfrecords_in.md", datasets)

    def marker(name):
        return json.loads((datasets / name / "recordmill.json").read_text(encoding="utf-8"))

    def counts(name):
        return {split: said["records"] for split, said in marker(name)["splits"].items()}

    assert counts("new-dataset") == {"train": 8, "test": 2}
    assert marker("merged-dataset")["labels"] == {"0": 0, "1": 1, "2": 2, "4": 3}
    assert sum(counts("merged-dataset").values()) == 20
    assert marker("odd-dataset")["labels"] == {"cat": 0, "dog": 1}
    assert marker("named")["labels"] == {"dog": 0, "cat": 1}
    assert sum(counts("new-vectors").values()) == 30
    assert marker("new-vectors")["features"]["feature"]["kind"] == "float"
    rows = [
        json.loads(line)
        for path in (datasets / "odd-dataset").rglob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    assert {row["key"] for row in rows} == {"n/0", "n/1", "n/2", "n/3"}
