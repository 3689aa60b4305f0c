import pytest

from recordmill.reading.dataset import open_dataset
from recordmill.reading.inspect_dataset import extract_images, read_record
from recordmill.schemas.errors import LoadError


def test_images_are_written_as_they_are(published, tmp_path, draw):
    dataset = open_dataset(str(published["none"]))
    assert extract_images(dataset, str(tmp_path / "images")) == 24
    written = sorted(path.read_bytes() for path in (tmp_path / "images").rglob("*.jpeg"))
    assert written == sorted(draw(n) for n in range(24))
    assert sorted(path.name for path in (tmp_path / "images").iterdir()) == ["test", "train"]


def test_some_only(published, tmp_path):
    dataset = open_dataset(str(published["gzip"]))
    assert extract_images(dataset, str(tmp_path / "one"), [read_record(dataset, "test", 2)]) == 1
    (path,) = (tmp_path / "one" / "test").iterdir()
    assert path.name == "000002.jpeg"


def test_names_never_leave_the_folder(tmp_path, frame, example, draw):
    (tmp_path / "x%2f..%2f.tfrecord").write_bytes(frame(example(image=draw(1, kind="PNG"))))
    assert extract_images(open_dataset(str(tmp_path)), str(tmp_path / "images")) == 1
    (path,) = (path for path in (tmp_path / "images").rglob("*") if path.is_file())
    assert path.name == "000000.png"


def test_what_cannot_be_done_is_one_sentence(published, tmp_path, frame, example):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    with pytest.raises(LoadError, match="is not empty"):
        extract_images(open_dataset(str(published["none"])), str(tmp_path / "full"))
    (tmp_path / "a.tfrecord").write_bytes(frame(example(a=1)))
    with pytest.raises(LoadError, match="that was read has an encoded image"):
        extract_images(open_dataset(str(tmp_path / "a.tfrecord")), str(tmp_path / "images"))
