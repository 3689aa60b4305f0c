import hashlib
import io
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import orjson
import pytest
from carried_annotations import carry
from make_settings import make_settings
from PIL import Image

from recordmill.annotations.boxes import boxes_of
from recordmill.imaging import ImageSettings, prepare_image
from recordmill.imaging.pixels import digest_pixels
from recordmill.schemas.dataset.side_files import row_from_json, row_to_json
from recordmill.schemas.features import Example, Feature, parse_example
from recordmill.schemas.image_ref import Content, ImageRef
from recordmill.schemas.label_map import LabelMap, LabelSettings, build_label_map
from recordmill.schemas.rejection import Exclusions, Rejected
from recordmill.schemas.settings.dataset import ExampleLayout
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.records.convert_image import (
    convert_image,
    reference_record,
    reject_image,
)
from recordmill.transforms.records.exclude_images import exclude_image

SETTINGS = make_settings()
LABELS = LabelMap({"cat": 0, "dog": 1})


def convert(ref, settings=SETTINGS, labels=LABELS):
    return convert_image(ref, ExampleLayout(settings), labels, nullcontext())


def without_image(record):
    example = Example.FromString(record)
    example.features.feature["image/encoded"].bytes_list.value[0] = b""
    return example.SerializeToString(deterministic=True)


def test_an_untouched_image_gives_an_exact_record_and_row(pictures, draw):
    _, ref = pictures(2)
    converted = convert(ref)
    digest = hashlib.sha256(draw(1)).hexdigest()
    rest = hashlib.sha256(without_image(converted.record)).hexdigest()
    assert row_to_json(converted.row) == {
        "key": "dog/1.jpg",
        "bytes": len(draw(1)),
        "sha256": digest,
        "class": "dog",
        "label": 1,
        "height": 6,
        "width": 8,
        "channels": 3,
        "moments": prepare_image(draw(1), SETTINGS.images).moments,
        "changes": (),
        "offset": 0,
        "length": 0,
        "record": hashlib.sha256((rest + digest).encode()).hexdigest(),
        "rest": rest,
    }
    assert parse_example(ExampleLayout(SETTINGS).features, converted.record) == {
        "image/encoded": draw(1),
        "image/format": b"jpg",
        "image/height": 6,
        "image/width": 8,
        "image/class/label": 1,
        "image/class/text": b"dog",
        "image/filename": b"1.jpg",
        "image/key/sha256": digest.encode(),
    }


@pytest.mark.parametrize("convention", ["inception", "tpu_imagenet"])
def test_no_example_lacks_a_constant(pictures, convention):
    _, ref = pictures(2)
    assert convert(ref, make_settings(convention=convention)).missing == ()


def test_the_row_of_a_changed_image_has_the_sources_digest(tmp_path, draw):
    data = draw(1, kind="PNG", mode="L")
    (tmp_path / "a").write_bytes(data)
    converted = convert(ImageRef("cat/a", str(tmp_path / "a"), len(data), label="cat"))
    parsed = parse_example(ExampleLayout(SETTINGS).features, converted.record)
    assert converted.row.sha256 == hashlib.sha256(data).hexdigest()
    assert converted.row.changes == ("reencoded",)
    assert converted.row.pixels == digest_pixels(Image.open(io.BytesIO(data)), 1)
    assert converted.row.channels == 1
    assert parsed["image/encoded"][:3] == b"\xff\xd8\xff"
    assert (
        parsed["image/key/sha256"] == hashlib.sha256(parsed["image/encoded"]).hexdigest().encode()
    )


def rejected_row(ref, stage, reason, sha256=None, **changed):
    row = {
        "key": ref.key,
        "spelling": ref.spelling or None,
        "bytes": ref.size,
        "sha256": sha256,
        "class": ref.label or None,
        "stage": stage,
        "rejected": reason,
    }
    return row_from_json({**row, **changed})


