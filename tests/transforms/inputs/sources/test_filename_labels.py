import json
import re
from dataclasses import replace

import pytest

from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.sources.filename_labels import FilenameLabels
from recordmill.transforms.inputs.sources.source import list_file

FILE = ImageRef("key", "uri", 7, "version")


def refer(name, **settings):
    (ref,) = list_file(FilenameLabels(**settings), name, FILE)
    return ref


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("img_00017_3.jpg", "3"),
        ("img_00017_-1.jpg", "-1"),
        ("_5.jpg", "5"),
        ("deep/er_9/img_00017_007.tar.jpg", "007"),
        ("a.b_3.jpg", "3"),
        ("ü_12.jpg", "12"),
    ],
)
def test_the_label_stands_between_the_last_underscore_and_the_first_dot_after_it(name, label):
    assert refer(name) == replace(FILE, label=label)


@pytest.mark.parametrize(
    "name",
    [
        "img.jpg",
        "img_3",
        "img_.jpg",
        "img_x.jpg",
        "img_3_x.jpg",
        "3.jpg",
        "img_1_3x.jpg",
        "img_٣.jpg",
    ],
)
def test_another_name_is_rejected(name):
    assert refer(name) == FILE.notice(
        "rejected", "name_mismatch", "the file's name does not match source.pattern"
    )


def test_an_empty_label_is_rejected():
    assert refer("x.jpg", pattern=r"x(?P<label>.*)\.jpg").reason == "name_mismatch"


def test_the_whole_name_must_match():
    assert refer("a_1.jpg.bak", pattern=r"a_(?P<label>\d)\.jpg").status == "rejected"


def test_groups_become_the_split_group_and_features():
    ref = refer(
        "p7_left_cat.jpg",
        pattern=r"(?P<group>p\d+)_(?:(?P<side>left|right)_)?(?P<label>[a-z]+)\.jpg",
        features_from={"image/patient": "group", "image/side": "side"},
    )
    assert (ref.label, ref.group) == ("cat", "p7")
    assert json.loads(ref.features) == {"image/patient": "p7", "image/side": "left"}


def test_an_optional_group_that_is_absent_is_an_empty_text():
    ref = refer(
        "cat.jpg",
        pattern=r"(?:(?P<side>left)_)?(?P<label>[a-z]+)\.jpg",
        features_from={"side": "side"},
    )
    assert json.loads(ref.features) == {"side": ""}
    assert ref.group == ""


def test_features_are_bytes_with_a_default():
    source = FilenameLabels(pattern=r"(?P<label>(?P<x>.))", features_from={"image/x": "x"})
    assert source.features() == (
        Feature("image/x", "bytes", "image/x", "group `x` of the file's name", default=b""),
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pattern": "x"}, r"source.pattern 'x' has no group \(\?P<label>...\): add it"),
        ({"features_from": {"a": "b"}}, r"source.pattern .* has no group \(\?P<b>...\): add it"),
        ({"pattern": "(?P<label>"}, "source.pattern .* is not a regular expression: "),
    ],
)
def test_a_pattern_that_lacks_something_raises_and_names_the_key(settings, message):
    with pytest.raises(ValueError, match=message):
        FilenameLabels(**settings)


def test_the_remedy_shows_the_pattern_as_it_is_written():
    source = FilenameLabels(pattern=r"x_(?P<label>\d)\.jpg")
    assert source.remedies == {
        "name_mismatch": r"correct source.pattern, which is x_(?P<label>\d)\.jpg"
    }


def found_by(names):
    sketch = FolderSketch.of([f"{name}.jpg" for name in names])
    return [each.settings["source"].get("pattern") for each in FilenameLabels.recognize(sketch)]


WORDS = r"(?P<label>[^0-9]*[^-0-9._ ])[-._ ]*[0-9]+\.[^.]*"


