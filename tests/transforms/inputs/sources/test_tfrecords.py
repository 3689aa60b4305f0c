import base64
import gzip
import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from carried_annotations import boxes_in
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from recordmill.annotations.boxes import boxes_of
from recordmill.schemas.conventions import (
    Convention,
    ConventionFeature,
    convention_names,
    load_convention,
)
from recordmill.schemas.features import Example, Feature, encode_example
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.storage.tfrecord_file import masked
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.sources.tfrecords import (
    Tfrecords,
    boxes_from_fields,
    decode_text,
    find_convention,
    own_features,
    parse_entries,
    read_fields,
    read_image_of,
    read_kept,
    require_convention,
    text_in,
    value_of,
)

PATH = "old/train-00000-of-00001.tfrecord"


def frame(record):
    length = struct.pack("<Q", len(record))
    checksums = [struct.pack("<I", masked(crc32c(part))) for part in (length, record)]
    return length + checksums[0] + record + checksums[1]


def encode(convention, **fields):
    return encode_example(
        load_convention(convention).example_features, {"encoded": b"image", **fields}
    )


@pytest.fixture
def refer(tmp_path):
    """The references of a file of records, and its own."""

    def run(content, source=None, path=PATH, split=""):
        content = b"".join(map(frame, content)) if isinstance(content, list) else content
        uri = tmp_path / "records"
        uri.write_bytes(content)
        file = ImageRef(f"in/{path}", str(uri), len(content), "1", split=split)
        return file, list(list_file(source or Tfrecords(), path, file))

    return run


def test_a_record_is_the_byte_range_of_its_data(refer):
    records = [
        encode("default", label=1, label_text=b"dog", filename=b"1.jpg"),
        encode("slim", label=3),
    ]
    file, (one, other, announced) = refer(records)
    expected = replace(file, split="train", packing="", size=file.size)
    assert one == replace(
        expected,
        key=f"in/{PATH}/000000",
        offset=12,
        length=len(records[0]),
        label="dog",
        features='{"filename":"1.jpg"}',
    )
    place = 16 + len(records[0]) + 12
    assert other == replace(
        expected, key=f"in/{PATH}/000001", offset=place, length=len(records[1]), label="3"
    )
    assert announced == ClassNames.of(file, {"3": 3})
    content = Tfrecords().read(one, 1000)
    assert (content.data, content.image, content.label, content.fields) == (
        b"image",
        b"image",
        None,
        {},
    )


def test_a_gzip_file_is_recognized_by_its_bytes(refer):
    records = [encode("keras", label=number) for number in range(3)]
    _file, (*refs, _) = refer(gzip.compress(b"".join(map(frame, records))))
    assert [(ref.packing, ref.length) for ref in refs] == [
        ("gzip_records", len(record)) for record in records
    ]
    assert [Tfrecords().read(ref, 1000).image for ref in refs] == [b"image"] * 3


def test_a_zlib_file_is_recognized_by_its_bytes(refer):
    records = [encode("keras", label=number) for number in range(3)]
    for level in range(10):
        packed = zlib.compress(b"".join(map(frame, records)), level)
        _file, (*refs, _) = refer(packed)
        assert [ref.label for ref in refs] == ["0", "1", "2"]
        assert [Tfrecords().read(ref, 1000).image for ref in refs] == [b"image"] * 3
        _file, (*_, cut, _) = refer(packed[:-3])
        assert (cut.reason, cut.detail.rpartition(": ")[2]) == (
            "bad_tfrecord",
            "the file was truncated",
        )


def test_all_places_of_a_damaged_file_are_one_rejection(refer):
    frames = [bytearray(frame(encode("keras", label=number))) for number in range(10)]
    for number in (1, 3, 5, 7):
        frames[number][9] ^= 1
    _, (*refs, damage, announced) = refer(b"".join(frames))
    assert [ref.label for ref in refs] == ["0", "2", "4", "6", "8", "9"]
    assert (damage.key, damage.reason) == (f"in/{PATH}/000001", "bad_tfrecord")
    wrong = "the length does not match its checksum"
    places = [f"record {n} at byte {n * len(frames[0])}: {wrong}" for n in (1, 3, 5)]
    assert damage.detail == f"{'; '.join(places)}, and 1 more"
    assert announced.names == ("0", "2", "4", "6", "8", "9")


def sequence(record, **lists):
    """A SequenceExample with the context of an Example."""
    packed = Example()
    for key, steps in lists.items():
        packed.features.feature[key.replace("__", "/")].bytes_list.value.extend(steps)
    content = packed.features.SerializeToString()
    assert len(content) < 128
    return record + b"\x12" + bytes([len(content)]) + content