def test_what_was_rejected_when_listed_keeps_its_reason():
    ref = ImageRef("a", "/nowhere", 7).notice("rejected", "no_class", "none")
    converted = convert(ref)
    assert converted.record is None
    assert converted.row == rejected_row(ref, "list", "no_class", detail="none")


@pytest.mark.parametrize("reason", ["vanished", "outside_root", "not_a_file"])
def test_the_row_of_a_missing_image_lacks_the_size_of_the_file_that_names_it(reason):
    ref = ImageRef("a.jpg", "/in/annotations.json", 7).notice(
        "rejected", reason, "named by annotations.json"
    )
    assert convert(ref).row == replace(
        rejected_row(ref, "list", reason, detail=ref.detail), bytes=None
    )


def test_a_vanished_file_is_rejected():
    ref = ImageRef("cat/a", "/nowhere", 7, label="cat")
    expected = rejected_row(
        ref, "read", "vanished", detail="the file was listed, and was gone when it was read"
    )
    assert convert(ref).row == expected


def test_a_bad_image_is_rejected_with_its_digest(tmp_path):
    (tmp_path / "a").write_bytes(b"no image")
    ref = ImageRef("cat/a", str(tmp_path / "a"), 8, label="cat")
    row = convert(ref).row
    digest = hashlib.sha256(b"no image").hexdigest()
    assert row == rejected_row(ref, "decode", "unknown_format", digest, detail=row.detail)


def test_a_label_without_a_class_is_rejected_before_anything_is_read():
    ref = ImageRef("cow/a", "/nowhere", 7, label="cow")
    assert convert(ref).row == rejected_row(
        ref, "encode", "unknown_label", detail="the label 'cow' is not one of the classes"
    )


def test_a_byte_range_counts_as_its_length(tmp_path, draw):
    (tmp_path / "a").write_bytes(b"head" + draw(1) + b"tail")
    ref = ImageRef("cat/a", str(tmp_path / "a"), 10**6, offset=4, length=len(draw(1)), label="cat")
    assert convert(ref).row.bytes == len(draw(1))
    assert convert(replace(ref, length=len(draw(1)) - 9)).row.bytes == len(draw(1)) - 9


def test_decoding_is_entered_after_reading_only(pictures):
    (ref,) = pictures(1)
    entered = []

    @contextmanager
    def decoding():
        entered.append(True)
        yield

    convert_image(replace(ref, uri="/nowhere"), ExampleLayout(SETTINGS), LABELS, decoding())
    assert entered == []
    convert_image(ref, ExampleLayout(SETTINGS), LABELS, decoding())
    assert entered == [True]


