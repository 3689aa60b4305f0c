"""Folders that look like classes and are none: the run stops, and every command that it prints ends
right on the same files, or stops again with further commands."""

import pytest
from first_hour import cvat
from followed_ways import check_all_ways, digests, each_of, found_in, of_class, together, under
from packed_inputs import pack
from paired_inputs import counted, digit, mask, masks, photo, photos
from peer import read_dataset
from printed_commands import follow, printed_flags, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(6)
PAIR_OF_CLASSES = ("cat", "dog")
NOTHING = ("", "")


def first_or_none(path):
    return NOTHING


def last(path):
    return "", path.split("/")[-2]


def whole(path):
    return "", path.rpartition("/")[0]


def kept(*folders, take=of_class):
    """Takes the files below these folders only."""
    return lambda path: (
        take(path) if path.startswith(tuple(f"{each}/" for each in folders)) else None
    )


def in_splits(splits, label=lambda path: path.split("/")[-2]):
    """Takes the files below the folders of splits, with a label."""

    def take(path):
        split = splits.get(path.split("/")[0])
        return (split, label(path)) if split else None

    return take


def unlabeled(path):
    return ""


def sides(one, other, names=N):
    """Two folders of images of the same names, as which either may be meant, or both."""
    files = together(photos(one, names, "png"), photos(other, names, "png"))
    return files, [under(one), under(other), of_class]


def single(path, data):
    return {path: data}


TRAIN_TEST = {"train": "train", "test": "test"}

SIDES = {
    f"{one}, {other}": sides(one, other)
    for one, other in (
        ("left", "right"),
        ("left_images", "right_images"),
        ("A", "B"),
        ("raw-890", "reference-890"),
    )
}
"""Either side is converted alone, or both are classes."""

PAIRS = {
    "A and B of other names": (
        together(photos("A", ["rome", "oslo", "bern"]), photos("B", ["kiev", "riga", "graz"])),
        [under("A"), under("B"), of_class],
    ),
    "A and B in splits": (
        each_of(
            [f"{s}/{d}" for s in TRAIN_TEST for d in "AB"],
            lambda at: photos(at, [at[-1] + n for n in N]),
        ),
        [
            lambda path: (path.split("/")[0], "") if "/A/" in path else None,
            lambda path: (path.split("/")[0], "") if "/B/" in path else None,
            lambda path: (path.split("/")[0], path.split("/")[1]),
        ],
    ),
    "changes between A and B": (
        together(*(photos(f"{s}/{d}", N, "png") for s in TRAIN_TEST for d in "AB"),
                 *(masks(f"{s}/label", N) for s in TRAIN_TEST)),
        [lambda path: (path.split("/")[0], "") if "/A/" in path else None],
    ),
    "images, references, and images without one": (
        together(
            *(photos(f"{each}-890", N) for each in ("raw", "reference")),
            photos("challenging", counted(3, 9)),
        ),
        [
            lambda path: None if "reference" in path else NOTHING,
            under("reference-890"),
            of_class,
        ],
    ),
    "raw and reference around classes": (
        each_of(
            [f"{d}/{c}" for d in ("raw", "reference") for c in PAIR_OF_CLASSES],
            lambda at: photos(at, N),
        ),
        [kept("raw", take=last), kept("reference", take=last), kept("raw", take=first_or_none)],
    ),
    "thumbnails in classes": (
        each_of(
            [f"{c}{at}" for c in PAIR_OF_CLASSES for at in ("", "/thumbs")],
            lambda at: photos(at, N),
        ),
        [lambda path: None if "thumbs" in path else of_class(path)],
    ),
    "thumbnails next to full images": (
        each_of(
            [f"{c}/{at}" for c in PAIR_OF_CLASSES for at in ("full", "thumbnails")],
            lambda at: photos(at, N),
        ),
        [lambda path: None if "thumb" in path else of_class(path)],
    ),
    "masks in a folder named after their image": (
        together(
            *(photos(f"{s}/{c}", N) for s in ("train", "val") for c in ("street", "park")),
            masks("train/street/001", ["instance_0", "instance_1"]),
            masks("val/street/000", ["instance_0"]),
        ),
        [lambda path: None if "instance" in path else (
            {"train": "train", "val": "validation"}[path.split("/")[0]], path.split("/")[1])],
    ),
    "masks next to classes": (
        together(
            *(photos(each, [f"{each}_{n}" for n in N]) for each in PAIR_OF_CLASSES),
            masks("masks", [f"{each}_{n}" for each in PAIR_OF_CLASSES for n in N]),
        ),
        [kept(*PAIR_OF_CLASSES)],
    ),
    "masks of other names in folders of ids": (
        together(
            *(photos(f"{n}ab/images", [f"{n}ab"], "png") for n in N),
            *(masks(f"{n}ab/masks", [f"{n}m{k}" for k in range(3)]) for n in N),
        ),
        [lambda path: NOTHING if "/images/" in path else None],
    ),
    "HR, LR and a third layer": (
        each_of(("HR", "LR", "upsampled"), lambda at: photos(at, N, "png")),
        [under("HR")],
    ),
    "A, B and labels of changes": (
        together(photos("A", N, "png"), photos("B", N, "png"), masks("label", N)),
        [under("A")],
    ),
    "classes that are called label_0": (
        together(
            *(photos(f"default/label_{k}", N, "png") for k in range(3)),
            *(masks(f"ground_truth/label_{k}", N, after="_mask") for k in (1, 2)),
        ),
        [lambda path: last(path) if path.startswith("default/") else None],
    ),
    "two formats": (
        each_of(PAIR_OF_CLASSES, lambda at: together(photos(at, N), photos(at, N, "bmp"))),
        [lambda path: of_class(path) if path.endswith(".jpg") else None],
    ),
}  # fmt: skip
"""Files, and what each way through the printed commands takes."""