def test_feature_lists_of_sequence_examples_are_counted_and_no_way_keeps_them(refer):
    record = encode("default", label=1, label_text=b"dog")
    one, two = sequence(record, image__caption=[b"a"]), sequence(record, ids=[b"1"], z=[b"2"])
    file, (*refs, captions, ids, z) = refer([one, two, one])
    assert [ref.label for ref in refs] == ["dog"] * 3
    kinds = [f"feature_lists of SequenceExamples: {key}" for key in ("image/caption", "ids", "z")]
    assert [captions, ids, z] == [
        file.notice("not_stored", kind, count=count)
        for kind, count in zip(kinds, (2, 1, 1), strict=True)
    ]
    assert Tfrecords().remedy_for(kinds) is None
    assert Tfrecords().remedy_for([*kinds, "x"]) == "source.keep copies features of the input"


def labeled(kind, *values, key="image/class/label", text=b""):
    example = Example.FromString(encode("default", filename=b"1.jpg"))
    getattr(example.features.feature[key], kind).value.extend(values)
    if text:
        example.features.feature["image/class/text"].bytes_list.value.append(text)
    return example.SerializeToString()


NOTED = "image/class/label is {}, int64 was expected"


@pytest.mark.parametrize(
    ("kind", "value", "label", "note"),
    [
        ("bytes_list", b"1", "1", "bytes"),
        ("bytes_list", b" 12 ", "12", "bytes"),
        ("bytes_list", b"-3", "-3", "bytes"),
        ("bytes_list", b"2.0", "2", "bytes"),
        ("float_list", 1.0, "1", "float"),
        ("int64_list", 1, "1", ""),
    ],
)
def test_labels_that_are_written_as_text_or_floats_are_read_as_numbers(
    refer, kind, value, label, note
):
    record = labeled(kind, value)
    file, (ref, *notes, announced) = refer([record])
    assert (ref.label, announced) == (label, ClassNames.of(file, {label: int(label)}))
    read = f"{NOTED.format(note)}: the labels of {{images}} were read as numbers"
    assert notes == ([file.notice("noted", read)] if note else [])
    assert Tfrecords().read(ref, 1000).image == b"image"
    _, (declared, *_) = refer([record], Tfrecords(convention="default"))
    assert declared.label == label


@pytest.mark.parametrize("text", [b"cat", b"1a", "1½".encode(), b"infant", b"class 1.5"])
@pytest.mark.parametrize("convention", ["auto", "default"])
def test_labels_that_are_written_as_other_text_are_names_of_classes(refer, text, convention):
    record = labeled("bytes_list", text)
    source = Tfrecords(convention=convention)
    file, (ref, noted) = refer([record], source)
    assert (ref.status, ref.label) == ("", text.decode())
    assert noted == file.notice(
        "noted",
        f"{NOTED.format('bytes')}: the labels of {{images}} were read as names of classes",
    )
    assert source.read(ref, 1000).image == b"image"


@pytest.mark.parametrize("kind", ["bytes_list", "float_list"])
def test_a_list_without_a_value_is_not_a_label(refer, kind):
    example = Example.FromString(labeled(kind))
    getattr(example.features.feature["image/class/label"], kind).SetInParent()
    _, (ref,) = refer([example.SerializeToString()])
    assert (ref.status, ref.label) == ("", "")


def test_an_empty_text_is_not_a_label(refer):
    file, (ref, noted) = refer([labeled("bytes_list", b"")])
    assert (ref.status, ref.label) == ("", "")
    assert noted == file.notice("noted", f"{NOTED.format('bytes')}: {{images have}} no label")


@pytest.mark.parametrize("convention", ["auto", "default"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bytes", [b"1.5"]),
        ("bytes", [b" -2e-3"]),
        ("bytes", [b"NaN"]),
        ("bytes", [b"cat", b"dog"]),
        ("float", [1.5]),
        ("float", [float("nan")]),
        ("float", [1e20]),
    ],
)
def test_labels_that_are_not_classes_reject_their_example(refer, kind, values, convention):
    _, (ref,) = refer([labeled(f"{kind}_list", *values)], Tfrecords(convention=convention))
    keep = f"add image/class/label: {kind} to source.keep and set a convention without it"
    advice = f"correct it, or {keep}"
    more = "" if convention == "default" else f", and its value is not a class: {advice}"
    wrong = f"feature image/class/label is of type {kind}_list, not int64_list"
    assert (ref.reason, ref.detail) == ("bad_example", f"record 0 at byte 0: {wrong}{more}")


def test_a_value_that_is_copied_need_not_be_a_label(refer):
    source = Tfrecords(keep={"image/class/label": "float"})
    _, (ref,) = refer([labeled("float_list", 1.5)], source)
    assert (ref.status, ref.label) == ("", "")
    assert source.read(ref, 1000).fields == {"image/class/label": 1.5}


