import base64
import io
import json
import struct
import sys
import tarfile

import pytest
from PIL import Image

from benchmarks import frames, promises
from recordmill.schemas.features import Example


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return promises.make_inputs(tmp_path_factory.mktemp("work"))


def stored(source, **changed):
    """What a program stores that keeps all files as they are."""
    paths = sorted(source.rglob("*.jpg"))
    label = {path: int(path.parent.name.removeprefix("class_")) for path in paths}
    return [
        promises.Stored(path.read_bytes(), label[path], "train")._replace(**changed)
        for path in paths
    ]


def test_the_input_is_awkward_as_described(inputs):
    first, second = inputs
    assert len({path.read_bytes() for path in first.rglob("*.jpg")}) == 280
    assert (len(list(first.rglob("*.jpg"))), len(list(second.rglob("*.jpg")))) == (300, 280)
    with Image.open(second / promises.CUT) as image, pytest.raises(OSError, match="truncated"):
        image.load()


def test_judgment_of_files_as_they_are(inputs):
    said = promises.judge(stored(inputs[0]), inputs[0])
    assert said == {
        "records": "300 of 300, 280 images",
        "labels": "300 right",
        "rotated": "as stored, orientation kept",
        "splits": "none",
        "copies across splits": "",
    }


def test_judgment_of_what_is_wrong(inputs):
    records = stored(inputs[0], label=0)
    split = [
        each._replace(split="test") if each in records[:at] else each
        for at, each in enumerate(records[:-1])
    ]
    said = promises.judge(split, inputs[0])
    assert (said["records"], said["labels"], said["splits"]) == (
        "299 of 300, 279 images",
        "94 right",
        "test, train",
    )
    assert said["copies across splits"] == "20 of 20"
    upright = io.BytesIO()
    Image.new("RGB", (48, 64)).save(upright, "JPEG")
    rotated = stored(inputs[0])[0]._replace(image=upright.getvalue())
    assert promises.judge([rotated], inputs[0])["rotated"] == "upright"


def framed(data):
    length = struct.pack("<Q", len(data))
    return (
        length
        + struct.pack("<I", frames.masked(length))
        + data
        + struct.pack("<I", frames.masked(data))
    )


def test_records_are_read_from_examples_and_tar_files(tmp_path):
    for split, image in (
        ("train", b"\xff\xd8 jpeg"),
        ("test", base64.urlsafe_b64encode(b"\xfb\xff pixels")),
    ):
        example = Example()
        example.features.feature["image"].bytes_list.value.append(image)
        example.features.feature["label"].int64_list.value.append(7)
        (tmp_path / f"{split}-0.tfrecord").write_bytes(framed(example.SerializeToString()))
    (tmp_path / ".staging").mkdir()
    (tmp_path / ".staging/train-1.tfrecord").write_bytes(b"incomplete")
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for name, content in (
            ("a/1.jpg", b"\xff\xd8 tar"),
            ("a/1.json", json.dumps({"label": 3}).encode()),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    assert sorted(promises.read(tmp_path)) == [
        (b"\xfb\xff pixels", 7, "test"),
        (b"\xff\xd8 jpeg", 7, "train"),
        (b"\xff\xd8 tar", 3, ""),
    ]


def test_a_program_that_is_killed_leaves_incomplete_files(tmp_path):
    program = "import pathlib, sys, time; out = pathlib.Path(sys.argv[4]); out.mkdir(); "
    program += "(out / 'a.tfrecord').write_bytes(b'half'); time.sleep(60)"
    command = [sys.executable, "-c", program]
    assert promises.kill(command, tmp_path, tmp_path / "out") == "incomplete files: 1"
    staging = program.replace("out.mkdir()", "out.mkdir(); out /= '.staging'; out.mkdir()")
    assert (
        promises.kill([*command[:2], staging], tmp_path, tmp_path / "out")
        == "nothing that readers take"
    )
    assert (
        promises.kill([sys.executable, "-c", ""], tmp_path, tmp_path / "out")
        == "ended before it could be killed"
    )