SPLITS = {
    "a folder of the split's name in it": (
        each_of(
            [f"{s}/{s}/{c}" for s in ("training_set", "test_set") for c in PAIR_OF_CLASSES],
            lambda at: photos(at, N[:3]),
        ),
        [in_splits({"training_set": "train", "test_set": "test"})],
    ),
    "images around the classes": (
        each_of(
            [f"{s}/images/{c}" for s in ("WIDER_train", "WIDER_val") for c in ("0--a", "1--b")],
            lambda at: photos(at, N[:3]),
        ),
        [in_splits({"WIDER_train": "train", "WIDER_val": "validation"})],
    ),
    "a third folder of classes": (
        each_of(
            [f"{s}/{c}" for s in ("train", "test", "extra") for c in PAIR_OF_CLASSES],
            lambda at: photos(at, [f"{at.partition('/')[0]}{n}" for n in N[:3]]),
        ),
        [in_splits(TRAIN_TEST), in_splits({**TRAIN_TEST, "extra": "extra"})],
    ),
    "a third folder of images": (
        together(
            each_of([f"{s}/{c}" for s in TRAIN_TEST for c in PAIR_OF_CLASSES],
                    lambda at: photos(at, N[:3])),
            photos("unlabeled", N),
        ),
        [in_splits(TRAIN_TEST)],
    ),
    "people": (
        each_of(
            ("bounding_box_train", "bounding_box_test", "query"),
            lambda at: photos(at, [f"{n}_c1s1_0{at[-1]}{n}_00" for n in N]),
        ),
        [
            in_splits({"bounding_box_train": "train", "bounding_box_test": "test"}, unlabeled),
            in_splits({"bounding_box_train": "train", "bounding_box_test": "test",
                       "query": "query"}, unlabeled),
        ],
    ),
    "a flat test": (
        together(
            each_of([f"train/{c}" for c in PAIR_OF_CLASSES], lambda at: photos(at, N)),
            photos("test", N),
        ),
        [in_splits({"train": "train"}), in_splits(TRAIN_TEST, unlabeled)],
    ),
    "trains and planes": (
        each_of(("train", "plane", "test_tube"), lambda at: photos(at, [f"{at}{n}" for n in N])),
        [
            in_splits({"train": "train", "test_tube": "test"}, unlabeled),
            in_splits({"train": "train", "test_tube": "test", "plane": "plane"}, unlabeled),
            of_class,
        ],
    ),
}  # fmt: skip