def test_boxes_with_labels_of_text(refer):
    boxes = {"xmin": [0.0], "ymin": [0.0], "xmax": [1.0], "ymax": [1.0], "box_labels": [1]}
    example = Example.FromString(encode("tf_object_detection", **boxes))
    labels = example.features.feature["image/object/class/label"]
    labels.bytes_list.value[:] = [b"7"]
    _, (read, noted, _) = refer([example.SerializeToString()])
    assert boxes_in(read).labels == ["7"]
    assert noted.reason.startswith("image/object/class/label is bytes, int64 was expected: the")
    labels.bytes_list.value[:] = [b"cat"]
    file, (read, noted, announced) = refer([example.SerializeToString()])
    assert boxes_in(read).labels == ["cat"]
    assert noted.reason.endswith("the labels of {images} were read as names of classes")
    assert announced == ClassNames.of(file, ["cat"])
    labels.bytes_list.value[:] = [b"1.5"]
    _, (ref,) = refer([example.SerializeToString()])
    assert (ref.reason, ref.detail) == (
        "bad_example",
        "record 0 at byte 0: feature image/object/class/label is of type bytes_list, not "
        "int64_list, and its value is not a class: correct it, or add image/object/class/label: "
        "bytes to source.keep and set a convention without it",
    )


@pytest.mark.parametrize(
    ("kind", "value"), [("bytes_list", b"x"), ("bytes_list", b"1"), ("float_list", 1.5)]
)
def test_a_label_that_the_name_replaces_is_not_lost(refer, kind, value):
    _, (ref,) = refer([labeled(kind, value, text=b"dog")])
    assert (ref.label, ref.reason) == ("dog", "")


@pytest.mark.parametrize("fields", [{"label": -1}, {"label": -1, "label_text": b""}])
def test_minus_one_is_not_a_label_where_numbers_have_names(refer, tmp_path, fields):
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    records = [encode("default", **fields), encode("default", label=1)]
    file, (none, dog, announced) = refer(records, path="records")
    assert [(ref.status, ref.label) for ref in (none, dog)] == [("", ""), ("", "dog")]
    assert announced == ClassNames.of(file, {"cat": 0, "dog": 1})


def test_minus_one_with_an_empty_name_is_not_a_label(refer):
    records = [encode("default", label=-1, label_text=b""), encode("default", label=-1)]
    _, (empty, number, _) = refer(records)
    assert (empty.label, number.label) == ("", "-1")


def test_a_class_may_have_the_number_minus_one(refer, tmp_path):
    (tmp_path / "labels.txt").write_text("-1:odd\n1:even\n")
    _, (odd, _) = refer([encode("default", label=-1)], path="records")
    assert odd.label == "odd"


def test_minus_one_is_not_the_class_of_a_box(refer, tmp_path):
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    boxes = {"xmin": [0.0], "ymin": [0.0], "xmax": [1.0], "ymax": [1.0], "box_labels": [-1]}
    _, (ref,) = refer([encode("tf_object_detection", **boxes)], path="records")
    assert (ref.reason, ref.detail) == (
        "bad_example",
        "record 0 at byte 0: it has a box whose class is -1, which stands for none",
    )


def test_second_images_are_counted_as_such(refer):
    def with_mask(*values, key="image/mask"):
        example = Example.FromString(encode("default", label=1, label_text=b"dog"))
        example.features.feature[key].bytes_list.value.extend(values)
        return example.SerializeToString()

    png, jpeg = b"\x89PNG\r\n\x1a\n...", b"\xff\xd8\xff\xe0"
    records = [
        *(with_mask(png), with_mask(jpeg, png), with_mask(b"BMW"), with_mask(png, b"text")),
        *(with_mask(), with_mask(jpeg, key="image/right")),
    ]
    file, (*_, one, two, three) = refer(records)
    assert {one, two, three} == {
        file.notice("not_stored", "second images: image/mask", count=2),
        file.notice("not_stored", "image/mask", count=3),
        file.notice("not_stored", "second images: image/right", count=1),
    }
    keeps = Tfrecords(keep={"image/mask": "bytes[]", "image/right": "bytes[]"})
    assert [ref.status for ref in refer(records, keeps)[1]] == [""] * 6
    assert Tfrecords().remedy_for(["second images: image/mask"]) == (
        "source.keep copies features of the input"
    )


def test_a_feature_that_no_convention_takes_for_a_label_is_not_stored(refer):
    file, (_, other) = refer([labeled("bytes_list", b"1", key="some/label")])
    assert other == file.notice("not_stored", "some/label")


def test_classes_keep_their_numbers_where_that_is_asked_for(refer):
    records = [
        encode("inception", label=7, label_text=b"dog"),
        encode("inception", label=2, label_text=b"cat"),
    ]
    file, refs = refer(records, Tfrecords(keep_ids=True))
    assert refs[2:] == [ClassNames.of(file, {"dog": 7, "cat": 2})]
    assert [ref.label for ref in refs[:2]] == ["dog", "cat"]
    assert refer(records)[1] == refs[:2]


def test_numbers_have_the_names_that_are_given(refer):
    source = Tfrecords(convention="slim", class_names=("cat", "dog"))
    _, refs = refer(
        [encode("slim", label=1), encode("slim", label=0), encode("slim", label=2)], source
    )
    assert [(ref.label, ref.status) for ref in refs[:3]] == [
        ("dog", ""),
        ("cat", ""),
        ("", "rejected"),
    ]
    assert "its label is 2, where source.class_names names those of 0 to 1" in refs[2].detail
    assert source.classes() == {"cat": 0, "dog": 1}
    assert Tfrecords(convention="inception", class_names=("cat",)).classes() == {"cat": 1}
    assert Tfrecords(first_label=5, class_names=("cat",)).classes() == {"cat": 5}


