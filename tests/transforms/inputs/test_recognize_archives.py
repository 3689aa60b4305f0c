from dataclasses import replace

import pytest

from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.sources.archives import Archives


def sketch(archives, heads=None):
    whole = FolderSketch.of(archives, heads)
    return replace(
        whole, archives={name: FolderSketch.of(names) for name, names in archives.items()}
    )


def source(**settings):
    return {"source": {"kind": "archives", **settings}}


def given(**words):
    return {"splits": {"from_source": words}}


CLASSES = ["cat/1.jpg", "dog/2.jpg"]
SAMPLES = ["0.jpg", "0.cls", "1.jpg", "1.cls"]
TRAIN_VAL = given(train="train", val="validation")
RECOGNIZED = {
    "class folders": (sketch({"a.zip": CLASSES}), source()),
    "with one around": (
        sketch({"a.zip": ["a/cat/1.jpg", "a/dog/2.jpg"]}),
        source(class_from="last_folder"),
    ),
    "split folders": (
        sketch({"a.zip": ["a/train/cat/1.jpg", "a/val/cat/2.jpg"]}),
        {**source(class_from="last_folder", split="/(?P<split>train|val)/"), **TRAIN_VAL},
    ),
    "splits": (
        sketch({"train.zip": CLASSES, "val.zip": CLASSES}),
        {**source(split="^[^/]*?(?P<split>train|val)"), **TRAIN_VAL},
    ),
    "splits with one around": (
        sketch(
            {f"{name}.zip": [f"{name}/{each}" for each in CLASSES] for name in ("train", "val")}
        ),
        {**source(split="^[^/]*?(?P<split>train|val)", class_from="last_folder"), **TRAIN_VAL},
    ),
    "flat": (sketch({"a.tar": ["1.jpg", "2.jpg"]}), source(class_from="none")),
    "archives that are classes": (
        sketch({"cat.tar": ["1.jpg"], "dog.tar": ["1.jpg"]}),
        source(class_from="archive"),
    ),
    "two folders around splits": (
        sketch({"a.zip": ["a/b/train/cat/1.jpg", "a/b/val/cat/2.jpg"]}),
        {**source(class_from="last_folder", split="/(?P<split>train|val)/"), **TRAIN_VAL},
    ),
    "splits of images": (
        sketch({"a.zip": ["train/1.jpg", "val/2.jpg"]}),
        {**source(class_from="none", split="/(?P<split>train|val)/"), **TRAIN_VAL},
    ),
    "splits of images in archives of their names": (
        sketch({f"{name}.zip": [f"{name}/1.jpg"] for name in ("train", "val")}),
        {**source(class_from="none", split="^[^/]*?(?P<split>train|val)"), **TRAIN_VAL},
    ),
    "archives that are classes in folders for splits": (
        sketch(
            {
                f"{split}/{name}.tar": ["1.jpg"]
                for split in ("train", "val")
                for name in ("cat", "dog")
            }
        ),
        {**source(class_from="archive", split="(?:^|/)(?P<split>train|val)/"), **TRAIN_VAL},
    ),
    "samples in folders for splits": (
        sketch({"train/0.tar": SAMPLES, "val/0.tar": SAMPLES}),
        {**source(labels="beside", split="(?:^|/)(?P<split>train|val)/"), **TRAIN_VAL},
    ),
    "images beside the folders around which another is": (
        sketch({"a.zip": ["a/0.jpg", "a/cat/1.jpg", "a/dog/2.jpg"]}),
        source(strip_folders=1),
    ),
    "samples": (sketch({"0.tar": SAMPLES}, {"0.tar/.cls": b"cat"}), source(labels="beside")),
    "samples with ids": (
        sketch({"train-0.tar": SAMPLES, "val-0.tar": SAMPLES}, {"train-0.tar/.cls": b"3\n"}),
        {
            **source(labels="beside", split=r"(?P<split>train|val)[^/]*\.tar"),
            **TRAIN_VAL,
            "labels": {"ids": "integers"},
        },
    ),
    "captions": (
        sketch({"0.tar": ["0.jpg", "0.txt"]}),
        source(
            labels="beside",
            label_part="",
            features_from={"image/caption": {"part": "txt", "default": ""}},
        ),
    ),
    "samples in .tgz": (
        sketch({"train.tgz": SAMPLES}),
        {
            **source(labels="beside", split=r"(?P<split>train)[^/]*\.t(?:ar|gz)"),
            **given(train="train"),
        },
    ),
}


@pytest.mark.parametrize("name", RECOGNIZED)
def test_archives_are_recognized_by_what_is_in_them(name):
    looked, expected = RECOGNIZED[name]
    (found,) = Archives.recognize(looked)
    assert (found.settings, found.needs) == (expected, None)


@pytest.mark.parametrize(
    ("names", "patterns"),
    [
        (["images/1.jpg", "labels/1.txt"], '"!**/labels/**"'),
        (["a/train/1.jpg", "a/train/_annotations.coco.json"], '"!_annotations.coco.json"'),
        (["a/cat/1.jpg", "a/cat/1.xml", "a/dog/2.jpg"], '"!*.xml"'),
        (["JPEGImages/1.jpg", "Annotations/1.xml"], '"!**/Annotations/**"'),
    ],
)
def test_annotations_in_archives_are_refused(names, patterns):
    (found,) = Archives.recognize(sketch({"pets.zip": names}))
    assert found.needs.startswith("pets.zip holds annotations (")
    assert found.needs.endswith(
        "), which are not read from archives: unpack it, or leave them out with --set "
        f"'source.members=[\"*\",{patterns}]'"
    )