def single_photo(folder, name="image", kind="png"):
    return photos(folder, [name], kind)


def dermoscopic(kind, count):
    """A photograph and a mask in folders of their own, below a folder of the lesion, as in PH2."""
    at, name = f"{kind}/IMD{kind[0]}{count}", f"IMD{kind[0]}{count}"
    return together(
        photos(f"{at}/{name}_Dermoscopic_Image", [name], "bmp"),
        masks(f"{at}/{name}_lesion", [name], after="_lesion"),
    )


def not_drawn(take):
    """Takes the photographs, which are not called by the words of the cases below."""
    words = ("outline", "contour", "m.", "_lesion", "_parts", "_seg", "nucleus", "right", "/1.png")
    return lambda path: None if any(word in path for word in words) else take(path)


S = [f"s{n:02}" for n in range(6)]
SAMPLES = {
    "a word before the number": (
        each_of(PAIR_OF_CLASSES, lambda at: together(
            photos(at, [f"img{n}" for n in range(6)]),
            masks(at, [f"outline-{n}" for n in range(6)]),
        )),
        [not_drawn(of_class)],
    ),
    "a letter after the number": (
        each_of(PAIR_OF_CLASSES, lambda at: together(
            photos(at, [f"{n}" for n in range(6)]),
            {f"{at}/{n}m.jpg": mask((at, n), "JPEG") for n in range(6)},
        )),
        [not_drawn(of_class)],
    ),
    "a letter after a name, without classes": (
        together(
            {f"{name}.jpg": photo(name) for name in ("bar", "dome", "hut")},
            {f"{name}m.png": mask(name) for name in ("bar", "dome", "hut")},
        ),
        [not_drawn(first_or_none)],
    ),
    "masks and parts, as in ADE20K": (
        each_of(("street", "office"), lambda at: together(
            photos(at, [f"ADE_{n}" for n in N]),
            masks(at, [f"ADE_{n}" for n in N], "RGB", "_seg"),
            *(masks(at, [f"ADE_{n}" for n in N[:4]], "RGB", f"_parts_{k}") for k in (1, 2)),
        )),
        [not_drawn(of_class)],
    ),
    "a folder per sample": (
        each_of(S, lambda at: together(single_photo(at), masks(at, ["contour"]))),
        [not_drawn(first_or_none)],
    ),
    "a folder per patient": (
        each_of(
            [f"patient_{n}" for n in N],
            lambda at: together(single_photo(at), masks(at, ["contour"])),
        ),
        [not_drawn(first_or_none)],
    ),
    "a folder per sample in classes": (
        each_of(
            [f"{kind}/{s}" for kind in "xy" for s in S],
            lambda at: together(single_photo(at), masks(at, ["contour"])),
        ),
        [not_drawn(of_class)],
    ),
    "a folder per sample in splits": (
        each_of(
            [f"{split}/{split[-1]}{n}" for split in TRAIN_TEST for n in N],
            lambda at: together(single_photo(at), masks(at, ["contour"])),
        ),
        [not_drawn(in_splits(TRAIN_TEST, unlabeled))],
    ),
    "PH2": (
        together(*(dermoscopic(kind, n) for kind in ("nevus", "melanoma") for n in range(4))),
        [not_drawn(of_class)],
    ),
    "left and right of each sample": (
        each_of(S, lambda at: photos(at, ["left", "right"])),
        [not_drawn(first_or_none), lambda path: NOTHING if "right" in path else None],
    ),
    "one image per sample": (
        each_of([f"case{n}" for n in N], single_photo),
        [first_or_none],
    ),
    "many images of equal names in numbered folders": (
        each_of(S, lambda at: photos(at, [*"abcdefghi", "happy"])),
        [first_or_none],
    ),
}  # fmt: skip
"""The same: second images are left out, and folders of single samples are no classes."""