def test_numbers_have_the_names_of_a_file_next_to_them(refer, tmp_path):
    (tmp_path / "labels.txt").write_text("0:dog\n1:cat\n7:emu\n")
    records = [
        encode("slim", label=7),
        encode("default", label=5, label_text=b"owl"),
        encode("slim", label=2),
    ]
    file, (one, two, three, announced) = refer(records, path="records")
    assert (one.label, two.label, three.reason) == ("emu", "owl", "bad_example")
    assert three.detail.endswith("its label is 2, where labels.txt names those of 0 to 7")
    assert announced == ClassNames.of(file, {"dog": 0, "cat": 1, "emu": 7})
    _, (*_, named) = refer(records, Tfrecords(keep_ids=False), path="records")
    assert named == ClassNames.of(file, ["cat", "dog", "emu"])
    _, (_, _, third, numbered) = refer(records, Tfrecords(class_names_file=""), path="records")
    assert (third.label, numbered) == ("2", ClassNames.of(file, {"7": 7, "2": 2}))


def test_a_file_of_names_that_cannot_be_read_fails_the_run(refer, tmp_path):
    (tmp_path / "labels.txt").write_text("a\na\n")
    _, (ref,) = refer([encode("slim", label=7)], path="records")
    assert (ref.status, ref.reason, ref.detail) == (
        "fatal", "bad_labels", "labels.txt names no classes: two classes are named 'a'"
    )  # fmt: skip


def test_vectors_are_rows(refer):
    vector = Example()
    vector.features.feature["sha256"].bytes_list.value.append(b"abc")
    vector.features.feature["feature"].float_list.value.extend([0.5, 2.0])
    vector.features.feature["label"].int64_list.value.append(4)
    source = Tfrecords(convention="feature_vector", key_feature="sha256")
    assert (source.contents, Tfrecords(convention="slim").contents, Tfrecords().contents) == (
        "rows",
        "images",
        "images",
    )
    assert source.features() == (
        Feature("feature", "float", "feature", "as in the input", many=True),
    )
    record = vector.SerializeToString()
    file, (ref, announced) = refer([record], source)
    assert (ref.key, ref.label, announced) == ("abc", "4", ClassNames.of(file, {"4": 4}))
    content = source.read(ref, 1000)
    assert (content.data, content.image) == (record, None)
    assert content.fields == {"sha256": None, "file_sha256": b"abc", "feature": [0.5, 2.0]}


def test_boxes_come_with_their_classes(refer):
    record = encode(
        "tf_object_detection",
        **{
            "xmin": [0.0],
            "ymin": [0.25],
            "xmax": [0.5],
            "ymax": [1.0],
            "is_crowd": [1],
            "area": [12.5],
        },
        box_label_texts=[b"cat"],
        box_labels=[17],
        source_id=b"77",
    )
    file, (ref, announced) = refer([record], Tfrecords(keep_ids=True))
    values = {"is_crowd": [1], "area": [12.5]}
    boxes = boxes_of([(0.0, 0.25, 0.5, 1.0)], ["cat"], values=values, fractions=True)
    assert (ref.features, boxes_in(ref)) == ('{"source_id":"77"}', boxes)
    assert announced == ClassNames.of(file, {"cat": 17})


def test_annotations_that_are_not_read_are_counted_by_kind(refer):
    boxes = {side: [0.5] for side in ("xmin", "ymin", "xmax", "ymax")}
    record = encode("tf_object_detection", **boxes, box_label_texts=[b"cat"], box_labels=[17])
    example = Example.FromString(record)
    example.features.feature["image/object/difficult"].int64_list.value.extend([])
    example.features.feature["image/object/mask"].bytes_list.value.append(b"png")
    example.features.feature["image/object/keypoint/x"].float_list.value.append(0.5)
    _, refs = refer([example.SerializeToString()])
    assert {ref.reason: ref.count for ref in refs if ref.status == "not_stored"} == {
        "Examples with masks": 1,
        "Examples with key points": 1,
    }
    assert Tfrecords().remedy_for(["Examples with masks"]) is None


def test_features_that_nothing_reads_are_counted(refer):
    example = Example.FromString(encode("default", label=1, label_text=b"dog"))
    example.features.feature["image/object/mask"].bytes_list.value.append(b"png")
    example.features.feature["id"].int64_list.value.append(7)
    records = [example.SerializeToString(), encode("default", label=1, label_text=b"dog")]
    _, refs = refer(records)
    assert {ref.reason: ref.count for ref in refs if ref.status == "not_stored"} == {
        "image/object/mask": 1,
        "id": 1,
    }
    _, refs = refer(records, Tfrecords(keep={"image/object/mask": "bytes"}, key_feature="id"))
    assert [ref for ref in refs if ref.status == "not_stored"] == []