@pytest.mark.parametrize(
    "archives",
    [
        {"a.zip": ["a/cat/x/1.jpg", "a/dog/x/2.jpg"]},
        {"a.zip": ["a/cat/1.jpg", "a/cat/x/3.jpg", "a/dog/2.jpg"]},
        {name: [f"{name}/cat/1.jpg"] for name in ("a.zip", "b.zip")},
    ],
)
def test_a_folder_around_everything_leaves_a_choice(archives):
    found = [each.settings["source"] for each in Archives.recognize(sketch(archives))]
    assert {"kind": "archives", "class_from": "path", "strip_folders": 1} in found
    assert len(found) > 1
    own = {"kind": "archives", "class_from": "first_folder"}
    assert (own in found) == (len(archives) > 1)


def test_samples_with_json_alone_need_the_name_of_the_label():
    (found,) = Archives.recognize(sketch({"a.tar": ["1.jpg", "1.json"]}))
    assert found.needed_keys == ("source.label_part",)
    assert found.needs == (
        "its .json files are not read: add --set source.label_part= for images without labels"
    )
    data = b'{"url": "https://a", "width": 7, "kind": "x", "label": "cat", "a b": 1, "on": true}'
    (found,) = Archives.recognize(sketch({"a.tar": ["1.jpg", "1.json"]}, {"a.tar/.json": data}))
    assert found.needs == (
        "its .json files are not read: add --set source.label_part=json.label for classes such as "
        "cat, or --set source.label_part=json.width --set labels.ids=integers for classes such as "
        "7, or --set source.label_part=json.kind for classes such as x, or --set "
        "source.label_part= for images without labels"
    )
    for more in ("1.cls", "1.txt"):  # img2dataset's JSON describes downloads
        (found,) = Archives.recognize(sketch({"a.tar": ["1.jpg", "1.json", more]}))
        assert not found.needs


@pytest.mark.parametrize(
    "archives", [{}, {"a.zip": []}, {"a.zip": ["notes.md"]}, {"a.npz": ["x.npy"]}], ids=str
)
def test_what_holds_no_images_is_not_recognized(archives):
    assert list(Archives.recognize(sketch(archives))) == []


def test_the_last_folder_is_not_offered_if_it_would_merge_folders_of_one_name():
    names = [f"small/{kind}/character0{at}/1.png" for kind in ("Greek", "Latin") for at in (1, 2)]
    assert levels({"small.zip": names}) == [
        ("path", "Greek/character01"),
        ("first_folder", "Greek"),
    ]
    assert levels({"a.zip": ["a/cat/x/1.jpg", "a/dog/y/2.jpg"]}) == [
        ("path", "cat/x"),
        ("last_folder", "x"),
        ("first_folder", "cat"),
    ]


def levels(archives):
    """Which folder would name the class, and an example."""
    found = Archives.recognize(sketch(archives))
    return [(each.settings["source"]["class_from"], each.why.split()[3]) for each in found]


@pytest.mark.parametrize(
    ("archives", "class_from"),
    [
        ({"a.zip": ["images/1.jpg", "images/2.jpg"]}, "none"),
        ({"a.zip": ["w/photos/1.jpg"]}, "none"),
        ({"a.tar": ["train/images/1.jpg", "val/images/2.jpg"]}, "none"),
        ({"a.tar": ["train/cat/1.jpg", "val/cat/2.jpg"]}, "last_folder"),
        ({"part1.zip": ["1.jpg"], "part2.zip": ["2.jpg"]}, "none"),
        ({"1.zip": ["1.jpg"], "9.zip": ["2.jpg"]}, "none"),
        ({"pets_1.zip": ["1.jpg"], "pets_2.zip": ["2.jpg"]}, "none"),
        ({"n014.zip": ["1.jpg"], "n027.zip": ["2.jpg"]}, "archive"),
        ({"cat.zip": ["1.jpg"], "dog.zip": ["2.jpg"]}, "archive"),
        ({"a.zip": ["cat/1.jpg"]}, "first_folder"),
    ],
    ids=str,
)
def test_names_that_say_nothing_do_not_name_classes(archives, class_from):
    (found,) = Archives.recognize(sketch(archives))
    assert found.settings["source"].get("class_from", "first_folder") == class_from


def test_samples_with_several_images_and_no_label_are_asked_about():
    names = [f"{at}.{part}.jpg" for at in range(3) for part in ("left", "right")]
    (found,) = Archives.recognize(sketch({"0.tar": names}))
    assert (found.settings, found.needed_keys) == (
        source(labels="beside", label_part=""),
        ("source.image_parts",),
    )
    counted = [f"{label}.{at}.jpg" for label in ("cat", "dog", "cow") for at in range(3)]
    (found,) = Archives.recognize(sketch({"0.tar": counted}))
    assert not found.needs