def numbered(*templates, first=1, count=12, step=1):
    return [
        template.format(number)
        for template in templates
        for number in range(first, first + count * step, step)
    ]


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (numbered("cat.{}", "dog.{}"), {"cat", "dog"}),
        (numbered("cat.{}", "dog.{}", count=5), {"cat", "dog"}),
        ([*numbered("cat{}", "dog{}"), "readme", "cover_x"], {"cat", "dog"}),
        (numbered("golden_retriever_{}", "pug-{}"), {"golden_retriever", "pug"}),
        (numbered("cat ({})", "dog ({})"), {"cat", "dog"}),
        (numbered("кот_{}", "пёс_{}"), {"кот", "пёс"}),
        (numbered("cat.{}", count=12_500) + numbered("dog.{}", count=12_500), {"cat", "dog"}),
        (numbered("{:03}_happy", "{:03}_sad"), {"happy", "sad"}),
        (
            numbered("case_{:03}_benign", step=2) + numbered("case_{:03}_bad", first=2, step=2),
            {"benign", "bad"},
        ),
        (numbered("{}-golden_retriever", "{}-pug", count=5), {"golden_retriever", "pug"}),
        (numbered("{}.cat", "{}.dog"), {"cat", "dog"}),
        (numbered("7 {} rust", "7 {} scab"), {"rust", "scab"}),
        ([*numbered("{}_кот", "{}_пёс"), "overview"], {"кот", "пёс"}),
        (numbered("{:05}_cat", "{:05}_dog", count=12_500), {"cat", "dog"}),
    ],
    ids=lambda value: str(sorted(value))[:30],
)  # fmt: skip
def test_words_next_to_numbers_are_asked_about(names, labels):
    (pattern,) = found_by(names)
    matches = [re.fullmatch(pattern, f"{name}.jpg") for name in names]
    assert {match["label"] for match in matches if match} == labels


@pytest.mark.parametrize(
    "names",
    [
        numbered("IMG_{:04}"),
        numbered("IMG_{:04}", "DSC_{:04}"),
        numbered("DSCN{:04}", "DSCF{:04}"),
        numbered("PXL_20230101_{:09}", "MVIMG_20230101_{:09}"),
        numbered("DJI_{:04}", "GOPR{:04}"),
        numbered("P10100{:02}"),
        numbered("{:05}"),
        numbered("img_{}_red", "img_{}_green"),
        numbered("IMG_{}_edited", "IMG_{}"),
        numbered("frame_{}", "cam_{}"),
        numbered("left_{}", "right_{}"),
        numbered("image{}", "photo{}"),
        numbered("scan_{}", "page_{}"),
        numbered("train_{}", "test_{}"),
        numbered("val_{}", "train_{}"),
        numbered("train_img_{}", "valid_img_{}"),
        [f"{number * 7919:016x}" for number in range(99, 199)],
        [f"{number * 104729 % 2**32:08x}-{number:04x}" for number in range(99, 199)],
        numbered("2023-01-{:02}", "2023-02-{:02}", first=10),
        numbered("20230101_{:06}", "20230102_{:06}"),
        numbered("jan_{}", "feb_{}", "mar_{}"),
        numbered("Screenshot {}", "WhatsApp Image {}"),
        numbered("cat.{}"),
        numbered("cat.{}", "dog.{}", count=4) + numbered("{}", first=50),
        numbered("a{}", "b{}"),
        ["cat", "dog", "bird", "fish", "horse", "sheep"],
        numbered("IMG_{}(1)", "IMG_{}(2)"),
        numbered("{:03}_left", "{:03}_right"),
        numbered("{:03}_image", "{:03}_mask"),
        numbered("{:03}_rgb", "{:03}_depth"),
        numbered("{:03}_copy", "{:03}_edited"),
        numbered("{:03}_small", "{:03}_large"),
        numbered("{:03}_train", "{:03}_test"),
        numbered("{:03}_a", "{:03}_b"),
        numbered("2023-01-01_{:03}_am", "2023-01-01_{:03}_pm"),
        numbered("{:02}_jan", "{:02}_feb"),
        numbered("{:03}_cat"),
        numbered("{:03}_flip", "{:03}_rot"),
        numbered("{}_1_2_2017", "{}_0_1_2017"),
    ],
    ids=lambda names: f"{names[0]}, {names[-1]}",
)
def test_names_of_cameras_counters_hashes_dates_and_splits_have_no_labels(names):
    assert found_by(names) == []