def test_keys_splits_and_further_features_come_from_the_examples(refer):
    example = Example.FromString(encode("keras", label=1))
    for key, value in {"id": "ü/7".encode(), "part": b"TEST", "caption": b"\xff\x00"}.items():
        example.features.feature[key].bytes_list.value.append(value)
    keep = {"caption": "bytes", "scores": "float[]"}
    source = Tfrecords(key_feature="id", split_feature="part", keep=keep)
    _, (ref, _) = refer([example.SerializeToString()], source)
    assert (ref.key, ref.split) == ("ü/7", "TEST")
    assert source.read(ref, 1000).fields == {"caption": b"\xff\x00", "scores": []}
    assert source.features() == (
        Feature("caption", "bytes", "caption", "as in the input"),
        Feature("scores", "float", "scores", "as in the input", many=True),
    )
    _, (ref,) = refer([encode("keras", label=1)], Tfrecords(key_feature="id"))
    assert ref.detail == "record 0 at byte 0: feature id is missing or empty"


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("flowers_validation_00000-of-00005.tfrecord", "validation"),
        ("test/flowers-train.tfrecord-00000-of-00001", "train"),
        ("val/data.tfrecord", "val"),
        ("data.tfrecord", ""),
    ],
)
def test_the_split_is_a_word_in_the_name_or_else_in_the_path(refer, path, word):
    assert refer([encode("keras", label=1)], path=path)[1][0].split == word
    assert refer([encode("keras", label=1)], path=path, split="given")[1][0].split == "given"


def test_raw_pixels_of_a_declared_convention_become_an_image(refer):
    pixels = np.arange(24, dtype=np.uint8)
    own = Convention(
        features={
            "image": ConventionFeature(field="encoded", type="bytes"),
            "y": ConventionFeature(field="label", type="int64"),
        }
    )
    source = Tfrecords(convention=own, shape=(2, 4, 3))
    example = Example()
    example.features.feature["image"].bytes_list.value.append(pixels.tobytes())
    example.features.feature["y"].int64_list.value.append(4)
    _, (ref, _) = refer([example.SerializeToString()], source)
    content = source.read(ref, 1000)
    assert (ref.label, content.data) == ("4", pixels.tobytes())
    np.testing.assert_array_equal(content.image, pixels.reshape(2, 4, 3))
    with pytest.raises(
        Rejected, match="bad_example: its image has 24 bytes, where 3 x 4 x 3 are declared"
    ):
        replace(source, shape=(3, 4, 3)).read(ref, 1000)


def test_damage_is_one_rejected_reference_and_reading_goes_on(refer):
    frames = [frame(encode("keras", label=number)) for number in range(5)]
    content = bytearray(b"".join(frames))
    content[len(frames[0]) + 20] ^= 1
    content[3 * len(frames[0]) + 2] ^= 1
    _, (one, data, two, last, length, _) = refer(bytes(content))
    assert [ref.status for ref in (one, data, two, last, length)] == [
        "",
        "rejected",
        "",
        "",
        "rejected",
    ]
    assert (data.reason, length.reason) == ("bad_record", "bad_tfrecord")
    assert length.key == f"in/{PATH}/000003"
    place = len(frames[0])
    assert data.detail.startswith(f"record 1 at byte {place}: the data do not match their checksum")
    assert length.detail.startswith(
        f"record 3 at byte {3 * place}: the length does not match its checksum"
    )
    assert (last.key, last.offset, last.label) == (f"in/{PATH}/000004", 4 * place + 12, "4")


def test_a_cut_file_keeps_what_is_before_the_cut(refer):
    frames = [frame(encode("keras", label=number)) for number in range(3)]
    for packed in (False, True):
        content = b"".join(frames)[:-5]
        _, (*refs, cut, _) = refer(gzip.compress(content) if packed else content)
        assert [ref.label for ref in refs] == ["0", "1"]
        assert (cut.status, cut.reason) == ("rejected", "bad_tfrecord")
        assert "the file ends inside the record's" in cut.detail


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (b"", "rejected", "bad_tfrecord"),
        (b"no records" * 9, "rejected", "bad_tfrecord"),
        (gzip.compress(b"", mtime=0), "ignored", "no_records"),
        (gzip.compress(b"", mtime=0)[:-1], "rejected", "bad_tfrecord"),
        (zlib.compress(b""), "ignored", "no_records"),
    ],
)
def test_a_file_without_records_is_never_nothing(refer, content, status, reason):
    _file, (ref,) = refer(content)
    assert (ref.status, ref.reason) == (status, reason)


def test_a_gzip_file_of_nothing_but_empty_records_is_one_rejected_reference(refer):
    _, (ref,) = refer(gzip.compress(frame(b"") * 300_000))
    assert (ref.status, ref.reason) == ("rejected", "bad_tfrecord")
    assert ref.detail == (
        "record 0 at byte 0: the gzip file unpacks to more than 100 times its size"
    )


