"""Images with masks, and folders that are not classes: the run stops, and every command that it
prints ends right on the same files, or stops again with further commands."""

import io
import json
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest
from followed_ways import check_all_ways, digests, each_of, found_in, of_class, together, under
from paired_inputs import counted, digit, mask, masks, photo, photos
from peer import read_dataset
from printed_commands import follow, printed_flags, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(6)
HEX = "0123456789abcdef"
TWO = ("train", "val")


def cityscapes():
    cities = [(split, city) for split in ("train", "val") for city in ("aachen", "bonn")]
    return together(
        {
            f"leftImg8bit/{split}/{city}/{city}_00_{n}_leftImg8bit.png": photo(
                (split, city, n), "PNG"
            )
            for split, city in cities
            for n in N
        },
        {
            f"gtFine/{split}/{city}/{city}_00_{n}_gtFine_{kind}.png": mask((split, city, n))
            for split, city in cities
            for n in N
            for kind in ("labelIds", "color")
        },
    )


def mvtec(at):
    return together(
        photos(f"{at}train/good", N, "png"),
        photos(f"{at}test/good", N, "png"),
        photos(f"{at}test/broken_large", N, "png"),
        masks(f"{at}ground_truth/broken_large", N, after="_mask"),
    )


def camvid(split, first):
    names = counted(6, first)
    lines = "".join(f"/CamVid/{split}/{n}.png /CamVid/{split}annot/{n}.png\n" for n in names)
    return together(
        photos(split, names, "png"), masks(f"{split}annot", names), {f"{split}.txt": lines.encode()}
    )


def mapillary(split):
    return together(
        photos(f"{split}/images", N),
        each_of(
            [
                f"{split}/{version}/{kind}"
                for version in ("v1.2", "v2.0")
                for kind in ("labels", "instances")
            ],
            lambda folder: masks(folder, N),
        ),
    )


def not_png(path):
    return None if path.endswith(".png") else of_class(path)


WORDS = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "validation": "validation",
    "test": "test",
}


def unlabeled_splits(*folders):
    """Takes the files in these folders, each named after a split."""

    def take(path):
        folder = next((each for each in folders if path.startswith(f"{each}/")), None)
        return (WORDS[folder.split("/")[0].rstrip("AB").split("_")[0]], "") if folder else None

    return take


def mvtec_classes(at):
    def take(path):
        below = path.removeprefix(at).split("/")
        return (
            None
            if below[0] not in WORDS or not path.startswith(at)
            else (WORDS[below[0]], below[1])
        )

    return take


