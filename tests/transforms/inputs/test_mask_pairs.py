import pytest

from recordmill.transforms.inputs.found_pairs import Pairs
from recordmill.transforms.inputs.mask_pairs import find_mask_pairs

N = ("x1", "x2", "x3")


def folder(form, names=N):
    return [form.format(name) for name in names]


def find(folders, kept=(), left_out=(), **other):
    patterns = () if left_out else ("*",)
    return find_mask_pairs(Pairs("", kept, left_out, patterns=patterns, **other), folders)


@pytest.mark.parametrize(
    ("image", "mask", "templates"),
    [
        ("images/{}.jpg", "masks/{}.png", ("images/{name}", "masks/{name}")),
        ("img/{}.jpg", "labels/{}_L.png", ("img/{name}", "labels/{name}_L")),
        ("a/{}.jpg", "gt/gt_{}.png", ("a/{name}", "gt/gt_{name}")),
        ("images/{}.jpg", "ann/trimaps/{}.png", ("images/{name}", "ann/trimaps/{name}")),
        ("train/{}.png", "trainannot/{}.png", ("{split}/{name}", "{split}annot/{name}")),
        ("val/{}.png", "val_labels/{}_L.png", ("{split}/{name}", "{split}_labels/{name}_L")),
        ("val_img/{}.jpg", "val_gt/{}.png", ("{split}_img/{name}", "{split}_gt/{name}")),
        ("val/img/{}.jpg", "val/gt/{}.png", ("{split}/img/{name}", "{split}/gt/{name}")),
        ("a/i/val/{}.jpg", "a/m/val/{}_gt.png", ("a/i/{split}/{name}", "a/m/{split}/{name}_gt")),
        (
            "leftImg8bit/val/ulm/{}_leftImg8bit.png",
            "gtFine/val/ulm/{}_gtFine_labelIds.png",
            ("leftImg8bit/{split}/{name}_leftImg8bit", "gtFine/{split}/{name}_gtFine_labelIds"),
        ),
    ],
)  # fmt: skip
def test_templates_of_parallel_folders(image, mask, templates):
    (photos, one), (masks, other) = (form.rsplit("/", 1) for form in (image, mask))
    found = find({photos: folder(one), masks: folder(other)}, (photos,), (masks,))
    assert (found.images, found.masks) == templates
    assert found.found == tuple((image.format(name), mask.format(name)) for name in N)


def test_the_folders_next_to_the_semantic_masks_of_voc_are_others():
    name = "SegmentationClass"
    others = ("SegmentationObject", f"{name}Visualization", "SegmentationObjectVisualization")
    folders = {f"VOC/{each}": folder("{}.png") for each in ("JPEGImages", name, *others)}
    kept, *left_out = folders
    found = find(folders, (kept,), tuple(left_out))
    assert (found.images, found.masks) == ("VOC/JPEGImages/{name}", f"VOC/{name}/{{name}}")
    del folders[f"VOC/{name}"]
    assert find(folders, (kept,), tuple(left_out)) is None


@pytest.mark.parametrize(
    ("names", "templates"),
    [
        (("{}.jpg", "{}.png"), ("{name}.jpg", "{name}.png")),
        (("{}.jpg", "{}_mask.png"), ("{name}", "{name}_mask")),
        (("{}.png", "{}_L.png"), ("{name}", "{name}_L")),
        (("img_{}.png", "mask_{}.png"), ("img_{name}", "mask_{name}")),
    ],
)
def test_templates_of_masks_next_to_images(names, templates):
    found = find({"": [*folder(names[0]), *folder(names[1])]})
    assert (found.images, found.masks) == templates


def test_splits_with_the_same_numbers_are_not_mixed_up():
    folders = {path: folder("{}.png") for path in ("train", "trainannot", "val", "valannot")}
    found = find(folders, ("train", "val"), ("trainannot", "valannot"))
    assert found.words == ("train", "val")
    assert ("val/x1.png", "valannot/x1.png") in found.found
    assert len(found.found) == 6


def test_test_images_without_masks_are_named():
    folders = {path: folder("{}.png") for path in ("train/images", "train/masks", "test/images")}
    found = find(folders, ("train/images", "test/images"), ("train/masks",))
    assert found.without_masks == ("test/images",)
    folders["more/images"] = folders.pop("test/images")
    assert not find(folders, ("train/images", "more/images"), ("train/masks",)).leaves_only_tests


def test_folders_next_to_masks_of_classes_as_labelme_writes_them_are_left_out():
    names = "JPEGImages", "SegmentationClass", "SegmentationClassVisualization"
    folders = {path: folder("{}.png") for path in (*names, "SegmentationObject")}
    found = find(folders, names[:1], (*names[1:], "SegmentationObject"))
    assert (found.masks, len(found.found)) == ("SegmentationClass/{name}", 3)


