"""Archives are recognized as the folders in them would be, and stop where folders stop."""

import itertools
import json
from collections import Counter

import pytest
from packed_inputs import pack
from paired_inputs import counted, mask, photo
from plan_in_process import content_of, plan
from printed_commands import printed_flags, write_files

N = counted(6)
TABLE = b"id,label\n000,cat\n001,dog\n"
COCO = json.dumps(
    {
        "images": [{"id": 0, "file_name": "000.jpg", "width": 24, "height": 16}],
        "annotations": [{"id": 0, "image_id": 0, "category_id": 1, "bbox": [1, 2, 3, 4]}],
        "categories": [{"id": 1, "name": "cat"}],
    }
).encode()


def photos(*folders, ending="jpg"):
    """Photographs in folders; the empty string is the archive itself."""
    return {
        f"{folder}/{n}.{ending}".lstrip("/"): photo((folder, n)) for folder in folders for n in N
    }


def masks(*folders, after=""):
    return {f"{folder}/{n}{after}.png": mask((folder, n)) for folder in folders for n in N}


def named(folder, *labels):
    """Photographs whose names hold labels."""
    return {f"{folder}{label}.{n}.jpg": photo((label, n)) for label in labels for n in N}


def samples(seed, *parts, count=6):
    """WebDataset's samples of these parts; the label is 0 or 1."""
    return {
        f"{seed}{n}.{part}": str(int(n) % 2).encode() if part == "cls" else photo((seed, n, part))
        for n, part in itertools.product(counted(count), parts)
    }


def sample_with_mask(name):
    return {f"{name}.jpg": photo(name), f"{name}.mask.png": mask(name)}


def write(folder, content):
    """Writes files, and archives of the files in a mapping."""
    for path, inside in content.items():
        if isinstance(inside, dict):
            pack(folder / path, inside)
        else:
            write_files(folder, {path: inside})


def images_of(planned):
    """The number of images of each split and class."""
    return Counter(
        {
            (split, label): count
            for split, summary in planned.summary.splits.items()
            for label, count in summary.classes.items()
        }
    )


def each_of(splits, labels, count=6):
    return Counter({key: count for key in itertools.product(splits, labels)})


