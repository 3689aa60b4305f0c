import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.sources.fixed_records import FixedRecords
from recordmill.transforms.inputs.sources.source import list_file


def fixed_records(**settings: Any) -> FixedRecords:
    return FixedRecords(**settings).settle(iter(()), [].append)


CIFAR10 = fixed_records(preset="cifar10")
LAYOUT = {"header": 4, "height": 2, "width": 3, "channels": 3}
TINY = fixed_records(preset="", labels=("kind", "quality"), label="kind", class_names=5, **LAYOUT)


@pytest.fixture
def refer(tmp_path):
    """The references of a file of so many bytes, of which none is ever there to be read."""

    def run(
        source, size, name="data_batch_1.bin", names="cat\ndog\n", names_file="batches.meta.txt"
    ):
        if names:
            (tmp_path / names_file).write_text(names, encoding="utf-8")
        file = ImageRef(f"in/{name}", str(tmp_path / name), size, "7")
        return file, list(list_file(source, name, file))

    return run


def test_each_record_is_a_byte_range_of_a_file_that_is_not_read(refer):
    file, (announced, *refs) = refer(CIFAR10, 3 * 3073)
    assert announced == ClassNames.of(file, {"cat": 0, "dog": 1})
    assert refs == [
        replace(
            file,
            key=f"in/data_batch_1.bin#{index}",
            split="train",
            offset=index * 3073,
            length=3073,
        )
        for index in range(3)
    ]


@given(count=st.integers(1, 50), header=st.integers(0, 20))
def test_ranges_follow_one_another_from_the_header_to_the_end(count, header):
    source = replace(TINY, header=header)
    size = header + count * source.record_bytes
    refs = list(list_file(source, "x.bin", ImageRef("x.bin", "/nowhere/x.bin", size)))
    assert [ref.offset for ref in refs] == list(range(header, size, source.record_bytes))
    assert {ref.length for ref in refs} == {2 + 18}
    assert len({ref.key for ref in refs}) == count


@pytest.mark.parametrize(
    ("source", "name", "split"),
    [
        (CIFAR10, "data_batch_5.bin", "train"),
        (CIFAR10, "test_batch.bin", "test"),
        (fixed_records(preset="cifar100", class_names=100), "train.bin", "train"),
        (fixed_records(preset="cifar100", class_names=100), "test.bin", "test"),
        (TINY, "anything.bin", "all"),
    ],
)
def test_names_of_files_give_the_splits(refer, source, name, split):
    _, refs = refer(source, source.header + source.record_bytes, name)
    assert refs[-1].split == split


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("batches.meta.txt", "class_names"),
        ("readme.html", "not_included"),
        ("x.bin", "not_included"),
    ],
)
def test_other_files_are_ignored(refer, name, reason):
    file, refs = refer(CIFAR10, 3073, name)
    assert refs == [file.notice("ignored", reason)]


@pytest.mark.parametrize(
    ("source", "size", "detail"),
    [
        (
            CIFAR10,
            30_730_001,
            "30,730,001 bytes are not a header of 0 bytes and whole records of 3,073 bytes: the "
            "last has 1",
        ),
        (
            CIFAR10,
            3072,
            "3,072 bytes are not a header of 0 bytes and whole records of 3,073 bytes: the last "
            "has 3,072",
        ),
        (
            CIFAR10,
            0,
            "0 bytes are not a header of 0 bytes and whole records of 3,073 bytes: the last has 0",
        ),
        (
            TINY,
            4,
            "4 bytes are not a header of 4 bytes and whole records of 20 bytes: the last has 0",
        ),
        (
            TINY,
            43,
            "43 bytes are not a header of 4 bytes and whole records of 20 bytes: the last has 19",
        ),
    ],
)
def test_a_file_of_another_length_is_rejected_with_the_remainder(refer, source, size, detail):
    file, refs = refer(source, size)
    assert refs == [file.notice("rejected", "wrong_length", detail)]


def test_without_their_file_the_classes_of_a_preset_are_called_by_their_numbers(refer):
    file, (note, announced, ref) = refer(CIFAR10, 3073, names="")
    detail = "there is no batches.meta.txt, so the 10 classes are called 0 to 9"
    assert note == replace(file, key="in/").notice("warning", "class_names", detail)
    assert announced == ClassNames.of(file, {str(number): number for number in range(10)})
    assert (ref.key, ref.status) == ("in/data_batch_1.bin#0", "")
    fine = fixed_records(preset="cifar100", label="coarse_label")
    _, (note, *_) = refer(fine, 3074, name="train.bin", names="")
    assert note.detail == "there is no coarse_label_names.txt, so the 20 classes are called 0 to 19"


def test_the_numbers_of_other_labels_do_not_stand_in_for_missing_names(refer):
    """The classes of `fine_label` are 100, not the 20 that the missing file would name."""
    source = fixed_records(preset="cifar100", class_names_file="coarse_label_names.txt")
    _, (note,) = refer(source, 3074, name="train.bin", names="")
    assert (note.status, note.reason) == ("fatal", "class_names")


