import hashlib
from dataclasses import replace

import crashing_verifier
import pytest

from recordmill.reading import verify_images, verify_processes
from recordmill.reading.dataset import Dataset, StoredShard
from recordmill.reading.example import ParsedExample, expect, find_image
from recordmill.reading.verify_images import check_pixels
from recordmill.reading.verify_processes import ShardWorkers
from recordmill.schemas.rejection import Rejected

STRANGER = expect(Dataset("/x", "files", ()))


def judge(record, expected=STRANGER):
    return check_pixels(ParsedExample(record), expected)


def test_an_image_is_what_its_record_says(example, draw):
    image = draw(1, (24, 16))
    sound = {"image/encoded": image, "image/height": 16, "image/width": 24}
    assert judge(example(sound)) is None
    digest = hashlib.sha256(image).hexdigest().encode()
    assert judge(example(sound, **{"image/key/sha256": digest})) is None
    other = ("sha256", "the image's sha256 differs from image/key/sha256")
    assert judge(example(sound, **{"image/key/sha256": digest[::-1]})) == other
    size = ("pixels", "the image has 24 x 16 pixels and the record says 24 x 17")
    assert judge(example(sound, **{"image/height": 17})) == size
    kind, problem = judge(example(image=image[:100]))
    assert (kind, problem[:39]) == ("pixels", "the image cannot be decoded: truncated:")


def test_raw_pixels_are_not_an_image(example):
    assert judge(example(image=bytes(3072), label=1)) is None
    assert find_image(ParsedExample(example(image=bytes(3072))), STRANGER) == ("", b"")


def test_the_tutorials_image_is_found(example, draw):
    assert find_image(ParsedExample(example(image_raw=draw(1), label=1)), STRANGER) == (
        "image_raw",
        draw(1),
    )


def test_larger_images_are_not_decoded(example, draw):
    kind, problem = judge(example(image=draw(1)), replace(STRANGER, max_pixels=100))
    assert (kind, problem[:45]) == ("pixels", "the image cannot be decoded: too_many_pixels:")


def test_a_long_reason_is_cut(example, draw, monkeypatch):
    def refuse(*_):
        raise Rejected("decode", "truncated", "x" * 5000)

    monkeypatch.setattr(verify_images, "prepare_image", refuse)
    _, problem = judge(example(image=draw(1)))
    assert len(problem) == 1000


@pytest.mark.runner
def test_an_image_that_crashes_the_process_is_counted_from(
    tmp_path, frame, example, draw, monkeypatch
):
    monkeypatch.setattr(verify_processes, "serve_shards", crashing_verifier.serve_shards)
    images = [draw(1), draw(2), draw(3)]
    records = [
        frame(example(image=image + bytes(each)))
        for image, each in zip(images, padding(images), strict=True)
    ]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(records))
    with ShardWorkers(1) as workers:
        shard = StoredShard("a", "a.tfrecord", str(tmp_path / "a.tfrecord"))
        check = workers.verify(shard, STRANGER, "pixels", False, lambda records: None)
    expected = "a.tfrecord: reading it ended the verifier's process after 2 records (exit code 7)"
    assert [str(finding) for finding in check.findings] == [expected]


def padding(images):
    """Bytes after the images' ends: only the third has a length that 7 divides."""
    return [(1 if at < 2 else 0) + -len(image) % 7 for at, image in enumerate(images)]