XML = b"<dataset><images><image file='000.jpg'></image></images></dataset>"

LAYERS = {
    "images, augmented ones with masks, and a flat split": (
        together(
            photos("train/image", N, "png"),
            masks("train/label", N),
            photos("train/aug", [f"image_{n}_7{n}" for n in N], "png"),
            masks("train/aug", [f"mask_{n}_9{n}" for n in N]),
            photos("test", counted(6, 40), "png"),
        ),
        [
            lambda path: None if "label" in path or "mask" in path else (path.split("/")[0], ""),
            lambda path: None if "label" in path or "aug" in path else (path.split("/")[0], ""),
        ],
    ),
    "images next to others": (
        together(photos("images", N), photos("rotated", counted(6, 40))),
        [first_or_none, under("images")],
    ),
    "annotations around splits of classes": (
        {
            "labels.xml": XML,
            **each_of(
                [f"pets/{s}/{c}" for s in TRAIN_TEST for c in PAIR_OF_CLASSES],
                lambda at: photos(at, N[:3]),
            ),
        },
        [lambda path: tuple(path.split("/")[1:3]) if path.endswith("jpg") else None],
    ),
    "a list of labels around images in splits": (
        {
            "labels.txt": b"000.jpg 1\n001.jpg 0\n",
            **each_of([f"images/{s}" for s in TRAIN_TEST], lambda at: photos(at, N)),
        },
        [lambda path: (path.split("/")[1], "") if path.endswith("jpg") else None],
    ),
    "annotations around images and masks": (
        together({"annotations.xml": XML}, photos("images", N), masks("masks", N)),
        [under("images")],
    ),
    "masks around splits in a folder": (
        together(
            *(photos(f"bottle/{s}/{c}", N, "png") for s in TRAIN_TEST for c in ("good", "bad")),
            masks("bottle/ground_truth/bad", N, after="_mask"),
        ),
        [lambda path: tuple(path.split("/")[1:3]) if "ground" not in path else None],
    ),
    "two exports side by side": (
        together(*(
            {f"{at}/annotations.xml": cvat(f"{n}.jpg" for n in N), **photos(f"{at}/images", N)}
            for at in ("monday", "tuesday")
        )),
        [
            lambda path: NOTHING if path.startswith("monday/images") else None,
            lambda path: NOTHING if path.startswith("tuesday/images") else None,
            lambda path: NOTHING if path.endswith("jpg") else None,
        ],
    ),
    "two exports, one with splits": (
        together(
            {"project/annotations.xml": XML, "task/train.xml": XML},
            *(photos(f"project/images/{s}", N) for s in ("Train", "Test")),
            photos("task/images", N),
        ),
        [
            lambda path: (path.split("/")[2].lower(), "") if "project/images" in path else None,
            lambda path: NOTHING if path.startswith("task/images") else None,
        ],
    ),
    "splits in some classes": (
        together(*(photos(f"cat/{s}", N) for s in TRAIN_TEST), photos("dog", N)),
        [lambda path: (path.split("/")[1], "cat") if path.startswith("cat") else None, of_class],
    ),
}  # fmt: skip
"""The same: folders are layers or collections, or hold splits, and annotations are named."""