CASES = {
    "masks beside images of a class": (
        each_of(("crack", "hole"), lambda at: together(photos(at, N), masks(at, N))),
        [not_png],
    ),
    "masks beside images, two folders deeper": (
        each_of(("a/x/y", "b/x/y"), lambda at: together(photos(at, N), masks(at, N))),
        [not_png],
    ),
    "noise beside images": (
        each_of(("a/x", "b/x"), lambda at: together(photos(at, N), photos(at, N, "png"))),
        [not_png],
    ),
    "some classes with masks, one of PNG": (
        together(photos("a", N), masks("a", N), photos("b", N, "png")),
        [lambda path: None if path.startswith("a/") and path.endswith(".png") else of_class(path)],
    ),
    "an image and a table of masks at the top": (
        together({f"{n}.jpg": photo(n) for n in N}, masks("masks", N)),
        [lambda path: None if "/" in path else ("", "")],
    ),
    "image, gt_image": (
        together(photos("image", N), masks("gt_image", N)),
        [under("image")],
    ),
    "photos, targets": (together(photos("photos", N), photos("targets", N)), [under("photos")]),
    "pics, pics_gt of a part": (
        together(photos("pics", N), masks("pics_gt", N[:3])),
        [under("pics")],
    ),
    "HR, LR": (
        together(photos("HR", N, "png"), photos("LR", [f"{n}x2" for n in N], "png")),
        [under("HR")],
    ),
    "only their looks differ": (
        together(photos("a", N, "png"), masks("b", N)),
        [under("a")],
    ),
    "palettes": (together(photos("a", N, "png"), masks("b", N, "P")), [under("a")]),
    "names that are not counters": (
        together(photos("left", ["xaq", "bor", "zzu"]), photos("right", ["xaq", "bor", "zzu"])),
        [under("left"), under("right")],
    ),
    "trainA, trainB": (
        each_of(("trainA", "trainB", "valA", "valB"), lambda at: photos(at, N)),
        [unlabeled_splits("trainA", "valA"), unlabeled_splits("trainB", "valB")],
    ),
    "lanenet": (
        together(photos("image", N, "png"), masks("gt_binary_image", N), masks("gt_instance", N)),
        [under("image")],
    ),
    "CamVid": (
        together(camvid("train", 0), camvid("val", 100), camvid("test", 200)),
        [unlabeled_splits("train", "val", "test")],
    ),
    "MVTec, a kind": (mvtec(""), [mvtec_classes("")]),
    "MVTec, two kinds": (
        each_of(("bottle/", "cable/"), mvtec),
        [
            mvtec_classes("bottle/"),
            lambda path: mvtec_classes("bottle/")(path) or mvtec_classes("cable/")(path),
            lambda path: (path.split("/")[1], path.split("/")[0]) if "_mask" not in path else None,
            lambda path: (path.split("/")[1], "") if "_mask" not in path else None,
        ],
    ),
    "Mapillary": (
        together(mapillary("training"), mapillary("validation"), photos("test/images", N)),
        [
            unlabeled_splits("training/images", "validation/images", "test/images"),
            unlabeled_splits("training/images", "validation/images"),
        ],
    ),
    "unet": (
        together(
            photos("membrane/train/image", N, "png"), masks("membrane/train/label", N),
            photos("membrane/test", N, "png"), masks("membrane/test", N, after="_predict"),
        ),
        [lambda path: ("train", "") if path.startswith("membrane/train/image") else None],
    ),
    "Cityscapes": (
        cityscapes(),
        [lambda path: (WORDS[path.split("/")[1]], "") if path.startswith("left") else None],
    ),
    "images and masks of classes": (
        each_of(
            ("cat", "dog"), lambda at: together(photos(f"images/{at}", N), masks(f"masks/{at}", N))
        ),
        [lambda path: ("", path.split("/")[1]) if path.startswith("images/") else None],
    ),
    "images and masks in classes": (
        each_of(
            ("cat", "dog"), lambda at: together(photos(f"{at}/images", N), masks(f"{at}/masks", N))
        ),
        [lambda path: None if "/masks/" in path else of_class(path)],
    ),
    "images and masks in splits": (
        each_of(
            TWO, lambda at: together(photos(f"{at}/images", N), masks(f"{at}/masks", N))
        ),
        [unlabeled_splits("train/images", "val/images")],
    ),
    "splits in images and masks": (
        each_of(
            TWO, lambda at: together(photos(f"images/{at}", N), masks(f"masks/{at}", N))
        ),
        [lambda path: (WORDS[path.split("/")[1]], "") if path.startswith("images") else None],
    ),
    "train_images, train_masks": (
        each_of(
            TWO, lambda at: together(photos(f"{at}_images", N), masks(f"{at}_masks", N))
        ),
        [unlabeled_splits("train_images", "val_images")],
    ),
    "BUSI": (
        each_of(
            ("benign", "malignant"),
            lambda at: together(
                photos(at, [f"{at} ({n})" for n in N], "png"),
                masks(at, [f"{at} ({n})" for n in N], after="_mask"),
                masks(at, [f"{at} ({N[0]})"], after="_mask_1"),
            ),
        ),
        [lambda path: None if "_mask" in path else of_class(path)],
    ),
    "img_1, mask_1": (
        {**{f"img_{n}.jpg": photo(n) for n in N}, **{f"mask_{n}.png": mask(n) for n in N}},
        [lambda path: ("", "") if path.startswith("img") else None],
    ),
    "names with letters that patterns use": (
        together(photos("a [1] #/Imgs", N), masks("a [1] #/Masks*", N), photos("b/Imgs", N)),
        [lambda path: None if "Masks" in path else of_class(path)],
    ),
    "a single folder around classes": (
        together(photos("images/001.Black", N), photos("images/002.Red", N)),
        [lambda path: ("", path.split("/")[1])],
    ),
    "people with the same folders": (
        each_of(
            [f"P{number}/{kind}" for number in (1, 2, 3) for kind in ("normal", "tumor")],
            lambda at: photos(at, N),
        ),
        [lambda path: ("", path.split("/")[1]), lambda path: ("", "")],
    ),
    "hashes": (
        each_of([f"{a}/{b}" for a in HEX for b in "0c"], lambda at: photos(at, N[:1])),
        [lambda path: ("", "")],
    ),
    "labels in names": (
        {f"{name}.{n}.jpg": photo((name, n)) for name in ("cat", "dog") for n in N},
        [lambda path: ("", ""), lambda path: ("", path.split(".")[0])],
    ),
    "labels in the names of a split": (
        together(
            {f"train/{name}.{n}.jpg": photo((name, n)) for name in ("cat", "dog") for n in N},
            photos("test1", N),
        ),
        [
            lambda path: ("train" if path.startswith("train") else "test", ""),
            lambda path: ("train", path[6:9]) if path.startswith("train") else None,
        ],
    ),
    "masks in the last of many classes": (
        together(each_of([f"k{n}" for n in counted(40)], lambda at: photos(at, N[:2])),
                 masks("k039", N[:2])),
        [not_png],
    ),
    "masks in folders that were not looked at": (
        each_of(
            [f"c{n}/x/y" for n in counted(40)],
            lambda at: together(photos(f"{at}/img", N[:2]), masks(f"{at}/lab", N[:2])),
        ),
        [lambda path: None if "/lab/" in path else of_class(path)],
    ),
    "splits in classes": (
        each_of(
            [f"{kind}/{split}" for kind in ("cat", "dog") for split in TWO],
            lambda at: photos(at, N),
        ),
        [lambda path: (WORDS[path.split("/")[1]], path.split("/")[0]),
         lambda path: (WORDS[path.split("/")[1]], "")],
    ),
    "splits in places that hold classes": (
        each_of(
            [f"{place}/{split}/{kind}" for place in ("rome", "oslo") for split in TWO
             for kind in ("cat", "dog")],
            lambda at: photos(at, N[:2]),
        ),
        [lambda path: (WORDS[path.split("/")[1]], path.split("/")[2]),
         lambda path: (WORDS[path.split("/")[1]], path.split("/")[0]),
         lambda path: (WORDS[path.split("/")[1]], ""),
         lambda path: (WORDS[path.split("/")[1]], path.split("/")[2])
         if path.startswith("oslo") else None],
    ),
    "parts": (
        each_of(("part1", "part2"), lambda at: photos(at, N)), [lambda path: ("", "")]
    ),
    "patients": (
        each_of(("patient_01", "patient_02"), lambda at: photos(at, N)), [lambda path: ("", "")]
    ),
    "patients of kinds": (
        together(photos("patient_01/benign", N), photos("patient_02/malignant", N)),
        [lambda path: ("", path.split("/")[1]), lambda path: ("", "")],
    ),
    "dates": (
        each_of(("2019-05-01", "2019-05-02"), lambda at: photos(at, N)), [lambda path: ("", "")]
    ),
    "seg_train, seg_test": (
        together(photos("seg_train", N), photos("seg_test", N)),
        [lambda path: (path.split("/")[0].removeprefix("seg_"), "")],
    ),
    "seg_train, seg_test around classes": (
        each_of(
            [f"seg_{word}/{kind}" for word in ("train", "test") for kind in "ab"],
            lambda at: photos(at, N),
        ),
        [lambda path: (path.split("/")[0].removeprefix("seg_"), path.split("/")[1])],
    ),
}  # fmt: skip
"""The files of each case, and for each way through the printed commands what it takes: from a path
to the split (empty: of the fractions) and the class, or None."""


