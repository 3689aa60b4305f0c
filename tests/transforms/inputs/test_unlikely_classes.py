import pytest

from recordmill.transforms.inputs.unlikely_classes import (
    UNSORTED,
    are_hex_digits,
    are_numbered,
    are_series,
    are_unlikely_classes,
    explain_unlikely,
    find_taken_classes,
    name_of_original,
)


@pytest.mark.parametrize(
    "names",
    [
        ["train", "val"],
        ["part1", "part2"],
        ["patient_01", "patient_02"],
        ["P1", "P22"],
        ["sub-01", "sub-02"],
        ["10253", "10254"],
        ["layer1", "layer2"],
        ["3fa9c1d2", "77e0aa01"],
        list("0123456789abcdef"),
        [],
    ],
    ids=str,
)
def test_splits_parts_people_layers_and_hashes_are_not_classes(names):
    assert are_unlikely_classes(names)


@pytest.mark.parametrize(
    "names", [["cat", "dog"], ["0", "1"], ["train", "bus"], ["part1", "cat"], list("ABC")], ids=str
)
def test_other_names_may_be_classes(names):
    assert not are_unlikely_classes(names)


def test_digits_of_hashes():
    assert are_hex_digits([f"{number:02x}" for number in range(256)])
    assert not are_hex_digits(list("0123456789"))
    assert not are_hex_digits(list("ABCDEF"))
    assert not are_hex_digits(list("0123456789abcdefg"))


def test_folders_that_are_counted():
    assert are_numbered(["character01", "character2"])
    assert not are_numbered(["normal", "tumor"])
    assert not are_numbered(["a1", "b1"])


@pytest.mark.parametrize(
    ("names", "what"),
    [
        (["part1", "part2"], "parts of the collection"),
        (["part_A", "part_B"], "parts of the collection"),
        (["images_001", "images_002"], "parts of the collection"),
        (["Batch 1", "Batch 2"], "parts of the collection"),
        (["fold-1"], "parts of the collection"),
        (["patient_01", "patient_02"], "patients or cases"),
        (["sub-01", "sub-02"], "patients or cases"),
        (["case1", "case2"], "patients or cases"),
        (["slice1", "slice2"], "layers of the same things"),
        (["2019-05-01", "2019-05-02"], "dates"),
        (["20190501", "20190502"], "dates"),
        (["2019", "2020"], "dates"),
        (["01.05.2019", "2.5.2019"], "dates"),
        (["3f2a9c01", "00ab12cd"], "hashes"),
        (list("0123456789abcdef"), "digits of the images' hashes"),
        (["images_part1", "images_part2"], "parts of the collection"),
        (["scene000", "scene001"], "recordings or scenes"),
        (["vid_0", "vid_1"], "recordings or scenes"),
        (["doc000", "doc001"], "documents or pages"),
        (["20210504_103000", "20210505_091500"], "dates"),
        (["2021-05-04T10-30-00", "2021-05-05T09-15-00"], "dates"),
        (["site_A", "site_B"], "sites or devices"),
        (["hospital1", "hospital2"], "sites or devices"),
        (["CAM_FRONT", "CAM_FRONT_LEFT"], "cameras"),
        (["A01", "A02", "H12"], "wells of a plate"),
        (["original", "augmented"], "images and changed copies of them"),
        (["raw_images", "processed", "augmented_2"], "images and changed copies of them"),
        (["jpg", "bmp"], "named after the images in them"),
        (["photos", "pictures"], "named after the images in them"),
        (["480p", "1080p"], "named after the images in them"),
        (["full", "crops"], "images and changed copies of them"),
        (["augmented", "cat"], None),
        (["original", "raw"], None),
        (["A1", "B2"], None),
        (["cat", "part1"], None),
        (["1", "2", "3"], None),
        (["001", "002"], None),
        (["00000", "00042"], None),
        (["s1", "s2"], None),
        (["c0", "c1"], None),
        (["person1", "person2"], None),
        (["n01440764", "n01443537"], None),
        (["facade", "decade"], None),
        (["party", "camel"], None),
        ([str(number) for number in range(1, 103)], None),
        ([], None),
    ],
    ids=str,
)
def test_folders_that_name_no_classes_are_explained(names, what):
    assert explain_unlikely(names) == what


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["walk_01", "walk_02", "run_01", "run_02"], ["run", "walk"]),
        (["walk 1", "walk 2", "run 0", "run 1"], ["run", "walk"]),
        (["v_Run_g08_c01", "v_Run_g09_c03", "v_Sit_g08_c01", "v_Sit_g10_c02"], ["v_Run", "v_Sit"]),
        (["Audi A4", "Audi A6", "Fiat 500", "Fiat 600"], []),
        (["Boeing 737", "Boeing 747", "Airbus 320", "Airbus 330"], []),
        (["pear 1", "pear 2", "fig"], []),
        (["pear 1", "pear 2", "fig 1"], []),
        (["class_1", "class_2"], []),
    ],
    ids=str,
)
def test_takes_of_classes(names, classes):
    assert find_taken_classes(names) == classes


@pytest.mark.parametrize(
    "names",
    [
        ["match01", "match02"],
        ["flight_01", "flight_07"],
        ["DJI_0001", "DJI_0002"],
        ["rec_2021-05-01", "rec_2021-05-02"],
        ["LIDC-IDRI-0001", "LIDC-IDRI-0002"],
        ["TCGA-A1-0013", "TCGA-CS-5001"],
        ["2011_09_26_trip_0001_raw", "2011_09_26_trip_0002_raw"],
    ],
    ids=str,
)
def test_one_word_with_numbers_is_a_series(names):
    assert are_series(names)


@pytest.mark.parametrize(
    "names",
    [
        ["class1", "class10"],
        ["character01", "character02"],
        ["c0", "c1"],
        ["s1", "s2"],
        ["Type_1", "Type_2"],
        ["grade0", "grade1"],
        ["person01", "person02"],
        ["Sample001", "Sample002"],
        ["n01440764", "n01443537"],
        ["0", "1"],
        ["001.ak47", "002.flag"],
        ["cat", "dog"],
        ["CAM_FRONT", "CAM_BACK"],
        ["hepatitis_a", "hepatitis_b"],
        ["match01"],
        [],
    ],
    ids=str,
)
def test_classes_with_numbers_are_not_a_series(names):
    assert not are_series(names)


@pytest.mark.parametrize(
    "name",
    ["?", "_", "unlabeled", "_unsorted", "unknown", "trash", "todo", "to_label",
     "misc", "new folder", "new folder (2)", "not_sure"],
)  # fmt: skip
def test_folders_of_images_without_a_class(name):
    assert UNSORTED.fullmatch(name)


@pytest.mark.parametrize("name", ["cat", "other", "background", "none", "toddler", "misc_items"])
def test_folders_that_may_be_a_class_of_the_rest(name):
    assert not UNSORTED.fullmatch(name)


@pytest.mark.parametrize(
    "name",
    [
        *("cat copy", "cat copy 2", "cat_copy", "cat (1)", "cat(2)", "cat - Copy", "cat - Kopie"),
        *("cat - Copy (2)", "Copy of cat", "copy (3) of cat"),
    ],
)
def test_names_of_copies(name):
    assert name_of_original(name) == "cat"


@pytest.mark.parametrize("name", ["cat", "photocopy", "copy", "cat 1", "copying cat", "(1)"])
def test_other_names_are_not_those_of_copies(name):
    assert name_of_original(name) is None