TREES = {
    "kinds of animals and vehicles": (
        each_of(
            ("animal/cat", "animal/dog", "vehicle/car", "vehicle/bus"), lambda at: photos(at, N)
        ),
        [last, of_class],
    ),
    "digits around digits": (
        each_of(("1/1", "1/2", "2/1", "2/2"), lambda at: photos(at, N)), [first_or_none],
    ),
    "takes of actions": (
        each_of([f"v_{a}_g0{g}_c01" for a in ("Run", "Jump") for g in "12"],
                lambda at: photos(at, [f"frame{n}" for n in N])),
        [of_class],
    ),
    "folders of formats": (
        together(photos("jpg", N), photos("bmp", N, "bmp")), [first_or_none],
    ),
    "a collection around splits and others": (
        each_of([f"fruits/{s}/{c}" for s in ("Training", "Test") for c in ("fig", "kiwi")]
                + ["fruits/papers"], lambda at: photos(at, N)),
        [lambda path: None if "papers" in path else (
            {"Training": "train", "Test": "test"}[path.split("/")[1]], path.split("/")[2])],
    ),
    "sites around patients": (
        each_of(
            [f"site_{s}/patient_{p}/{c}" for s in "AB" for p in "12" for c in ("benign", "bad")],
            lambda at: photos(at, N[:3]),
        ),
        [last, first_or_none],
    ),
    "copies of classes": (
        each_of(
            [f"{s}/{c}" for s in ("original", "augmented") for c in ("cat", "dog")],
            lambda at: photos(at, [f"{at[-3:]}{at[0]}{n}" for n in N]),
        ),
        [kept("original", take=last), last, first_or_none],
    ),
    "cameras": (
        each_of(
            [f"samples/CAM_{side}" for side in ("FRONT", "FRONT_LEFT", "BACK")],
            lambda at: photos(at, [f"{at[-4:]}{n}" for n in N]),
        ),
        [first_or_none],
    ),
    "places that share some": (
        each_of(
            ("rome/bar", "rome/park", "oslo/bar", "oslo/port", "oslo/pier"),
            lambda at: photos(at, N),
        ),
        [last, of_class, whole],
    ),
    "sequences": (
        each_of(("MOT-02/img1", "MOT-04/img1"), lambda at: photos(at, N)),
        [first_or_none],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", CASES := {**SIDES, **PAIRS, **SAMPLES, **LAYERS, **SPLITS, **TREES}
)
def test_every_printed_command_ends_right(name, tmp_path, run_in):
    files, ways = CASES[name]
    write_files(tmp_path / "in", files)
    check_all_ways(files, ways, run_in)


@pytest.mark.parametrize(
    ("name", "archive"),
    [
        ("a letter after a name, without classes", "x.zip"),
        ("a folder per sample", "x.tar"),
        ("a folder per sample in classes", "x.zip"),
        ("a folder per sample in splits", "x.tar"),
    ],
)
def test_every_printed_command_ends_right_for_archives(name, archive, tmp_path, run_in):
    files, ways = SAMPLES[name]
    pack(tmp_path / "in" / archive, files)
    check_all_ways(files, ways, run_in)


def test_masks_and_annotations_in_an_archive_are_left_out_together(tmp_path, run_in):
    files = together(
        {f"{n}.jpg": photo(n) for n in N},
        {f"{n}m.png": mask(n) for n in N},
        {f"notes/{n}.json": b'{"height": 3}' for n in N},
    )
    pack(tmp_path / "in" / "x.zip", files)
    check_all_ways(files, [lambda path: NOTHING if path.endswith("jpg") else None], run_in)
    ends = list(follow(["--input", "in"], run_in))
    (members,) = [each for each in ends[0].arguments if each.startswith("source.members=")]
    assert members == 'source.members=["*","!*[0-9]m.png","!/notes/*.json"]'


def test_a_mask_of_each_sample_stays_out_if_the_user_has_asked_for_no_labels(tmp_path, run_in):
    files, _ = SAMPLES["a folder per patient"]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in", "--set", "source.class_from=none"])
    assert code == 2
    assert list(printed_flags(err.rpartition(";")[2])) == [
        ["--input", "in", "--output", "out", "--set", "report=false",
         "--set", "ignore=[\"contour.png\"]", "--set", "source.class_from=none"]
    ]  # fmt: skip


STAY = {
    "drawings that count alike": (
        {f"{kind}/{n}.png": mask((kind, n)) for kind in ("alpha", "beta", "pred") for n in N},
        of_class,
    ),
    "numbered after the class": (
        {f"{kind}/{kind}_{n}.png": photo((kind, n), "PNG") for kind in ("cat", "dog") for n in N},
        of_class,
    ),
    "JPEGs of two spellings": (
        together(
            {f"{kind}/{n}.JPG": photo((kind, n)) for kind in PAIR_OF_CLASSES for n in N},
            {f"{kind}/{n}.jpeg": photo((kind, n, 2)) for kind in PAIR_OF_CLASSES for n in N},
        ),
        of_class,
    ),
    "left next to other numbers": (
        together(photos("left", counted(6)), photos("right", counted(9, 20))), of_class,
    ),
    "one image each, in each other": (
        {"label_0/label_0_1.jpg": photo(1), "label_1/label_1_1.jpg": photo(2),
         "label_1/label_1_1/label_1_1.jpg": photo(3)},
        of_class,
    ),
    "characters of alphabets": (
        each_of(
            [f"{a}/character{c:02}" for a in ("Greek", "Latin") for c in range(2 + (a == "Latin"))],
            lambda at: photos(at, N),
        ),
        of_class,
    ),
    "train/data/classes": (
        each_of([f"{s}/data/{c}" for s in TRAIN_TEST for c in PAIR_OF_CLASSES],
                lambda at: photos(at, N[:3])),
        in_splits(TRAIN_TEST),
    ),
    "augmented images": (
        each_of(PAIR_OF_CLASSES, lambda at: together(
            photos(at, [f"{at}{n}" for n in range(4)]),
            photos(at, [f"{at}{n}_flip" for n in range(4)]),
            {f"{at}/{at}{n}_gray.png": digit((at, n), 200) for n in range(4)},
        )),
        of_class,
    ),
    "labels in names": (
        each_of(PAIR_OF_CLASSES, lambda at: together(
            *(photos(at, [f"{kind}_{n}" for n in range(4)]) for kind in ("old", "young")),
        )),
        of_class,
    ),
    "thumb next to index": (each_of(("thumb", "index"), lambda at: photos(at, N)), of_class),
    "three letters": (each_of("ABC", lambda at: photos(at, [at + n for n in N])), of_class),
    "an image for each class": (
        together({f"{c}.jpg": photo(c) for c in PAIR_OF_CLASSES},
                 *(photos(c, N) for c in PAIR_OF_CLASSES)),
        lambda path: of_class(path) if "/" in path else None,
    ),
    "numbered classes of a few images": (
        each_of(("c1", "c2", "c3"), lambda at: photos(at, ["1", "2"])), of_class,
    ),
    "one sequence": (photos("MOT-02/img1", N), first_or_none),
}  # fmt: skip
"""Files that convert at the first try, and what is taken."""


@pytest.mark.parametrize("name", STAY)
def test_ordinary_folders_convert_at_the_first_try(name, tmp_path, run_in):
    files, take = STAY[name]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    given = any((take(path) or NOTHING)[0] for path in files)
    assert found_in(tmp_path / "out", given) == digests(files, take)


def test_patterns_of_a_printed_command_are_for_its_input(tmp_path, run_in):
    files, _ = LAYERS["masks around splits in a folder"]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in", "--set", "ignore=[/bottle/ground_truth/, /x/]"])
    assert code == 2
    assert list(printed_flags(err)) == [
        ["--input", "in/bottle", "--set", "ignore=[/ground_truth/]"]
    ]


def test_a_folder_in_given_splits_is_not_a_class(tmp_path, run_in):
    folders = [f"{s}/images/{c}" for s in ("WIDER_train", "WIDER_val") for c in ("0--a", "1--b")]
    write_files(tmp_path / "in", each_of(folders, lambda at: photos(at, N[:3])))
    splits = "splits.from_folders={WIDER_train: train, WIDER_val: validation}"
    code, _, err = run_in(["--input", "in", "--set", splits])
    assert code == 2
    assert list(printed_flags(err)) == [["--set", "source.class_from=last_folder"]]
    code, _, err = run_in(
        ["--input", "in", "--set", splits, "--set", "source.class_from=last_folder"]
    )
    assert code == 0, err
    assert {each.label for each in read_dataset(tmp_path / "out")} == {"0--a", "1--b"}