CLASSES = ("cat", "dog")
TWO = ("train", "test")
ORDINARY = {
    "classes below splits": (
        {"d.zip": photos(*(f"{split}/{each}" for split in TWO for each in CLASSES))},
        each_of(TWO, CLASSES),
    ),
    "two folders around splits": (
        {"d.zip": photos(*(f"a/b/{split}/{each}" for split in TWO for each in CLASSES))},
        each_of(TWO, CLASSES),
    ),
    "splits of images": ({"d.zip": photos(*TWO)}, each_of(TWO, [""])),
    "a folder around splits of images": (
        {"d.tar": photos(*(f"d/{split}" for split in TWO))},
        each_of(TWO, [""]),
    ),
    "one split of images": ({"d.zip": photos("train")}, each_of(["train"], [""])),
    "one split of classes": (
        {"d.zip": photos("d/train/cat", "d/train/dog")},
        each_of(["train"], CLASSES),
    ),
    "train_images, test_images": (
        {"d.zip": photos("train_images", "test_images")},
        each_of(TWO, [""]),
    ),
    "train.zip, test.zip": ({f"{each}.zip": photos("") for each in TWO}, each_of(TWO, [""])),
    "train.zip with train, test.zip with test": (
        {f"{each}.zip": photos(each) for each in TWO},
        each_of(TWO, [""]),
    ),
    "train.zip with train and classes": (
        {f"{each}.zip": photos(f"{each}/cat", f"{each}/dog") for each in TWO},
        each_of(TWO, CLASSES),
    ),
    "train.zip with train and classes, test.zip with classes": (
        {"train.zip": photos("train/cat", "train/dog"), "test.zip": photos("cat", "dog")},
        each_of(TWO, CLASSES),
    ),
    "train2017.zip with train2017": (
        {f"{each}2017.zip": photos(f"{each}2017") for each in TWO},
        each_of(TWO, [""]),
    ),
    "archives for splits in a folder": (
        {f"data/{each}.zip": photos("cat", "dog") for each in TWO},
        each_of(TWO, CLASSES),
    ),
    "archives of classes with folders for splits": (
        {f"{each}.zip": photos(*TWO) for each in CLASSES},
        each_of(TWO, CLASSES),
    ),
    "archives of classes with images in folders for splits": (
        {f"{split}/{each}.tar": photos("images") for split in TWO for each in CLASSES},
        each_of(TWO, CLASSES),
    ),
    "train.zip with images, test.zip with images": (
        {f"{each}.zip": photos("images") for each in TWO},
        each_of(TWO, [""]),
    ),
    "ImageNet: archives of classes in folders for splits": (
        {f"{split}/{each}.tar": photos("") for split in TWO for each in ("n01440764", "n01443537")},
        each_of(TWO, ["n01440764", "n01443537"]),
    ),
    "ImageNet: train alone": (
        {f"train/{each}.tar": photos("") for each in ("n01440764", "n01443537")},
        each_of(["train"], ["n01440764", "n01443537"]),
    ),
    "numbered archives in folders for splits": (
        {f"{split}/{n}.tar": photos("") for split in TWO for n in N[:2]},
        each_of(TWO, [""], 12),
    ),
    "WebDataset in folders for splits": (
        {f"{split}/{n}.tar": samples(f"{split}{n}", "jpg", "cls") for split in TWO for n in N[:2]},
        each_of(TWO, "01"),
    ),
    "WebDataset in one folder for a split": (
        {f"train/{n}.tar": samples(n, "jpg", "cls") for n in N[:2]},
        each_of(["train"], "01"),
    ),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_archives_keep_their_splits_and_classes(name, tmp_path):
    content, expected = ORDINARY[name]
    write(tmp_path, content)
    planned = plan(tmp_path)
    assert (planned.exit_code, planned.message, images_of(planned)) == (0, "", expected)
    assert not planned.summary.rejected


PLAIN = {
    "classes": ({"d.zip": photos("cat", "dog")}, CLASSES),
    "README in a folder around classes": (
        {"d.zip": {**photos("photos/cat", "photos/dog"), "photos/README.md": b"x"}},
        CLASSES,
    ),
    "what systems and people add": (
        {
            "d.zip": {
                **photos("cat", "dog"),
                **{
                    name: b"x" for name in ("LICENSE", ".DS_Store", "__MACOSX/._a", "cat/Thumbs.db")
                },
            },
            "README.md": b"x",
        },
        CLASSES,
    ),
    "one folder below each class": ({"d.zip": photos("a/cat/imgs", "a/dog/imgs")}, CLASSES),
    "archives that are classes": ({f"{each}.zip": photos("") for each in CLASSES}, CLASSES),
    "archives that are classes, with a folder of images": (
        {f"{each}.zip": photos("images") for each in CLASSES},
        CLASSES,
    ),
    "archives that are classes, with two folders around images": (
        {f"{each}.tar": photos(f"{each}/photos") for each in CLASSES},
        CLASSES,
    ),
    "archives that are classes, some with a folder of images": (
        {"cat.zip": photos("images"), "dog.zip": photos("")},
        CLASSES,
    ),
    "numbered archives with a folder of images": (
        {f"{n}.zip": photos("images") for n in (1, 2)},
        [""],
    ),
    "numbered archives of other members": (
        {
            f"pets_{at}.zip": {f"{each}/{at}{n}.jpg": photo((at, n)) for each in CLASSES for n in N}
            for at in (1, 2)
        },
        CLASSES,
    ),
    "parts of a collection, counted in each": (
        {f"pets_part{at}.zip": photos("cat", "dog") for at in (1, 2)},
        CLASSES,
    ),
    "names of classes with commas": (
        {
            "0.tar": {
                f"{n}.{part}": photo(n) if part == "jpg" else label
                for n, label in zip(N, [b"tench, Tinca tinca", b"hen"] * 3, strict=True)
                for part in ("jpg", "cls")
            }
        },
        ["hen", "tench, Tinca tinca"],
    ),
    "archives with a folder of their class": (
        {f"{each}.zip": photos(each) for each in CLASSES},
        CLASSES,
    ),
    "parts of the same classes": (
        {f"part{at}.zip": photos(f"part{at}/cat", f"part{at}/dog") for at in (1, 2)},
        CLASSES,
    ),
    "images alone": ({"d.zip": photos("images")}, [""]),
    "images in a folder around": ({"d.zip": photos("d/images")}, [""]),
    "images beside a README": ({"d.zip": {**photos("images"), "README.md": b"x"}}, [""]),
    "numbered archives": ({"1.zip": photos(""), "2.zip": photos("")}, [""]),
    "counted archives": ({f"pets_{n}.zip": photos("") for n in N[:3]}, [""]),
    "words that hold those of splits": (
        {"contest.zip": photos("contest/cat"), "latest.zip": photos("latest/dog")},
        None,
    ),
    "samples of a submission": (
        {"d.zip": photos("cat", "dog"), "sampleSubmission.csv": b"id,label\n1,0\n"},
        CLASSES,
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_ordinary_archives_convert_unasked(name, tmp_path):
    content, labels = PLAIN[name]
    write(tmp_path, content)
    planned = plan(tmp_path)
    if labels is None:
        assert planned.exit_code == 2
        return
    assert (planned.exit_code, planned.message) == (0, "")
    assert content_of(planned)[2:] == (sorted(labels), {})


@pytest.mark.parametrize("name", ["labels.csv", "annotations.xml", "d.json"])
def test_an_archive_that_the_user_names_is_judged_as_in_a_folder(name, tmp_path):
    content = {"labels.csv": TABLE, "annotations.xml": b"<annotations>", "d.json": COCO}
    write(tmp_path, {"d.zip": {**photos("images"), name: content[name]}})
    planned = plan(tmp_path / "d.zip")
    assert planned.exit_code == 2
    assert f"d.zip/{name} (" in planned.message


JPEGS = photos("images")
STOPPED = {
    "a table in the archive": (
        {"d.zip": {**JPEGS, "labels.csv": TABLE}},
        "d.zip/labels.csv (tables); if they belong to the images, unpack the archives; to convert",
        [(6, [""])],
    ),
    "lists of splits": (
        {"d.zip": {**photos("cat", "dog"), "train.txt": b"cat/000.jpg\ncat/001.jpg\n"}},
        "d.zip/train.txt (names of images); if they belong to the images, unpack the archives",
        [(12, CLASSES)],
    ),
    "an archive in the archive": (
        {"d.zip": {**photos("cat", "dog"), "bird.zip": b"PK\3\4"}},
        "d.zip/bird.zip (archives); if they belong to the images, unpack the archives",
        [(12, CLASSES)],
    ),
    "Kaggle: train.zip, test.zip, train.csv": (
        {**{f"{each}.zip": photos(each) for each in TWO}, "train.csv": TABLE},
        "train.csv (tables); if they belong to the images, unpack the archives; to convert",
        [(12, [""])],
    ),
    "a table next to images.zip": (
        {"images.zip": photos("images"), "labels.csv": b"filename,label\n000.jpg,a\n001.jpg,b\n"},
        "labels.csv (tables); if they belong to the images, unpack the archives",
        [(6, [""])],
    ),
    "COCO next to images.zip": (
        {"images.zip": photos(""), "annotations.json": COCO},
        "next to what looks like coco (COCO's JSON files such as annotations.json): unpack "
        "images.zip to convert all of it; to convert the archives alone, add",
        [(6, [""])],
    ),
    "a folder for train, an archive for test": (
        {**photos("train/cat", "train/dog"), "test.zip": photos("test/cat", "test/dog")},
        "unpack test.zip to convert all of it; to convert the archives alone, add --set "
        "'ignore=[/train/]'; to convert the other files alone, add --set 'ignore=[/test.zip]'",
        [(12, CLASSES), (12, CLASSES)],
    ),
    "images and masks": (
        {"d.zip": {**JPEGS, **masks("masks")}},
        "d.zip/images and d.zip/masks hold images of the same names",
        [(6, [""])],
    ),
    "images at the top, masks in a folder": (
        {"d.zip": {**photos(""), **masks("masks")}},
        "d.zip and d.zip/masks hold images of the same names",
        [(6, [""])],
    ),
    "masks beside images": (
        {"d.tar": {**photos("cat", "dog"), **masks("cat", "dog", after="_mask")}},
        "d.tar/cat/000_mask.png looks like a mask of 000.jpg",
        [(12, CLASSES)],
    ),
    "the same folders in all classes": (
        {"d.zip": photos(*(f"{each}/{kind}" for each in CLASSES for kind in ("bad", "good")))},
        "d.zip: cat, dog all hold the folders bad, good",
        [(24, ["bad", "good"]), (24, CLASSES), (24, [""])],
    ),
    "training_set/training_set": (
        {
            "d.zip": photos(
                *(f"{at}/{at}/{each}" for at in ("training_set", "test_set") for each in CLASSES)
            )
        },
        "test_set, training_set may be splits: if so, add",
        [(24, CLASSES)],
    ),
    "seg_train, seg_test": (
        {"d.zip": photos("seg_train", "seg_test")},
        "seg_test, seg_train may be splits: if so, add",
        [(12, [""])],
    ),
    "splits and another folder": (
        {"d.zip": photos(*(f"{at}/{each}" for at in ("extra", *TWO) for each in CLASSES))},
        "test, train may be splits: if so, add",
        [(24, CLASSES)],
    ),
    "one split and another folder": (
        {"d.zip": photos("train/cat", "train/dog", "unlabeled")},
        "train may be splits: if so, add",
        [(12, CLASSES)],
    ),
    "an archive of masks": (
        {"x_Input.zip": photos("x_Input"), "x_GroundTruth.zip": masks("x_GroundTruth")},
        "x_Input.zip/x_Input and x_GroundTruth.zip/x_GroundTruth hold images of the same names",
        [(6, [""])],
    ),
    "both sides of splits": (
        {f"{each}.zip": photos(each) for each in ("trainA", "trainB", "testA", "testB")},
        "testA, trainA and testB, trainB are two sides of the same splits",
        [(12, [""]), (12, [""])],
    ),
    "archives in folders of classes in splits": (
        {f"{split}/{each}/0.tar": photos("") for split in TWO for each in CLASSES},
        "to read what is in archives, unpack them",
        [],
    ),
    "classes in one split": (
        {"d.zip": photos("train/cat", "train/dog", "test")},
        "test has no class folders, as the others have",
        [(18, [""])],
    ),
    "archives that differ": (
        {"a.zip": photos("cat", "dog"), "b.zip": photos("")},
        "the archives differ (a.zip: class folders such as cat, b.zip: archives that are classes)",
        [(12, CLASSES), (6, [""]), (18, [""])],
    ),
    "archives in folders of classes": (
        {f"{each}/part{at}.zip": photos("") for each in CLASSES for at in (1, 2)},
        "the folders around the archives, such as cat, do not name classes",
        [(24, [""])],
    ),
    "labels in names": (
        {"d.zip": named("train/", "cat", "dog")},
        "d.zip may hold labels such as cat in the images' names, which are not read from archives",
        [(12, [""])],
    ),
    "dates": (
        {"d.zip": photos("2021-01-01", "2021-01-02")},
        "2021-01-01, 2021-01-02 are dates, not classes",
        [(12, [""])],
    ),
    "two images and a file of each sample": (
        {
            "0.tar": {
                name: data
                for n in N
                for name, data in (
                    (f"{n}.json", b'{"height": 3}'),
                    (f"{n}_a.jpg", photo((n, "a"))),
                    (f"{n}_b.jpg", photo((n, "b"))),
                )
            }
        },
        "0.tar holds two images of each sample, *_a.jpg and *_b.jpg, and a file such as 000.json",
        [(6, [""]), (6, [""])],
    ),
    "two images in each sample": (
        {"0.tar": samples("", "input.jpg", "target.jpg")},
        "its samples have several images (input.jpg, target.jpg), and one can be stored",
        [(6, [""]), (6, [""])],
    ),
    "a mask in each sample": (
        {"0.tar": {path: data for n in N for path, data in sample_with_mask(n).items()}},
        "0.tar/000.mask.png looks like a mask of 000.jpg",
        [(6, [""]), (6, [""])],
    ),
    "samples without a label among others": (
        {"0.tar": samples("a", "jpg", "cls") | samples("b", "jpg", count=3)},
        "3 images such as {}/0.tar/b000.jpg have no .cls with a label next to them, as others",
        [(6, ["0", "1"]), (9, [""])],
    ),
    "several classes in a label": (
        {
            "0.tar": {
                f"{n}.{part}": photo(n) if part == "jpg" else label
                for n, label in zip(N, [b"cat"] * 4 + [b"cat,dog"] * 2, strict=True)
                for part in ("jpg", "cls")
            }
        },
        "labels in .cls such as 'cat,dog' seem to be several classes of an image, and one is "
        "stored: write one class into each .cls; if each text is one class: add --set "
        "source.label_part=cls",
        [(6, ["cat", "cat,dog"])],
    ),
    "an archive without labels among others": (
        {"0.tar": samples("a", "jpg", "cls"), "1.tar": samples("b", "jpg", count=3)},
        "3 images such as {}/1.tar/b000.jpg have no .cls with a label next to them, as others",
        [(6, ["0", "1"]), (9, [""])],
    ),
    "versions of one collection": (
        {f"pets_v{at}.zip": photos("cat", "dog") for at in (1, 2)},
        "pets_v1.zip, pets_v2.zip all hold the folders cat, dog and images of the same names, such "
        "as cat/000.jpg: to take all of them for images of cat, dog, add --set "
        "source.class_from=first_folder; if they are versions of one collection, use --input "
        "{0}/pets_v1.zip or --input {0}/pets_v2.zip",
        [(24, CLASSES), (12, CLASSES), (12, CLASSES)],
    ),
    "the same folder in archives that may be classes": (
        {
            f"{each}.zip": {f"export/{each}{n}.jpg": photo((each, n)) for n in N}
            for each in ("bird", *CLASSES)
        },
        "bird.zip, cat.zip, dog.zip all hold the folders export: to take all of them for images of "
        "export, add --set source.class_from=first_folder; if the classes are bird, cat, dog, add "
        "--set source.class_from=archive",
        [(18, ["export"]), (18, ["bird", "cat", "dog"])],
    ),
    "the same folders and members in archives that may be classes": (
        {f"{each}.zip": photos("bad", "good") for each in CLASSES},
        "cat.zip, dog.zip all hold the folders bad, good and images of the same names, such as",
        [(24, ["bad", "good"]), (24, CLASSES), (12, ["bad", "good"]), (12, ["bad", "good"])],
    ),
    "no images": (
        {"d.zip": {"data.parquet": b"PAR1"}},
        "only files such as d.zip: unpack d.zip, since only images are read from archives",
        [],
    ),
}


@pytest.mark.parametrize("name", STOPPED)
def test_archives_stop_where_folders_stop_and_every_command_ends_right(name, tmp_path):
    content, said, ends = STOPPED[name]
    write(tmp_path, content)
    first = plan(tmp_path)
    assert first.exit_code == 2
    assert said.format(tmp_path) in first.message
    found = []
    for flags in printed_flags(first.message):
        given = dict(enumerate(flags))
        places = [given[at + 1] for at, each in given.items() if each == "--input"]
        values = [given[at + 1] for at, each in given.items() if each == "--set"]
        after = plan(*places or [tmp_path], *values)
        assert (after.exit_code, after.message) == (0, ""), flags
        found.append((content_of(after)[0], content_of(after)[2]))
    assert found == [(count, sorted(labels)) for count, labels in ends]
