import hashlib
from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import pytest
from apache_beam.io.fileio import ReadableFile
from apache_beam.io.filesystem import FileMetadata
from apache_beam.typehints.decorators import TypeCheckError

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.transforms.inputs.sources.fixed_records import FixedRecords
from recordmill.transforms.steps.elements import RawImage, RejectedImage
from recordmill.transforms.steps.read_images import ReadImages


@pytest.fixture
def folder(tmp_path):
    for key in ("cat/0.jpg", "dog/1.jpg", "stray.jpg"):
        (tmp_path / "photos" / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "photos" / key).write_bytes(key.encode())
    return tmp_path / "photos"


def test_paths_get_keys_below_the_root_and_labels_by_folder(folder, run_step):
    paths = [str(folder / "cat/0.jpg"), folder / "dog/1.jpg"]
    assert run_step(paths, ReadImages(folder, "folder")) == (
        [RawImage("cat/0.jpg", b"cat/0.jpg", "cat"), RawImage("dog/1.jpg", b"dog/1.jpg", "dog")],
        [],
    )


def test_without_a_root_the_path_is_the_key(folder, run_step, monkeypatch):
    monkeypatch.chdir(folder)
    assert run_step(["cat/0.jpg"], ReadImages())[0] == [RawImage("cat/0.jpg", b"cat/0.jpg")]


def test_files_of_fileio(folder, run_step):
    path = str(folder / "cat/0.jpg")
    file = ReadableFile(FileMetadata(path, 9))
    expected = [RawImage("cat/0.jpg", b"cat/0.jpg")]
    assert run_step([file], ReadImages(f"{folder}/"))[0] == expected


def test_pairs_and_a_function_of_the_key(run_step):
    good, _ = run_step([("a-7", b"x")], ReadImages(label=lambda key: key.partition("-")[2]))
    assert good == [RawImage("a-7", b"x", "7")]


class Row(NamedTuple):
    key: str
    bytes: bytes
    label: int


def test_mappings_and_rows(folder, run_step):
    rows = [
        {"key": "own", "uri": str(folder / "cat/0.jpg"), "label": "tabby", "group": "g"},
        {"uri": str(folder / "dog/1.jpg"), "split": "test"},
        {"bytes": b"x", "features": {"source_id": "7"}},
        beam.Row(key="row", bytes=b"y", label=None),
        Row("named", b"z", 3),
    ]
    digest = hashlib.sha256(b"x").hexdigest()
    assert run_step(rows, ReadImages(folder)) == (
        [
            RawImage("own", b"cat/0.jpg", "tabby", group="g"),
            RawImage("dog/1.jpg", b"dog/1.jpg", split="test"),
            RawImage(digest, b"x", features={"source_id": "7"}),
            RawImage("row", b"y"),
            RawImage("named", b"z", 3),
        ],
        [],
    )


def test_references_and_their_batches(folder, run_step):
    ref = ImageRef("k", str(folder / "cat/0.jpg"), 9, label="cat", group="g", split="test")
    notices = [
        ref.replace(key="r").notice("rejected", "no_class", "why"),
        ref.replace(key="i").notice("ignored", "hidden"),
    ]
    image = RawImage("k", b"cat/0.jpg", "cat", group="g", split="test")
    batch = ReferenceBatch.of([ref, *notices])
    assert run_step([ref, batch], ReadImages()) == (
        [image, image],
        [RejectedImage("r", "no_class", "why")],
    )


def test_a_source_reads_pixels_and_labels(tmp_path, run_step):
    (tmp_path / "data.bin").write_bytes(bytes([7, *range(6)]))
    source = FixedRecords(
        preset="", labels=("label",), label="label", height=1, width=2, channels=3, class_names=9
    )
    ref = ImageRef("data.bin/0", str(tmp_path / "data.bin"), 7, length=7)
    (image,), rejected = run_step([ref], ReadImages(source=source))
    assert rejected == []
    assert image == RawImage("data.bin/0", bytes([7, *range(6)]), 7)
    assert image.pixels.tolist() == [[[0, 2, 4], [1, 3, 5]]]


def test_a_listing_that_fails_raises(run_step):
    fatal = ImageRef("", "photos").notice("fatal", "missing_input", "the input cannot be read")
    with pytest.raises(ValueError, match="photos: the input cannot be read"):
        run_step([ReferenceBatch.of([fatal])], ReadImages())


def test_what_cannot_be_read_is_rejected(folder, run_step):
    elements = [
        str(folder / "gone.jpg"),
        str(folder / "stray.jpg"),
        str(folder.parent / "outside.jpg"),
        {"key": "empty", "uri": None},
        {"key": "dog/large", "bytes": bytes(11)},
    ]
    good, rejected = run_step(elements, ReadImages(folder, "folder", max_bytes=10))
    assert good == []
    assert [(each.key, each.reason) for each in rejected] == [
        ("gone.jpg", "no_class"),
        ("stray.jpg", "no_class"),
        (f"{folder.parent}/outside.jpg", "outside_root"),
        ("empty", "bad_row"),
        ("dog/large", "too_many_bytes"),
    ]
    (gone,) = run_step([str(folder / "gone.jpg")], ReadImages(folder))[1]
    assert gone == RejectedImage("gone.jpg", "vanished", "there is no such file")


def test_another_element_is_an_error(run_step):
    # A runner refuses it by its type, before the step sees it.
    refused = "ReadImages cannot read a int: give it paths, files of|violation at ReadImages"
    with pytest.raises((TypeError, TypeCheckError), match=refused):
        run_step([3], ReadImages())


def test_a_text_in_the_place_of_bytes_is_an_error(run_step):
    with pytest.raises(TypeError, match="the bytes of an image are a str: give bytes"):
        run_step([{"key": "a", "bytes": "text"}], ReadImages())


def test_another_word_for_the_label_is_an_error():
    with pytest.raises(ValueError, match="label is 'folders': give \"folder\", a function"):
        ReadImages(label="folders")


@pytest.mark.parametrize("element", [3, b"bytes", ("key", "text")])
def test_wrong_types_are_found_when_the_pipeline_is_built(element):
    with pytest.raises(TypeCheckError, match="Input type hint violation at ReadImages"):
        beam.Pipeline() | beam.Create([element]) | ReadImages()


@pytest.mark.parametrize(
    "elements",
    [
        [Path("a.jpg")],
        [Path("a.jpg"), "b.jpg"],
        ["a.jpg", {"uri": "b.jpg"}, ("c", b"bytes"), Row("d", b"bytes", 1), beam.Row(uri="e.jpg")],
        [ImageRef("k", "a.jpg", 9), ReferenceBatch.of([])],
    ],
)
def test_mixed_elements_are_taken_when_the_pipeline_is_built(elements):
    # A runner checks types, and finds one type for all elements, often a union.
    beam.Pipeline() | beam.Create(elements) | ReadImages()


def test_one_wrong_type_among_others_is_found_when_the_pipeline_is_built():
    with pytest.raises(TypeCheckError, match="Input type hint violation at ReadImages"):
        beam.Pipeline() | beam.Create(["a.jpg", 3]) | ReadImages()


def test_its_settings_are_display_data():
    step = ReadImages("photos", "folder")
    assert step.display_data() == {"root": "photos", "label": "folder", "max_bytes": "268435456"}
