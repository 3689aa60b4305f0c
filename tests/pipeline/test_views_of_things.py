"""Several images of each thing in one folder: the run stops, and asks what they are."""

import pytest
from followed_ways import check_all_ways, of_class, together
from packed_inputs import pack
from paired_inputs import counted, photo
from peer import read_dataset
from printed_commands import printed_flags, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(6)


def unlabeled(path):
    return "", ""


def in_split(path):
    return path.split("/")[0], ""


def images(*forms):
    return {form.format(n): photo((form, n)) for form in forms for n in N}


def only(sign, take):
    return lambda path: take(path) if sign in path else None


CASES = {
    "letters": (images("scene{}_V.jpg", "scene{}_T.jpg"), unlabeled, ["_V", "_T"]),
    "sides": (images("{}_left.jpg", "{}_right.jpg"), unlabeled, ["_left", "_right"]),
    "sides before numbers": (images("left_{}.jpg", "right_{}.jpg"), unlabeled, ["left", "right"]),
    "words in classes": (
        together(*(images(f"{c}/{c}{{}}_before.jpg", f"{c}/{c}{{}}_after.jpg") for c in "xy")),
        of_class,
        ["_before", "_after"],
    ),
    "numbers in classes": (
        together(*(images(f"{c}/{c}{{}}_1.jpg", f"{c}/{c}{{}}_2.jpg") for c in "xy")),
        of_class,
        ["_1.", "_2."],
    ),
    "letters in splits": (
        together(*(images(f"{s}/{{}}_a.jpg", f"{s}/{{}}_b.jpg") for s in ("train", "test"))),
        in_split,
        ["_a.", "_b."],
    ),
}


@pytest.mark.parametrize(
    ("name", "archive"), [("words in classes", "x.zip"), ("letters in splits", "x.tar")]
)
def test_one_view_is_kept_or_all_are_images_of_archives(name, archive, tmp_path, run_in):
    files, take, signs = CASES[name]
    pack(tmp_path / "in" / archive, files)
    check_all_ways(files, [take, *(only(sign, take) for sign in signs)], run_in)


def test_images_of_their_own_may_be_chosen_after_an_earlier_choice(tmp_path, run_in):
    write_files(tmp_path / "in", images("img{}_1.jpg", "img{}_2.jpg"))
    chosen = ["--set", "source.kind=class_folders", "--set", "source.class_from=none"]
    code, _, err = run_in(["--input", "in", *chosen, "--set", "layout=auto"])
    assert code == 2
    *_, last = printed_flags(err)
    assert {*chosen, 'layout=""'} <= set(last)
    assert run_in(last)[0] == 0  # as it is printed
    assert run_in(["--input", "in", *chosen, "--set", "layout=auto", *last[2:]])[0] == 0
    assert len(read_dataset(tmp_path / "out")) == 2 * len(N)


@pytest.mark.parametrize("name", CASES)
def test_one_view_is_kept_or_all_are_images(name, tmp_path, run_in):
    files, take, signs = CASES[name]
    for path, data in files.items():
        (tmp_path / "in" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / path).write_bytes(data)
    check_all_ways(files, [take, *(only(sign, take) for sign in signs)], run_in)


def test_images_of_one_thing_that_a_group_keeps_together_are_images(convert, tmp_path, picture):
    for number in range(12):
        for side in ("left", "right"):
            path = tmp_path / f"photos/{'sick' if number % 2 else 'well'}/p{number:03}_{side}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(picture((number, side), (32, 24)))
    done = convert(tmp_path / "photos", settings={"splits.group": "/(?P<group>p[0-9]+)_"})
    assert (done.code, done.line["ledger"]["written"], done.line["classes"]) == (0, 24, 2)
