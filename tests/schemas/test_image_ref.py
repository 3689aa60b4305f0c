import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from apache_beam import coders

from recordmill.schemas.image_ref import (
    ClassNames,
    Content,
    Gzip,
    ImageRef,
    NamedMember,
    SourceFile,
    ZipMember,
    parse_packing,
)
from recordmill.schemas.reference_batch import ReferenceBatch, ReferenceBatchCoder

REF = ImageRef(
    key="a/ü\n.jpg",
    uri="gs://bucket/a/ü.jpg",
    size=2**40,
    version="1700000000000000000",
    offset=2**33,
    length=3,
    packing="gzip",
    label="a",
    group="g",
    split="train",
    features='{"x":"y"}',
    sha256="ab" * 32,
    spelling="cafe\u0301/1.jpg",
    lacks_file=True,
    annotations=(("boxes", b"[]"),),
    files=(SourceFile("m.png", "/m.png", 7, "1"),),
)


def test_beam_carries_it_whole():
    coder = coders.registry.get_coder(ImageRef)
    assert coder.decode(coder.encode(REF)) == REF
    assert isinstance(coder.decode(coder.encode(REF)), ImageRef)


def test_every_field_of_the_example_differs_from_its_default():
    # Otherwise the round trip above would not see a field that is dropped.
    assert all(getattr(REF, field.name) != field.default for field in fields(REF))


def test_a_reference_takes_about_200_bytes():
    ref = ImageRef(
        "n01440764/n01440764_10026.JPEG",
        "/data/train/n01440764/n01440764_10026.JPEG",
        13697,
        "1" * 19,
    )
    assert len(ReferenceBatchCoder().encode(ReferenceBatch([ref]))) < 200


@pytest.mark.parametrize(
    ("ref", "known", "expected"),
    [
        (ImageRef("a", "a", 10), 10, 10),
        (ImageRef("a", "a", 10, offset=4), 6, 6),
        (ImageRef("a", "a", 10, offset=4, length=3), 3, 3),
        (ImageRef("a", "a", -1), -1, 100_000),
        (ImageRef("a", "a", -1, offset=4), -1, 100_000),
        (ImageRef("a", "a", -1, offset=4, length=3), 3, 3),
    ],
)
def test_the_bytes_of_an_image_are_known_or_assumed(ref, known, expected):
    assert (ref.image_bytes, ref.expected_bytes) == (known, expected)


def test_replace_changes_the_given_fields_of_a_copy():
    before = pickle.loads(pickle.dumps(REF))
    other = REF.replace(key="other", length=7)
    assert other == replace(REF, key="other", length=7)
    assert REF == before != other
    with pytest.raises(AttributeError):
        REF.replace(misspelled=1)


def test_a_notice_is_about_what_its_reference_is_about():
    notice = REF.notice("rejected", "no_class", "it is not in a class folder")
    assert {field.name: getattr(notice, field.name) for field in fields(REF)} == {
        field.name: getattr(REF, field.name) for field in fields(REF)
    }
    assert (notice.status, notice.reason, notice.detail) == (
        "rejected",
        "no_class",
        "it is not in a class folder",
    )
    assert notice.replace(key="other") == replace(notice, key="other")
    assert notice != REF
    assert (REF.status, REF.reason) == ("", "")


def test_class_names_are_numbered_or_sorted():
    assert ClassNames.of(REF, {"dog": 2, "cat": 1}) == ClassNames(REF.uri, ("dog", "cat"), (2, 1))
    assert ClassNames.of(REF, ["dog", "cat", "dog"]) == ClassNames(REF.uri, ("cat", "dog"))


PACKINGS = {
    "gzip": Gzip(),
    "gzip_records": Gzip(has_checksums=True),
    "member:in/a: b.npy": NamedMember("in/a: b.npy"),
    "zip:8:31:100:200:0012abcd": ZipMember(8, 31, 100, 200, 0x12ABCD),
}


@pytest.mark.parametrize(("text", "packing"), PACKINGS.items())
def test_a_packing_has_the_text_that_plan_ids_hold(text, packing):
    assert (str(packing), parse_packing(text)) == (text, packing)


@pytest.mark.parametrize(
    "text", ["rot13", "zip", "zip:0:1:2:3", "tar:0:1:2:3:4", "csv utf-8", "jsonl utf-8 zip"]
)
def test_another_packing_is_a_mistake_of_the_source(text):
    with pytest.raises(ValueError, match=f"there is no packing '{text}'"):
        parse_packing(text)


def test_a_plain_image_is_its_own_bytes_and_adds_nothing():
    content = Content(b"jpeg", b"jpeg")
    assert (content.label, content.fields) == (None, {})


def test_pixels_stand_in_an_encoded_images_place():
    pixels = np.zeros((2, 3, 1), np.uint8)
    content = Content(pixels.tobytes(), pixels, label=7, fields={"fine": 3})
    assert content.image is pixels
    assert (content.label, content.fields) == (7, {"fine": 3})