RECOGNIZED = {
    "an image and a table of masks at the top": 6,
    "image, gt_image": 6,
    "only their looks differ": 6,
    "palettes": 6,
    "CamVid": 18,
    "Cityscapes": 24,
    "images and masks in splits": 12,
    "splits in images and masks": 12,
    "train_images, train_masks": 12,
    "img_1, mask_1": 6,
    "masks beside images of a class": "12 in 2 classes",
    "masks beside images, two folders deeper": "12 in 2 classes",
    "images and masks of classes": "12 in 2 classes",
    "images and masks in classes": "12 in 2 classes",
}
"""The cases that convert at the first try, with their numbers of images and masks."""


@pytest.mark.parametrize("name", RECOGNIZED)
def test_images_with_masks_convert_at_the_first_try(name, tmp_path, run_in):
    files, (take,) = CASES[name]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in", "--set", "images.reencode=never"])
    assert code == 0, err
    said = str(RECOGNIZED[name])
    assert f"recognized image_masks: image and mask pairs: {said}, such as " in err
    count = int(said.split()[0])
    marker = json.loads(Path("out/recordmill.json").read_bytes())
    found = marker["annotations"]["segmentation"]
    assert (found["listed"], found["written"]) == (count, count)
    are_given = any(taken[0] for taken in map(take, files) if taken)
    assert found_in(Path("out"), are_given) == digests(files, take)


