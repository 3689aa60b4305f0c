"""Folders of recordings, patients and documents: no run makes them classes without being asked."""

import pytest
from followed_ways import check_all_ways, digests, each_of, found_in, of_class, together
from paired_inputs import counted, digit, photos
from printed_commands import follow, printed_flags, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(4)


def unlabeled(path):
    return "", ""


def folders(form, names=N, count=3, first=1):
    """Folders of counted images, by a form of their names."""
    return each_of(
        [form.format(at) for at in range(first, first + count)], lambda at: photos(at, names)
    )


MAY_BE_CLASSES = {
    "matches": folders("match{:02}"),
    "flights of different lengths": together(
        *(photos(f"flight_{at:02}", counted(3 + at)) for at in range(1, 4))
    ),
    "folders of a drone": folders("DJI_{:04}", [f"frame_{n}" for n in N]),
    "words and dates": folders("rec_2021-05-{:02}"),
    "codes": each_of(
        ["TCGA-A1-0013", "TCGA-CS-5001", "TCGA-DU-7294"],
        lambda at: photos(at, [f"{at}_{n}" for n in N]),
    ),
}

NO_CLASSES = {
    "documents": together(
        *(photos(f"doc{at:03}", [f"page_{n}" for n in range(1, 3 + at)]) for at in range(3))
    ),
    "scenes": folders("scene{:03}"),
    "videos": folders("vid_{}", [f"frame{n}" for n in N]),
    "patients and studies": folders("patient{:05}/study1", ["view1_frontal", "view2_lateral"]),
    "times": folders("20210504_1{}3000"),
    "folders of a camera around frames": folders("GOPR{:04}/frames"),
}

CLASSES = {
    "class1 to class10": folders("class{}", count=10),
    "numbers from 1": folders("{}", [f"image_{n}" for n in N], count=11),
    "Omniglot": each_of(
        [f"character{at:02}" for at in range(1, 5)],
        lambda at: {f"{at}/{at[-2:]}_{n}.png": digit((at, n)) for n in N},
    ),
    "MNIST as digits": each_of(
        [str(at) for at in range(10)], lambda at: {f"{at}/{n}.png": digit((at, n)) for n in N}
    ),
    "grades": folders("grade{}", first=0),
    "letters and numbers": folders("c{}", [f"img_{n}" for n in N], first=0),
    "people": folders("person{:02}"),
    "names of images that are not counters": together(
        photos("boeing737", ["taxiing", "on_the_runway"]), photos("boeing747", ["sky", "hangar"])
    ),
}


@pytest.mark.parametrize("name", MAY_BE_CLASSES)
def test_what_may_be_recordings_or_classes_is_asked(name, tmp_path, run_in):
    files = MAY_BE_CLASSES[name]
    write_files(tmp_path / "in", files)
    check_all_ways(files, [of_class, unlabeled], run_in)


@pytest.mark.parametrize(
    ("name", "above"),
    [(name, ("", "data/", "train/")[at % 3]) for at, name in enumerate(NO_CLASSES)],
)
def test_no_command_makes_classes_of_recordings(name, above, tmp_path, run_in):
    files = {f"{above}{path}": data for path, data in NO_CLASSES[name].items()}
    write_files(tmp_path / "in", files)
    for end in follow(["--input", "in"], run_in):
        assert end.code == 0, end
        assert found_in(tmp_path / "out", False) == digests(files, unlabeled)


def test_days_in_a_year_are_not_classes(tmp_path, run_in):
    files = each_of([f"2020/01/{day}" for day in ("05", "06")], lambda at: photos(at, N))
    files |= photos("2020/02/01", N)
    write_files(tmp_path / "in", files)
    check_all_ways(files, [unlabeled], run_in)


def test_a_table_is_read_where_the_folders_are_patients(tmp_path, run_in):
    files = folders("train/patient{:03}")
    rows = [f"{path},{('cat', 'dog')[at % 2]}\n" for at, path in enumerate(files)]
    write_files(tmp_path / "in", {**files, "train.csv": "".join(["path,label\n", *rows]).encode()})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    labels = dict(row.strip().split(",") for row in rows)
    found = found_in(tmp_path / "out", False)
    assert found == digests(files, lambda path: ("", labels[path]))


@pytest.mark.parametrize("name", CLASSES)
def test_numbered_classes_convert_at_the_first_try(name, tmp_path, run_in):
    files = CLASSES[name]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert found_in(tmp_path / "out", False) == digests(files, of_class)


@pytest.mark.parametrize("name", ["unlabeled", "_unsorted", "new folder (2)"])
def test_a_folder_of_images_without_a_class_is_worth_a_look(name, tmp_path, run_in):
    classes = each_of(["cat", "dog"], lambda at: photos(at, N))
    write_files(tmp_path / "in", {**classes, **photos(name, N)})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    text = " ".join(err.split())
    said = f"Class {name} has 4 images, and a name of images without a class: if they have none, "
    assert f"{said}leave it out with --set" in text
    (flags,) = printed_flags(text.partition(said)[2].partition("leave it out")[2])
    code, _, err = run_in(["--input", "in", *flags])
    assert code == 0, err
    assert found_in(tmp_path / "out", False) == digests(classes, of_class)


@pytest.mark.parametrize("name", ["cat copy", "cat (1)"])
def test_a_folder_that_is_named_as_a_copy_is_worth_a_look(name, tmp_path, run_in):
    classes = each_of(["cat", "dog"], lambda at: photos(at, N))
    write_files(tmp_path / "in", {**classes, **photos(name, N)})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    text = " ".join(err.split())
    said = f"Class {name} has 4 images, and the name of a copy of cat: if it is one, "
    assert f"{said}leave it out with --set" in text
    (flags,) = printed_flags(text.partition(said)[2].partition("leave it out")[2])
    code, _, err = run_in(["--input", "in", *flags])
    assert code == 0, err
    assert found_in(tmp_path / "out", False) == digests(classes, of_class)