def test_without_a_file_of_names_that_the_user_named_nothing_begins(refer):
    file, refs = refer(fixed_records(class_names_file="names.txt"), 3073, names="")
    missing = "there is no names.txt to name the classes (source.class_names_file)"
    assert refs == [
        file.notice("fatal", "class_names", f"{missing}: correct that, or set source.class_names")
    ]


def test_splits_of_folders_stay_what_they_are(refer):
    file = ImageRef("in/data_batch_1.bin", "/nowhere/data_batch_1.bin", 3073, split="holdout")
    (ref,) = list_file(
        replace(CIFAR10, class_names_file="", class_names=10), "data_batch_1.bin", file
    )
    assert ref.split == "holdout"


def test_given_names_need_no_file(refer):
    source = replace(CIFAR10, class_names_file="", class_names=("a", "b"))
    assert source.classes() == {"a": 0, "b": 1}
    _, refs = refer(source, 3073, names="")
    assert [ref.status for ref in refs] == [""]


@given(
    data=st.data(),
    order=st.sampled_from(["planar", "interleaved"]),
    channels=st.sampled_from([1, 3]),
)
def test_pixels_and_labels_are_what_was_written(tmp_path_factory, data, order, channels):
    images = data.draw(arrays(np.uint8, (3, 2, 4, channels)))
    labels = data.draw(arrays(np.uint8, (3, 2)))
    stored = images.transpose(0, 3, 1, 2) if order == "planar" else images
    path = tmp_path_factory.mktemp("records") / "x.bin"
    content = b"head" + b"".join(
        label.tobytes() + image.tobytes() for label, image in zip(labels, stored, strict=True)
    )
    path.write_bytes(content)
    source = replace(TINY, height=2, width=4, channels=channels, order=order)
    refs = list(list_file(source, "x.bin", ImageRef("x.bin", str(path), len(content))))
    for ref, image, (kind, quality) in zip(refs, images, labels, strict=True):
        found = source.read(ref, 10**6)
        assert found.image.tolist() == image.tolist()
        assert (found.label, found.fields) == (kind, {"quality": quality})
        assert found.data == content[ref.offset : ref.offset + ref.length]


def test_cifar_100s_two_labels_are_a_choice(refer):
    fine, coarse = (
        fixed_records(preset="cifar100"),
        fixed_records(preset="cifar100", label="coarse_label"),
    )
    assert (fine.record_bytes, fine.label, fine.class_names_file) == (
        3074,
        "fine_label",
        "fine_label_names.txt",
    )
    assert (coarse.label, coarse.class_names_file) == ("coarse_label", "coarse_label_names.txt")
    assert [feature.key for feature in fine.features()] == ["coarse_label"]
    assert [feature.key for feature in coarse.features()] == ["fine_label"]
    file, refs = refer(coarse, 3074, "train.bin", "fish\n", "coarse_label_names.txt")
    assert refs[0] == ClassNames.of(file, {"fish": 0})


def test_records_without_labels(tmp_path):
    source = fixed_records(preset="", labels=(), height=1, width=2, channels=1)
    (tmp_path / "x.bin").write_bytes(b"\1\2\3\4")
    refs = list(list_file(source, "x.bin", ImageRef("x.bin", str(tmp_path / "x.bin"), 4)))
    contents = [source.read(ref, 100) for ref in refs]
    assert [(each.label, each.image.tolist()) for each in contents] == [
        (None, [[[1], [2]]]),
        (None, [[[3], [4]]]),
    ]


def test_a_record_that_has_gone_since_is_rejected(tmp_path):
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(4 + 19))
    (ref,) = list_file(TINY, "x.bin", ImageRef("x.bin", str(path), 4 + 20))
    with pytest.raises(
        Rejected, match="changed: 20 bytes when it was listed, less when it was read"
    ):
        TINY.read(ref, 1000)


def test_a_preset_says_all_and_what_is_given_goes_before_it():
    assert replace(CIFAR10) == CIFAR10
    other = fixed_records(preset="cifar10", data={"train": "*.bin"}, height=64)
    assert (other.data, other.record_bytes) == ({"train": "*.bin"}, 1 + 64 * 32 * 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preset": ""}, "source.height x width x channels is 0 x 0 x 0: give 1 or 3 channels"),
        ({"preset": "", "height": 2, "width": -1}, "is 2 x -1 x 0"),
        ({"preset": "cifar10", "channels": 4}, "is 32 x 32 x 4"),
        ({"preset": "cifar100", "labels": ("a", "a")}, "source.labels must name source.label"),
        (
            {"preset": "cifar100", "label": "x"},
            "source.labels must name source.label, which is 'x'",
        ),
        (
            {"preset": "cifar10", "class_names": 2, "class_names_file": "x"},
            "give either source.class_names",
        ),
        ({"preset": "", "height": 2, "width": 2, "channels": 1}, "give either source.class_names"),
        (
            {"preset": "cifar10", "class_names": ("a", "a")},
            "source.class_names: two classes are named 'a'",
        ),
    ],
)
def test_an_impossible_layout_raises_and_names_the_key(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        FixedRecords(**settings)