@pytest.mark.parametrize("name", [name for name in CASES if name not in RECOGNIZED])
def test_every_printed_command_ends_right(name, tmp_path, run_in):
    files, ways = CASES[name]
    write_files(tmp_path / "in", files)
    check_all_ways(files, ways, run_in)


def coco(names, size):
    width, height = size
    return json.dumps(
        {
            "images": [
                {"id": at, "file_name": name, "width": width, "height": height}
                for at, name in enumerate(names)
            ],
            "annotations": [
                {"id": at, "image_id": at, "category_id": 1, "bbox": [1, 1, 5, 5]}
                for at, _ in enumerate(names)
            ],
            "categories": [{"id": 1, "name": "cat"}],
        }
    ).encode()


NAMES = [f"{n}.jpg" for n in N]


def test_each_folder_that_holds_the_images_of_a_coco_file_is_offered(tmp_path, run_in):
    files = together(photos("images", N), photos("data", N))
    write_files(tmp_path / "in", {**files, "annotations.json": coco(NAMES, (24, 16))})
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    offered = [dict(flag.split("=", 1) for flag in way[1::2]) for way in printed_flags(err)]
    assert [way["source.images"] for way in offered] == ["images", "data"]
    for end in follow(["--input", "in"], run_in):
        assert end.code == 0, end.message
        folder = next(each[14:] for each in end.arguments if each.startswith("source.images="))
        expected = sorted(sha256(files[f"{folder}/{name}"]).hexdigest() for name in NAMES)
        assert sorted(each.sha256 for each in read_dataset(Path("out"))) == expected


@pytest.mark.parametrize("plan", [[], ["--plan"]])
def test_sizes_of_other_images_stop_the_run(plan, tmp_path, run_in):
    annotations = {"annotations.json": coco(NAMES, (40, 30))}
    write_files(tmp_path / "in", together(photos("images", N), annotations))
    code, _, err = run_in(["--input", "in", *plan])
    assert code in (1, 3)
    assert "boxes were drawn on 40 x 30 pixels, and the image has 24 x 16" in err


def test_second_images_are_counted_if_the_kind_is_given(tmp_path, run_in):
    write_files(tmp_path / "in", together(photos("image", N), masks("gt_image", N)))
    code, _, err = run_in(["--input", "in", "--set", "source.kind=class_folders"])
    assert code == 0
    assert (
        "6 images may be masks or other second images: image and gt_image hold images of the same "
        "names."
    ) in " ".join(err.split())


def in_zip(files, name="x.zip"):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return {name: stream.getvalue()}