def test_masks_of_training_are_taken_where_cityscapes_has_no_other_masks_of_classes():
    masks = [f"{name}_gtFine_{kind}.png" for name in N for kind in ("instanceIds", "labelTrainIds")]
    found = find(
        {"leftImg8bit": folder("{}_leftImg8bit.png"), "gt": masks}, ("leftImg8bit",), ("gt",)
    )
    assert found.masks == "gt/{name}_gtFine_labelTrainIds"


@pytest.mark.parametrize(
    ("folders", "kept", "left_out"),
    [
        ({f"{a}/{b}": folder("{}.png") for a in "im" for b in ("cat",)}, "i", "m"),
        ({f"{a}/{b}": folder("{}.png") for a in "im" for b in ("p01", "p02")}, "i", "m"),
        ({f"{b}/{a}": folder("{}.png") for a in "im" for b in ("0001", "0002")}, "i", "m"),
        ({"i": folder("{}.png"), "m": folder("{}.png"), "m2": folder("{}.png")}, "i", "m"),
        ({"i": folder("{}.png"), "m": folder("{}.png", N[:1])}, "i", "m"),
        ({"i": folder("{}.png"), "m": [*folder("{}_seg.png"), *folder("{}_gt.png")]}, "i", "m"),
        ({"i": folder("{}.png"), "m": folder("{}_predict.png")}, "i", "m"),
        ({"i": folder("{}.png"), "depth": folder("{}.png")}, "i", "m"),
        ({"{i}": folder("{}.png"), "m": folder("{}.png")}, "i", "m"),
    ],
)  # fmt: skip
def test_second_images_that_may_be_something_else_are_not_paired(folders, kept, left_out):
    kept = [path for path in folders if kept in path.split("/") or path == "{i}"]
    left_out = [path for path in folders if path not in kept]
    assert find(folders, tuple(kept), tuple(left_out)) is None


@pytest.mark.parametrize(
    ("image", "mask", "templates"),
    [
        ("i/{}/{}.jpg", "m/{}/{}.png", ("i/{class}/{name}", "m/{class}/{name}")),
        ("{}/i/{}.jpg", "{}/m/{}.png", ("{class}/i/{name}", "{class}/m/{name}")),
        ("a/{}/{}.jpg", "a/m/{}/{}.png", ("a/{class}/{name}", "a/m/{class}/{name}")),
        (
            "train/{}/{}.jpg",
            "m/train/{}/{}.png",
            ("{split}/{class}/{name}", "m/{split}/{class}/{name}"),
        ),
        ("{}/{}.jpg", "{}/{}_mask.png", ("{class}/{name}", "{class}/{name}_mask")),
    ],
)  # fmt: skip
def test_folders_of_classes(image, mask, templates):
    folders, masks = {}, []
    for label in ("cat", "dog"):
        for form in (image, mask):
            path, name = form.replace("{}", label, 1).rsplit("/", 1)
            folders[path] = [*folders.get(path, ()), *folder(name)]
        masks.append(path)
    kept = tuple(path for path in folders if path not in masks)
    found = find(folders, kept, tuple(masks) if kept else ())
    assert (found.images, found.masks) == templates
    assert found.classes == ("cat", "dog")
    assert len(found.found) == 6


@pytest.mark.parametrize(
    ("image", "mask", "templates"),
    [
        ("i/{}/{}.jpg", "m/{}/{}_gt.png", ("i/{name}", "m/{name}_gt")),
        ("i/val/{}/{}.jpg", "m/val/{}/{}.png", ("i/{split}/{name}", "m/{split}/{name}")),
        ("i/{}/img_{}.jpg", "m/{}/img_{}.png", None),
        ("{}/i/{}.jpg", "{}/m/{}.png", None),
    ],
)
def test_folders_may_be_parts_of_names(image, mask, templates):
    folders = {}
    for each in ("p01", "p02"):
        for form in (image, mask):
            path, name = form.replace("{}", each, 1).rsplit("/", 1)
            folders[path] = folder(name)
    kept, left_out = ([path for path in folders if each in path.split("/")] for each in "im")
    pairs = Pairs("", tuple(kept), tuple(left_out))
    found = find_mask_pairs(pairs, folders, are_names=True)
    assert (found and (found.images, found.masks)) == templates
    assert find_mask_pairs(pairs, folders) is None


def test_images_with_several_masks_are_not_taken():
    names = [*folder("{}.jpg"), *folder("{}_mask.png")]
    assert find({"cat": names, "dog": names}) is not None
    assert find({"cat": names, "dog": [*names, "x1_mask_1.png"]}) is None
    assert find({"": [*names, "x1_mask_1.png"]}) is None


@pytest.mark.parametrize("sign", ["is_even", "are_sides", "may_be_classes", "may_be_single"])
def test_pairs_that_are_in_doubt_are_not_taken(sign):
    folders = {"a": folder("{}.png"), "b": folder("{}.png")}
    assert find(folders, ("a",), ("b",)) is not None
    assert find(folders, ("a",), ("b",), **{sign: True}) is None
