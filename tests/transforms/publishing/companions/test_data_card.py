import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from make_settings import make_settings

from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.dataset.totals import BareImages
from recordmill.transforms.publishing.companions.describe_dataset import (
    MOST_CLASSES,
    describe_card,
    reading_snippet,
    show_text,
)
from recordmill.transforms.publishing.remarks import Remark


def card(say, dataset) -> str:
    return say(describe_card, dataset)["README.md"].decode()


def section(text: str, title: str) -> str:
    return re.search(rf"^## {title}\n\n(.*?)\n(?=\n## |\Z)", text, re.MULTILINE | re.DOTALL)[1]


def test_it_says_what_the_dataset_is(stage, say):
    text = card(say, stage())
    assert text.startswith(
        "# pets\n\n7 images in 3 classes, in 3 TFRecord files of 818 bytes, made by Recordmill.\n\n"
        "## Splits\n\n"
    )
    assert section(text, "Splits").splitlines() == [
        "| split | images | files | bytes | names |",
        "| --- | --- | --- | --- | --- |",
        "| `train` | 5 | 2 | 585 | `train-00000-of-00002.tfrecord`, ... |",
        "| `test` | 2 | 1 | 233 | `test-00000-of-00001.tfrecord` |",
    ]
    assert section(text, "Labels").splitlines() == [
        "| id | class | `train` | `test` |",
        "| --- | --- | --- | --- |",
        "| 0 | cat | 3 | 1 |",
        "| 1 | dog | 1 | 1 |",
        "| 2 | emu | 1 | 0 |",
    ]
    assert "| `image/encoded` | bytes | the encoded image |" in section(text, "Features")


def test_it_accounts_for_everything(stage, say):
    dataset = stage()
    noted = replace(
        dataset,
        marker=replace(dataset.marker, notes=("1. was *moved*",), changes={"rotated": 1_000}),
    )
    text = card(say, noted)
    assert section(text, "Outcome of everything listed").splitlines()[:5] == [
        "|  | reason | images |",
        "| --- | --- | --- |",
        "| listed |  | 8 |",
        "| written |  | 7 |",
        "| rejected | `truncated`: the data ends before the image is complete | 1 |",
    ]
    assert text.count("\n- 1\\. was \\*moved\\*\n") == 1
    assert re.search(
        r"^\| `rotated` \| .+ \| 1,000 \|$", section(text, "How it was made"), re.MULTILINE
    )
    assert "(plan ID `0123456789abcdef`)." in text


def test_it_repeats_what_is_worth_a_look(stage, say):
    dataset = stage()
    remarked = replace(
        dataset, remarks=[Remark("test has no image of *emu*.", "classes"), Remark("Two.", "sizes")]
    )
    assert (
        section(card(say, remarked), "Worth a look") == "- test has no image of \\*emu\\*.\n- Two."
    )
    assert "Worth a look" not in card(say, dataset)


def test_it_accounts_for_boxes_and_images_without_any(stage, say):
    dataset = stage()
    marker = replace(
        dataset.marker,
        splits={
            name: replace(split, instances={"cat": 2})
            for name, split in dataset.marker.splits.items()
        },
        annotations={
            "boxes": AnnotationEntry(
                unit="box",
                listed=9,
                written=6,
                dropped={"cropped_away": 2, "outside": 1},
                noted={"clipped": 3},
                dropped_classes={"outside": {"cat": 1}, "cropped_away": {"_dog_": 2}},
                images_without=BareImages(
                    no_file=1, all_dropped=1, dropped={"outside": {"cat": 1}}
                ),
            )
        },
        counted="boxes",
    )
    text = card(say, replace(dataset, marker=marker))
    assert section(text, "Labels").startswith(
        "The number of boxes by class and split:\n\n| id | class |"
    )
    assert section(text, "Outcome of everything listed").split("\n\n")[1:] == [
        "| boxes | classes |  |\n| --- | --- | --- |\n| `listed` |  | 9 |\n| `written` |  | 6 |\n| "
        "`clipped` |  | 3 |\n"
        "| `cropped_away` | \\_dog\\_ | 2 |\n| `outside` | cat | 1 |",
        "2 images have no box: 1 has no annotation file, 1 lost all boxes (outside: cat).",
    ]


def test_classes_of_semantic_masks_have_no_numbers_of_images(stage, say):
    dataset = stage()
    marker = replace(
        dataset.marker,
        labels={"road": 1, "sky": 0},
        names_pixel_ids=True,
        splits={
            name: replace(split, classes={"": split.records})
            for name, split in dataset.marker.splits.items()
        },
        annotations={
            "segmentation": AnnotationEntry(unit="semantic mask", listed=3, written=3, dropped={})
        },
    )
    assert section(card(say, replace(dataset, marker=marker)), "Labels") == (
        "The classes of the semantic masks:\n\n"
        "| id | class |\n| --- | --- |\n| 0 | sky |\n| 1 | road |"
    )