def in_tar(files, name="x.tar"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz" if name.endswith("gz") else "w") as archive:
        for path, data in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return {name: stream.getvalue()}


INSIDE = {
    name: CASES[name]
    for name in (
        "masks beside images of a class",
        "some classes with masks, one of PNG",
        "trainA, trainB",
        "images and masks in classes",
        "splits in images and masks",
        "BUSI",
        "names with letters that patterns use",
        "splits in classes",
        "patients of kinds",
    )
}


@pytest.mark.parametrize(
    ("name", "pack"),
    [(name, (in_zip, in_tar)[at % 2]) for at, name in enumerate(INSIDE)],
)
def test_every_command_ends_right_for_archives(name, pack, tmp_path, run_in):
    files, ways = INSIDE[name]
    write_files(tmp_path / "in", pack(files))
    check_all_ways(files, ways, run_in)


def test_an_archive_of_masks_is_left_out(tmp_path, run_in):
    files, drawn = ({path.partition("/")[2]: data for path, data in each.items()}
                    for each in (photos("a", N), masks("a", N)))  # fmt: skip
    write_files(tmp_path / "in", in_zip(files, "images.zip") | in_zip(drawn, "masks.zip"))
    check_all_ways(files, [lambda path: ("", "")], run_in)


def test_archives_for_splits_keep_them_without_masks(tmp_path, run_in):
    parts = {
        split: together(photos("images", counted(6, first)), masks("masks", counted(6, first)))
        for split, first in (("train", 0), ("val", 50))
    }
    archives = [in_zip(files, f"{split}.zip") for split, files in parts.items()]
    write_files(tmp_path / "in", together(*archives))
    files = {f"{split}/{path}": parts[split][path] for split in parts for path in parts[split]}
    check_all_ways(files, [unlabeled_splits("train/images", "val/images")], run_in)


def test_a_folder_around_everything_is_in_no_class(tmp_path, run_in):
    names = [f"{kind}/character0{at}" for kind in ("Greek", "Latin") for at in (1, 2)]
    files = each_of(names, lambda at: masks(at, N))
    write_files(tmp_path / "in", in_tar({f"small/{path}": files[path] for path in files}, "x.tgz"))
    check_all_ways(files, [lambda path: ("", path.rpartition("/")[0]), of_class], run_in)


STAY = {
    "README": together(photos("cat", N), photos("dog", N)),
    "faces with and without masks": together(
        photos("with_mask", [f"with_mask_{n}" for n in N]),
        photos("without_mask", [f"without_mask_{n}" for n in N]),
    ),
    "Mask, Non Mask": together(photos("Mask", N), photos("Non Mask", N)),
    "MNIST": {f"{d}/{n}.png": digit((d, n), 25 if d == 1 else 120) for d in range(10) for n in N},
    "Omniglot": {
        f"{alphabet}/character{c:02}/{alphabet}_{n}.png": mask((alphabet, c, n))
        for alphabet in ("Balinese", "Greek")
        for c in (1, 2, 3)
        for n in N
    },
    "classes from 1": each_of(("1", "2", "3"), lambda at: photos(at, N)),
    "ORL's faces": each_of(("s1", "s2", "s3"), lambda at: photos(at, N)),
    "letters": each_of("ABC", lambda at: photos(at, N)),
    "names of a camera": each_of(("a", "b"), lambda at: photos(at, [f"IMG_{n}" for n in N])),
    "one folder below each": each_of(("cat/Imgs", "dog/Imgs"), lambda at: photos(at, N)),
    "an image at the top": together(
        {"overview.jpg": photo("o")}, each_of(("cat/Imgs", "dog/Imgs"), lambda at: photos(at, N))
    ),
    "labeled, unlabeled": together(photos("labeled", N), photos("unlabeled", N)),
    "drawings and icons": together(
        photos("photo", N, "png"),
        {f"icon/{n}.png": mask(n, mode="RGB") for n in N},
    ),
    "shapes": {
        f"{kind}/{n}.png": digit((kind, n), 25 if kind == "line" else 150)
        for kind in ("line", "spot")
        for n in N
    },
    "subfolders of few classes": together(photos("cat/train", N), photos("dog", N)),
    "gray and colored": together(photos("a", N, "png"), {f"b/{n}.png": digit(n, 200) for n in N}),
}


@pytest.mark.parametrize("name", STAY)
def test_classes_stay_classes_at_the_first_try(name, tmp_path, run_in):
    files = STAY[name]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    expected = digests(files, lambda path: of_class(path) if "/" in path else None)
    assert found_in(Path("out"), False) == expected


UNLABELED = {
    "images": photos("images", N),
    "jpg": photos("jpg", N),
    "photos": photos("photos", N),
    "data": photos("data", N),
    "all_images": photos("all_images", N),
    "splits": together(photos("train/images", N), photos("test/images", N)),
    "train_images": together(photos("train_images", N), photos("test_images", N)),
}


@pytest.mark.parametrize("name", UNLABELED)
def test_a_folder_that_says_nothing_is_not_a_class(name, tmp_path, run_in):
    write_files(tmp_path / "in", UNLABELED[name])
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert "images without labels" in err
    assert "No image has a label." in err
    assert {each.label for each in read_dataset(Path("out"))} == {""}
    marker = json.loads(Path("out/recordmill.json").read_bytes())
    assert marker["ledger"]["rejected"] == {}


def test_a_dataset_of_one_class_says_so(tmp_path, run_in):
    write_files(tmp_path / "in", photos("UTKFace", [f"{n}_1_2_20170{n}" for n in N]))
    code, _, err = run_in(["--input", "in"])
    assert (code, "All labels are one class, UTKFace." in err) == (0, True)
    assert "several numbers each, and may hold labels" in " ".join(err.split())


@pytest.mark.parametrize("more", [[], ["--set", "source.class_from=path", "--set", "seed=7"]])
def test_the_flags_in_use_are_printed_and_give_the_same_plan(more, tmp_path, run_in):
    files = each_of(("train/cat/x", "train/dog/y", "val/cat/x"), lambda at: photos(at, N))
    write_files(tmp_path / "in", files)
    plans = []
    code, out, err = run_in(["--input", "in", *more])
    assert code == 0, err
    plans.append(json.loads(Path("out/recordmill.json").read_bytes())["plan"]["id"])
    (flags,) = printed_flags(json.loads(out)["recognized"]["flags"])
    code, out, err = run_in(["--input", "in", *more, *flags])
    assert (code, json.loads(out).get("recognized")) == (0, None), err
    plans.append(json.loads(Path("out/recordmill.json").read_bytes())["plan"]["id"])
    assert plans[0] == plans[1]


def test_pairs_are_seen_in_large_folders(tmp_path, run_in):
    for folder, ending in (("image", "jpg"), ("label", "png")):
        (tmp_path / "in" / folder).mkdir(parents=True)
        for number in range(2_000):
            (tmp_path / "in" / folder / f"{number}.{ending}").touch()
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    assert list(printed_flags(err)) == [["--input", "in/image"]]


def voc(name):
    return (
        f"<annotation><folder>x</folder><filename>{name}</filename><size><width>24</width>"
        "<height>16</height></size><object><name>cat</name><bndbox><xmin>6</xmin><ymin>4</ymin>"
        "<xmax>18</xmax><ymax>12</ymax></bndbox></object></annotation>"
    ).encode()


def test_two_folders_of_the_annotated_images_are_asked_about(tmp_path, run_in):
    xml = {f"Annotations/{n}.xml": voc(f"{n}.jpg") for n in N}
    files = together(photos("day", N), photos("night", N), xml)
    write_files(tmp_path / "in", files)
    found = []
    for end in follow(["--input", "in"], run_in):
        assert end.code == 0, end.message
        dataset = read_dataset(Path("out"))
        assert [len(each.boxes) for each in dataset] == [1] * len(N)
        found.append({each.sha256 for each in dataset})
    assert found == [
        {sha256(data).hexdigest() for path, data in files.items() if path.startswith(folder)}
        for folder in ("day/", "night/")
    ]


def test_xml_files_that_name_images_of_other_xml_files_stop(tmp_path, run_in):
    write_files(tmp_path / "in", photos("JPEGImages", N))
    shifted = {
        f"Annotations/{n}.xml": voc(f"{other}.jpg")
        for n, other in zip(N, [*N[1:], N[0]], strict=True)
    }
    write_files(tmp_path / "in", shifted)
    code, _, err = run_in(["--input", "in"])
    assert code == 1
    assert (
        "in/Annotations/000.xml: it names 001.jpg, but 000.jpg, which has its name, is there, too: "
        "correct <filename>, or remove the image that it does not describe" in err
    )