def test_a_gzip_file_that_was_cut_says_no_place_where_there_is_none(refer):
    content = b"".join(
        frame(encode("default", label=number, label_text=b"x")) for number in range(3)
    )
    _, refs = refer(gzip.compress(content)[:-6])
    assert [ref.detail for ref in refs if ref.status == "rejected"][-1].endswith(
        "the gzip stream ends early: the file was truncated"
    )
    assert not [ref.detail for ref in refs if "-1" in ref.detail]


def test_a_record_of_another_convention_is_one_rejected_reference(refer):
    source = Tfrecords(convention="inception")
    _, (bad, other, good, _) = refer(
        [encode("keras", label=1), b"\xff", encode("inception", label=1)], source
    )
    assert [(ref.status, ref.reason) for ref in (bad, other)] == [("rejected", "bad_example")] * 2
    assert bad.detail == "record 0 at byte 0: it has no image: there is no feature image/encoded"
    assert good.status == ""


@given(data=st.data())
def test_whatever_the_damage_references_are_inside_the_file(data, tmp_path_factory):
    content = bytearray(
        b"".join(frame(encode("default", label=number, label_text=b"x")) for number in range(4))
    )
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(1, len(content))) :]
    path = tmp_path_factory.getbasetemp() / "damaged.tfrecord"
    path.write_bytes(content)
    refs = list(list_file(Tfrecords(), "damaged.tfrecord", ImageRef("k", str(path), len(content))))
    assert (
        len({ref.key for ref in refs if ref.status != "classes"})
        == sum(ref.status != "classes" for ref in refs)
        > 0
    )
    for ref in refs:
        if not ref.status:
            assert 12 <= ref.offset <= ref.offset + ref.length <= len(content)
            assert Tfrecords().read(ref, 10**6).image == b"image"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split": "("}, r"source\.split '\('"),
        ({"convention": "slimm"}, r"source\.convention: there is no convention 'slimm'"),
        ({"class_names": ("a",)}, r"source\.class_names needs source\.first_label"),
        (
            {"class_names": ("a",), "first_label": 0, "class_names_file": "x"},
            r"source\.class_names and source",
        ),
        (
            {"class_names": ("a", "a"), "first_label": 1},
            r"^source\.class_names: two classes are named 'a'$",
        ),
        ({"shape": (1, 2)}, r"source\.shape is \[1, 2\]: give height, width, and 1 or 3 channels"),
        ({"shape": (1, 2, 4)}, r"source\.shape is"),
    ],
)
def test_settings_that_cannot_be_name_their_key(settings, message):
    with pytest.raises(ValueError, match=message):
        Tfrecords(**settings)


def test_boxes_may_come_where_there_are_images():
    assert Tfrecords().annotations() == Tfrecords(convention="keras").annotations() == {"boxes": ""}
    assert Tfrecords(convention="feature_vector").annotations() == {}


@pytest.fixture
def make_example():
    """A serialized Example of values: bytes, an int or a float, or a list of them."""

    def make(values):
        example = Example()
        for key, value in values.items():
            many = value if isinstance(value, list) else [value]
            entry = example.features.feature[key]
            kinds = {bytes: entry.bytes_list, int: entry.int64_list, float: entry.float_list}
            if many:
                kinds[type(many[0])].value.extend(many)
        return example.SerializeToString()

    return make


VALUES = {"bytes": b"x", "int64": 7, "float": 0.5}
ENCODED = [
    name
    for name in convention_names()
    if load_convention(name).stores == "jpeg"
    and any(feature.field == "encoded" for feature in load_convention(name).example_features)
]


def record_of(name, without=()):
    features = [
        feature for feature in load_convention(name).example_features if feature.key not in without
    ]
    record = {
        each.field: [VALUES[each.kind]] if each.many else VALUES[each.kind]
        for each in features
        if each.field
    }
    return encode_example(features, record)


def convention_of(entries):
    """The convention that is found for an Example; else, it is rejected."""
    kinds = frozenset((key, entry.WhichOneof("kind")) for key, entry in entries.items())
    return require_convention(entries, find_convention(kinds))


@pytest.mark.parametrize("name", ENCODED)
def test_each_conventions_records_are_known_by_their_keys(name):
    entries = parse_entries(record_of(name))
    assert convention_of(entries) is load_convention(name)
    expected = {
        each.field: [VALUES[each.kind]] if each.many else VALUES[each.kind]
        for each in load_convention(name).example_features
        if each.field
    }
    assert read_fields(entries, load_convention(name)) == expected


def test_further_keys_and_missing_ones_with_defaults_do_not_matter(make_example):
    slim = parse_entries(record_of("slim", without=("image/format", "image/width")))
    assert convention_of(slim) is load_convention("slim")
    more = make_example({"image": b"x", "label": 1, "more": 0.5})
    assert convention_of(parse_entries(more)) is load_convention("keras")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"a": b"x", "b": 1},
            r"its keys do not fit any known convention of images \(a, b\): set source\.convention",
        ),
        ({"image": 1, "label": 1}, "do not fit any known convention of images"),
        ({"image": b"x", "label": b"cat"}, "do not fit any known convention of images"),
    ],
)
def test_other_records_are_of_no_known_convention(make_example, values, message):
    with pytest.raises(Rejected, match=message):
        convention_of(parse_entries(make_example(values)))