def test_a_bug_is_not_swallowed(pictures, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("recordmill.transforms.records.convert_image.prepare_image", broken)
    with pytest.raises(ZeroDivisionError):
        convert(pictures(1)[0])


def test_a_header_check_has_no_moments(pictures):
    settings = replace(SETTINGS, images=ImageSettings(check="header"))
    assert convert(pictures(1)[0], settings).row.moments is None


def test_other_bytes_than_the_source_says_are_rejected(pictures):
    _, ref = pictures(2)
    digest = convert(ref).row.sha256
    assert convert(replace(ref, sha256=digest.upper())).record == convert(ref).record
    row = convert(replace(ref, sha256="0" * 64)).row
    assert (row.stage, row.reason, row.sha256) == ("read", "wrong_sha256", digest)


@dataclass(frozen=True)
class Numbered(Source):
    """A byte of label and four gray pixels."""

    late_labels = True

    def list_references(self, path, file):
        yield file

    def read(self, ref, max_bytes):
        data = read_image(ref, max_bytes)
        pixels = np.frombuffer(data, np.uint8, 4, 1).reshape(2, 2, 1)
        return Content(data, pixels, label=data[0], fields={"first": data[1]})

    def features(self):
        return (Feature("first", "int64", "first", "the first pixel"),)


@pytest.mark.parametrize(("number", "name", "label"), [(5, "cat", 0), (9, "dog", 1)])
def test_a_source_may_find_label_and_pixels_when_it_reads(tmp_path, number, name, label):
    (tmp_path / "a").write_bytes(bytes([number, 200, 200, 200, 200]))
    labels = build_label_map([], LabelSettings(), 0, {"cat": 5, "dog": 9})
    settings = make_settings(source=Numbered())
    converted = convert(ImageRef("a", str(tmp_path / "a"), 5), settings, labels)
    parsed = parse_example(ExampleLayout(settings).features, converted.record)
    assert (converted.row.class_name, converted.row.label, converted.row.changes) == (
        name,
        label,
        ("reencoded",),
    )
    assert (parsed["image/class/label"], parsed["image/class/text"], parsed["first"]) == (
        label,
        name.encode(),
        200,
    )
    image = Image.open(io.BytesIO(parsed["image/encoded"]))
    assert (image.mode, image.size, set(image.tobytes())) == ("L", (2, 2), {200})


def test_a_number_that_no_class_has_is_rejected(tmp_path):
    (tmp_path / "a").write_bytes(bytes(5))
    row = convert(ImageRef("a", str(tmp_path / "a"), 5), make_settings(source=Numbered())).row
    assert (row.reason, row.detail) == ("unknown_label", "the label 0 is not one of the classes")
    assert row.sha256 == hashlib.sha256(bytes(5)).hexdigest()  # it was read


def test_pixels_that_are_rejected_have_the_digest_of_their_source(tmp_path):
    (tmp_path / "a").write_bytes(bytes(5))
    settings = make_settings(source=Numbered(), images=ImageSettings(max_pixels=3))
    row = convert(
        ImageRef("a", str(tmp_path / "a"), 5),
        settings,
        build_label_map([], LabelSettings(), 0, {"cat": 0}),
    ).row
    assert (row.reason, row.sha256) == ("too_many_pixels", hashlib.sha256(bytes(5)).hexdigest())


def test_fields_of_a_reference_keep_their_types():
    fields = {"n": 3, "x": 0.5, "t": "ü", "many": ["a", "b"], "flag": True}
    record = reference_record(
        ImageRef("a", "a", features=orjson.dumps(fields).decode()), None, None
    )
    assert {key: record[key] for key in fields} == {
        **fields,
        "t": "ü".encode(),
        "many": [b"a", b"b"],
    }


def test_the_row_has_a_difference_hash_where_look_alikes_are_searched_for(pictures, draw):
    _, ref = pictures(2)
    images = ImageSettings(near_duplicates=True)
    row = convert(ref, replace(SETTINGS, images=images)).row
    assert int(row.difference_hash, 16) == prepare_image(draw(1), images).difference_hash
    assert len(row.difference_hash) == 16
    assert convert(ref).row.difference_hash is None


def test_the_row_of_an_excluded_thing_says_nothing_that_would_identify_it():
    ref = carry(
        ImageRef("ü.jpg", "/u.jpg", 9, length=5, label="cat", spelling="u.jpg"),
        boxes_of([(0, 0, 1, 1)], ["cat"]),
    )
    for each, stage in ((ref, "encode"), (ref.notice("rejected", "not_a_file"), "list")):
        image = reject_image(each, Rejected("read", "unreadable", "", "0" * 64), LABELS)
        image = exclude_image(each, image, Exclusions(frozenset({"ü.jpg"})), LABELS, 9)
        assert (image.record, len(image.excluded)) == (None, 1)
        assert row_to_json(image.row) == {
            "key": "",
            "spelling": None,
            "bytes": None,
            "sha256": None,
            "class": None,
            "stage": stage,
            "rejected": None,
            "detail": "",
            "left_out": "excluded",
            "annotations": {
                "boxes": {"listed": 1, "written": 0, "dropped": {"with_left_out_images": 1}}
            },
        }