def test_it_explains_every_reason(stage, say):
    dataset = stage()
    ledger = replace(dataset.marker.ledger, ignored={"hidden": 2}, left_out={"limit": 1})
    text = card(say, replace(dataset, marker=replace(dataset.marker, ledger=ledger)))
    assert section(text, "Outcome of everything listed").splitlines()[5:7] == [
        "| ignored | `hidden`: its name begins with a dot | 2 |",
        "| left out | `limit`: there are more than `limit` | 1 |",
    ]


def test_it_shows_how_to_read(stage, say):
    dataset = stage()
    reading = section(card(say, dataset), "Reading")
    assert reading.startswith(f"```python\n{reading_snippet(dataset.marker)}```\n")
    assert "- TensorFlow Datasets: `tfds.builder_from_directory(folder)" in reading
    assert "package: run `recordmill inspect . --index DIR`, or convert with" in reading
    indexed = section(card(say, stage(make_settings(index_files=True))), "Reading")
    assert "package: `sidecars/*.idx`." in indexed


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (make_settings(compression="gzip"), "its files are compressed (gzip)"),
        (
            make_settings(name="pets", convention="image_tfrecord_builder"),
            "its files say `training` for the split `train`",
        ),
    ],
)
def test_it_says_why_tfds_cannot_read_it(stage, say, settings, reason):
    expected = (
        f"- TensorFlow Datasets cannot read it, because {reason}. There is no "
        "`dataset_info.json`.\n"
    )
    assert expected in card(say, stage(settings))


def test_it_says_which_features_tfds_does_not_read(stage, say):
    dataset = stage()
    lacking = replace(dataset, reports=[replace(dataset.reports[0], missing={"image/width": 1})])
    line = "as_dataset(split=...)`, without `image/width`, which not every Example has."
    assert line in card(say, lacking)


def test_many_classes_are_counted(stage, say):
    dataset = stage(labels={f"{number:04}": number for number in range(MOST_CLASSES + 2)})
    lines = section(card(say, dataset), "Labels").splitlines()
    assert len(lines) == MOST_CLASSES + 4
    assert lines[-1] == "and 2 classes more: see `labels.txt`."


def with_classes(dataset, classes):
    splits = {
        name: replace(split, classes=classes(split))
        for name, split in dataset.marker.splits.items()
    }
    return replace(dataset, marker=replace(dataset.marker, splits=splits))


def test_images_without_a_label_are_counted_too(stage, say):
    assert (
        section(card(say, stage(unlabeled=True)), "Labels").splitlines()[-1]
        == "|  | *no label* | 1 | 0 |"
    )
    text = card(say, with_classes(stage(labels={}), lambda split: {}))
    assert section(text, "Labels") == "There are none."
    assert "\n\n7 images, in 3 TFRecord files" in text


def test_features_that_no_example_has_are_not_listed(stage, say):
    dataset = stage(unlabeled=True)
    assert "| `image/class/label` | int64 |" in section(card(say, dataset), "Features")
    without = with_classes(dataset, lambda split: {"": split.records})
    listed = re.findall(r"^\| `(\S+)` ", section(card(say, without), "Features"), re.MULTILINE)
    assert listed == [
        "image/encoded",
        "image/format",
        "image/height",
        "image/width",
        "image/filename",
        "image/key/sha256",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>&|a\n b", "&lt;b&gt;&amp;\\|a b"),
        ("# no heading", "\\# no heading"),
        ("- no item", "\\- no item"),
        ("12) no item", "12\\) no item"),
        ("n01440764_tench", "n01440764\\_tench"),
        ("a-b.c", "a-b.c"),
        ("`x` [y](z)", "\\`x\\` \\[y\\](z)"),
    ],
)
def test_names_show_as_they_are(text, shown):
    assert show_text(text) == shown


@given(st.text())
def test_no_name_breaks_out_of_its_cell(name):
    shown = show_text(name)
    assert "\n" not in shown
    assert not re.search(r"(?<!\\)(\\\\)*[|`*\[]", shown)
    assert "<" not in shown


@pytest.mark.parametrize(("convention", "line"), [("default", "id:name"), ("inception", "name")])
def test_it_says_how_the_lines_of_labels_read(stage, say, convention, line):
    files = section(card(say, stage(make_settings(convention=convention))), "Files")
    assert f"| `labels.txt` | one class per line, in the order of the ids: `{line}` |" in files