@pytest.mark.parametrize("record", [b"", b"\xff\xff", b"\x0a\x00"])
def test_records_that_are_not_examples_are_reported(record):
    with pytest.raises(Rejected, match=r"the record is not a tf\.train\.Example"):
        parse_entries(record)


CONVENTION = Convention(
    features={
        "i": ConventionFeature(type="bytes", field="encoded"),
        "n": ConventionFeature(type="int64", field="label"),
        "f": ConventionFeature(type="float", field="xmin", shape=(None,)),
        "c": ConventionFeature(type="bytes", value="RGB"),
    },
)


def test_fields_are_read_by_their_keys(make_example):
    entries = parse_entries(
        make_example({"i": b"x", "f": [0.5, 1.0], "n": [], "other": b"y", "c": b"any"})
    )
    assert read_fields(entries, CONVENTION) == {"encoded": b"x", "xmin": [0.5, 1.0]}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"n": 1}, "it has no image: there is no feature i"),
        ({"i": 1}, "feature i is of type int64_list, not bytes_list"),
        ({"i": [b"x", b"y"]}, "feature i holds 2 values where one is expected"),
    ],
)
def test_features_that_do_not_fit_the_convention_are_reported(make_example, values, message):
    with pytest.raises(Rejected, match=message):
        read_fields(parse_entries(make_example(values)), CONVENTION)


def test_features_are_passed_on_with_their_types(make_example):
    entries = parse_entries(make_example({"a": b"\xff", "b": [1, 2], "c": [1.0]}))
    kept = Tfrecords(keep={"a": "bytes", "b": "int64[]", "c": "float", "d": "bytes[]"}).kept
    assert read_kept(entries, kept) == {
        "a": b"\xff",
        "b": [1, 2],
        "c": 1.0,
        "d": [],
    }
    assert [value_of(entries, feature) for feature in kept] == [b"\xff", [1, 2], 1.0, None]


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ({"z": "bytes"}, r"feature z has no value, where source\.keep expects one"),
        ({"b": "int64"}, "feature b holds 2 values"),
        ({"b": "bytes[]"}, "feature b is of type int64_list, not bytes_list"),
    ],
)
def test_features_that_are_not_as_declared_are_reported(make_example, keep, message):
    with pytest.raises(Rejected, match=message):
        read_kept(parse_entries(make_example({"b": [1, 2]})), Tfrecords(keep=keep).kept)


def test_a_key_is_a_text_or_an_integer(make_example):
    entries = parse_entries(
        make_example({"a": "u\u0308".encode(), "b": 7, "c": b"\xff", "d": b"", "e": 1.0})
    )
    assert (text_in(entries, "a"), text_in(entries, "b")) == ("ü", "7")
    for key, message in (
        ("c", "feature c is not UTF-8"),
        ("d", "missing or empty"),
        ("z", "missing"),
        ("e", "is of type float"),
    ):
        with pytest.raises(Rejected, match=message):
            text_in(entries, key)
    assert (decode_text(None, "it"), decode_text(b"a", "it")) == ("", "a")


def test_examples_without_images(make_example):
    convention = load_convention("feature_vector")
    entries = parse_entries(make_example({"sha256": b"abc", "feature": [0.5, 2.0], "label": 3}))
    assert read_fields(entries, convention) == {
        "file_sha256": b"abc",
        "feature": [0.5, 2.0],
        "label": 3,
    }
    assert [feature.field for feature in own_features(convention)] == ["feature"]
    assert own_features(load_convention("default")) == own_features(load_convention("plain")) == ()
    with pytest.raises(Rejected, match=r"^\w+: there is no feature feature$"):
        read_fields(parse_entries(make_example({"label": 3})), convention)
    with pytest.raises(Rejected, match=r"\(feature, label, sha256\): set source\.convention$"):
        convention_of(entries)


SIDES = {"xmin": [0.0, 0.25], "ymin": [0.5, 0.5], "xmax": [0.5, 1.0], "ymax": [1.0, 0.75]}
BOXES = [(0.0, 0.5, 0.5, 1.0), (0.25, 0.5, 1.0, 0.75)]


def name_of(text, number):
    return text or f"class {number}"


def test_sides_become_boxes():
    fields = {
        **SIDES,
        "box_label_texts": [b"cat", b"dog"],
        "box_labels": [1, 2],
        "is_crowd": [0, 1],
        "area": [2.0],
    }
    expected = boxes_of(BOXES, ["cat", "dog"], values={"is_crowd": [0, 1]}, fractions=True)
    assert boxes_from_fields(fields, name_of) == expected


