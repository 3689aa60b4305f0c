import pytest

from recordmill.transforms.inputs.views import find_views

NUMBERS = [f"{number:03}" for number in range(6)]


def named(*forms, things=NUMBERS):
    return {"": sorted(form.format(thing) for thing in things for form in forms)}


@pytest.mark.parametrize(
    ("folders", "choices"),
    [
        (
            named("scene{}_V.jpg", "scene{}_T.jpg"),
            {"*_T.jpg": ("*_V.jpg",), "*_V.jpg": ("*_T.jpg",)},
        ),
        (
            named("{}_before.jpg", "{}_after.jpg"),
            {"*_after.jpg": ("*_before.jpg",), "*_before.jpg": ("*_after.jpg",)},
        ),
        (
            named("{}-RGB.png", "{}-NIR.tif"),
            {"*-NIR.tif": ("*-RGB.png",), "*-RGB.png": ("*-NIR.tif",)},
        ),
        (
            named("x{}_1.jpg", "x{}_2.jpg"),
            {"*_1.jpg": ("*_2.jpg",), "*_2.jpg": ("*_1.jpg",)},
        ),
        (
            named("left_{}.jpg", "right_{}.jpg"),
            {"left_*": ("right_*",), "right_*": ("left_*",)},
        ),
        (
            named("{}_T1.png", "{}_T2.png", "{}_FLAIR.png"),
            {
                "*_FLAIR.png": ("*_T1.png", "*_T2.png"),
                "*_T1.png": ("*_FLAIR.png", "*_T2.png"),
                "*_T2.png": ("*_FLAIR.png", "*_T1.png"),
            },
        ),
    ],
    ids=lambda value: value[""][0] if "" in value else "",
)
def test_several_images_of_each_thing_are_found(folders, choices):
    pairs = find_views(folders)
    assert dict(pairs.choices) == choices
    assert pairs.may_be_single


@pytest.mark.parametrize(
    "folders",
    [
        named("{}.jpg"),
        named("cat{}.jpg", "cat{}_flip.jpg"),
        named("cat{}.jpg", "cat{}_a.jpg", "cat{}_b.jpg"),
        named("{}-train.jpg", "{}-test.jpg"),
        named("{}_rotated.jpg", "{}_cropped.jpg"),
        named("{}_1.jpg", "{}_2.jpg", "{}_3.jpg"),
        named("{}_1.jpg", "{}_2.jpg", things=["cat", "dog", "emu", "fox"]),
        named("cat_{}.jpg", "dog_{}.jpg"),
        named("{}_left.jpg", "{}_right.jpg", things=NUMBERS[:3]),
        {"a": ["0_left.jpg", "1_right.jpg", "2_left.jpg", "3_right.jpg", "4_left.jpg"]},
        {"": [*named("{}_left.jpg", "{}_right.jpg")[""], *(f"{at}.jpg" for at in range(99))]},
        {},
    ],
    ids=lambda folders: str(len(folders)) + str([*folders.values()][:1])[:40],
)
def test_other_names_are_of_images_of_their_own(folders):
    assert find_views(folders) is None


def test_all_folders_count():
    folders = {at: named("{}_V.jpg", "{}_T.jpg")[""] for at in ("train", "test")}
    pairs = find_views(folders)
    assert pairs.why.startswith("train/000_T.jpg, train/000_V.jpg may be images of one thing")
    assert pairs.count == 12


def test_views_of_many_things_are_found_with_neighbors():
    folders = named("{}_left.jpg", "{}_right.jpg", things=[f"{number:05}" for number in range(999)])
    pairs = find_views(folders)
    assert pairs.count == 999
