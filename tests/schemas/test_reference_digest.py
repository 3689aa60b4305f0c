import hashlib
import random
from dataclasses import replace

import pytest

from recordmill.schemas.digests import add_digests, digest_of, has_exact_files, version_digest_of
from recordmill.schemas.image_ref import ImageRef, SourceFile

REF = ImageRef(
    "cat/1.jpg",
    "/x/cat/1.jpg",
    120,
    "1700000000",
    8,
    64,
    label="cat",
    group="g",
    split="train",
    features='{"a":"b"}',
).notice("rejected", "why")
OTHER = {
    "key": "z",
    "offset": 9,
    "length": 9,
    "size": 9,
    "label": "z",
    "group": "z",
    "split": "z",
    "features": "{}",
    "reason": "z",
    "packing": "z",
    "sha256": "z",
    "annotations": (("boxes", b"z"),),
    "files": (SourceFile("m.png", "/m.png", 7, "1"),),
}


def test_a_digest_never_changes():
    # Plans and markers hold it: with another one every dataset would be converted anew.
    assert (
        f"{digest_of(REF):064x}"
        == "f71f41fb806e8029feb02bd3b2213777abccc88dfc73488404303f5e24009cdd"
    )
    assert (
        f"{version_digest_of(REF):064x}"
        == "71cefc456f165c611e8e7ab9fb8b91ac8b0815ae75b9f73e0083f47213859a82"
    )
    assert (
        f"{digest_of(ImageRef('a', '/x/a')):064x}"
        == "0771c98cb07de2853e26b16f6056ae28d31bb0a351d5269ad0c25ded10dc1858"
    )
    assert (
        f"{version_digest_of(ImageRef('a', '/x/a')):064x}"
        == "beae57e48f2dcae4f5dfeb460d96f86e22d3356d9c9523142f09bffa750ae1f3"
    )


def test_a_digest_is_the_sha256_of_its_fields():
    text = "cat/1.jpg\0" + "8\0" + "64\0" + '120\0cat\0g\0train\0{"a":"b"}\0why'
    assert digest_of(REF) == int(hashlib.sha256(text.encode()).hexdigest(), 16)
    version = "cat/1.jpg\0" + "120\0" + "1700000000"
    assert version_digest_of(REF) == int(hashlib.sha256(version.encode()).hexdigest(), 16)


@pytest.mark.parametrize("field", OTHER)
def test_what_decides_a_record_decides_the_digest(field):
    assert digest_of(replace(REF, **{field: OTHER[field]})) != digest_of(REF)


def test_annotations_are_hashed_by_kind_after_everything_else():
    image = ImageRef("a", "/a", annotations=(("boxes", b"[1]"), ("labels", b"")))
    text = b"a\0000\000-1\0000\0\0\0\0\0" + b"\0boxes\0003\0[1]" + b"\0labels\0000\0"
    assert digest_of(image) == int(hashlib.sha256(text).hexdigest(), 16)
    one = image.replace(annotations=(("boxes", b"ab"), ("labels", b"c")))
    other = image.replace(annotations=(("boxes", b"a"), ("labels", b"bc")))
    assert digest_of(one) != digest_of(other)


FILE = SourceFile("m.png", "/m.png", 7, "1")


@pytest.mark.parametrize(
    ("changed", "is_other", "is_other_version"),
    [
        (FILE._replace(key="n.png"), True, True),
        (FILE._replace(size=8), True, True),
        (FILE._replace(version="2"), False, True),
        (FILE._replace(uri="/elsewhere/m.png"), False, False),
    ],
)
def test_further_files_count_as_the_image_does(changed, is_other, is_other_version):
    one, other = ImageRef("a", "/a", files=(FILE,)), ImageRef("a", "/a", files=(changed,))
    assert (digest_of(one) != digest_of(other)) == is_other
    assert (version_digest_of(one) != version_digest_of(other)) == is_other_version


def test_a_change_of_a_file_without_an_exact_version_goes_unnoticed():
    assert has_exact_files(ImageRef("a", "/a"))
    assert has_exact_files(ImageRef("a", "/a", files=(FILE,)))
    for inexact in (FILE._replace(version=""), FILE._replace(uri="gs://b/m.png")):
        assert not has_exact_files(ImageRef("a", "/a", files=(FILE, inexact)))
    assert has_exact_files(ImageRef("a", "/a", files=(FILE._replace(version="etag:x"),)))


@pytest.mark.parametrize("field", ["uri", "version"])
def test_place_and_time_are_not_in_the_digest(field):
    assert digest_of(replace(REF, **{field: "other"})) == digest_of(REF)


@pytest.mark.parametrize("field", ["key", "size", "version"])
def test_a_rewritten_file_has_another_version(field):
    assert version_digest_of(
        replace(REF, **{field: 9 if field == "size" else "9"})
    ) != version_digest_of(REF)


@pytest.mark.parametrize(
    "field", ["uri", "label", "group", "split", "features", "reason", "annotations"]
)
def test_a_version_is_of_the_file_alone(field):
    assert version_digest_of(replace(REF, **{field: "other"})) == version_digest_of(REF)


def test_neighboring_fields_cannot_be_mistaken_for_each_other():
    texts = [
        replace(REF, label="ab", group="c"),
        replace(REF, label="a", group="bc"),
        replace(REF, label="", group="abc"),
    ]
    assert len({digest_of(ref) for ref in texts}) == 3


@pytest.mark.parametrize("digest", [digest_of, version_digest_of])
def test_a_sum_has_no_order_and_no_parts(digest):
    digests = [digest(replace(REF, key=f"{n}")) for n in range(20)]
    shuffled = random.Random(0).sample(digests, 20)
    parts = [add_digests(*shuffled[:3]), add_digests(), add_digests(*shuffled[3:])]
    assert (
        add_digests(*digests)
        == add_digests(*shuffled)
        == add_digests(*parts)
        == sum(digests) % 2**256
    )
    assert 0 <= add_digests(*digests) < 2**256


def test_a_sum_counts_each_reference():
    one, two = digest_of(REF), digest_of(replace(REF, key="z"))
    sums = {
        add_digests(*each)
        for each in ([], [one], [two], [one, two], [one, one], [two, two], [one, one, two])
    }
    assert len(sums) == 7
    assert add_digests() == 0