def test_boxes_in_one_list_are_top_left_bottom_right():
    fields = {"bbox": [0.5, 0.0, 1.0, 0.5, 0.5, 0.25, 0.75, 1.0], "box_labels": [1, 2]}
    assert boxes_from_fields(fields, name_of) == boxes_of(
        BOXES, ["class 1", "class 2"], fractions=True
    )


def test_no_boxes_are_boxes_and_no_features_are_none():
    empty = {side: [] for side in SIDES}
    assert boxes_from_fields({**empty, "is_crowd": []}, name_of) == boxes_of(
        [], [], values={"is_crowd": []}, fractions=True
    )
    assert boxes_from_fields({"encoded": b"x"}, name_of) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"bbox": [0.0] * 5, "box_labels": [1]}, "differ in length"),
        ({**SIDES, "xmax": [0.5], "box_labels": [1, 2]}, "differ in length"),
        ({**SIDES, "xmax": None, "box_labels": [1, 2]}, "differ in length"),
        ({**SIDES, "box_labels": [1]}, "differ in length"),
        ({**SIDES, "box_label_texts": [b"a"] * 3}, "differ in length"),
        (SIDES, "it has boxes without labels"),
        ({**SIDES, "box_label_texts": [b"a", b"\xff"]}, "the class of a box is not UTF-8"),
    ],
)
def test_mismatched_lists_are_reported(fields, message):
    with pytest.raises(Rejected, match=message):
        boxes_from_fields(
            {key: value for key, value in fields.items() if value is not None}, name_of
        )


PIXELS = np.arange(36, dtype=np.uint8).reshape(3, 4, 3) * 7
SIZE = {"height": 3, "width": 4, "channels": 3}


def test_an_encoded_image_is_its_bytes():
    assert read_image_of({"encoded": b"image", **SIZE}, False, (9, 9, 3)) == (b"image", b"image")


@pytest.mark.parametrize(
    ("fields", "shape"),
    [
        ({"encoded": PIXELS.tobytes()}, (3, 4, 3)),
        ({"encoded": PIXELS.tobytes(), **SIZE}, ()),
        ({"encoded": PIXELS.tobytes(), **SIZE}, (9, 9, 3)),
        ({"pixels_base64": base64.urlsafe_b64encode(PIXELS.tobytes()), **SIZE}, ()),
    ],
)
def test_raw_pixels_have_the_shape_of_the_example_or_the_declared_one(fields, shape):
    data, image = read_image_of(fields, True, shape)
    assert data == PIXELS.tobytes()
    np.testing.assert_array_equal(image, PIXELS)


def test_gray_pixels_have_one_channel():
    _, image = read_image_of({"encoded": bytes(range(12))}, True, (3, 4, 1))
    assert image.shape == (3, 4, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"encoded": b"x" * 36},
            r"raw pixels of unknown height, width and channels: set source\.shape",
        ),
        ({"encoded": b"x" * 35, **SIZE}, "its image has 35 bytes, where 3 x 4 x 3 are declared"),
        ({"encoded": b"x" * 36, **SIZE, "height": -3}, "36 bytes, where -3 x 4 x 3"),
        (
            {"encoded": b"x" * 48, **SIZE, "channels": 4},
            "48 bytes, where 3 x 4 x 4 are declared, and 1 or 3 channels",
        ),
        ({"pixels_base64": b"a", **SIZE}, "not url-safe base64"),
        ({"pixels_base64": b"!!!!", **SIZE}, "not url-safe base64"),
    ],
)
def test_pixels_that_do_not_fit_are_reported(fields, message):
    with pytest.raises(Rejected, match=message):
        read_image_of(fields, True, ())


@pytest.mark.parametrize(
    ("kind", "value", "meaning"),
    [
        ("int64_list", 3, "{field: label, type: int64}"),
        ("bytes_list", b"dog", "{field: label_text, type: bytes}"),
    ],
)
def test_a_feature_that_may_be_the_label_is_asked_about(refer, kind, value, meaning):
    record = labeled(kind, value, key="class")
    _, (_, *notices) = refer([record])
    (error,) = (each for each in notices if each.status == "fatal")
    features = f"image/encoded: {{field: encoded, type: bytes}}, class: {meaning}"
    convention = f"source.convention={{features: {{{features}}}}}"
    kept = meaning.rpartition(" ")[2].rstrip("}")
    assert error.detail == (
        "its Examples have no label, and their feature class may be one: add "
        f"--set '{convention}' to take it, or --set 'source.keep={{class: {kept}}}' to store it "
        "without that meaning"
    )
    _, (_, *notices) = refer([record], Tfrecords(keep={"class": kept}))
    assert [each for each in notices if each.status == "fatal"] == []


def test_another_class_next_to_a_label_is_not_asked_about(refer):
    example = Example.FromString(encode("inception", label=7, label_text=b"dog"))
    example.features.feature["class"].int64_list.value.append(3)
    _, found = refer([example.SerializeToString()])
    assert [each for each in found if each.status == "fatal"] == []
