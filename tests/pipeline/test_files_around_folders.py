"""Files next to the only folder of images: no printed command leaves them out without a word."""

import json
from zlib import crc32

import pytest
from followed_ways import check_all_ways, digests, each_of, found_in, together
from paired_inputs import counted, masks, photo, photos
from printed_commands import follow, printed_flags, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

N = counted(6)
NOTHING = ("", "")
XML = b"<dataset><images><image file='000.jpg'></image></images></dataset>"


def hashes(folder):
    """Six images whose names are ids."""
    return photos(folder, [f"{crc32(folder.encode()):08x}{n}" for n in N])


def classes(*folders):
    return each_of(folders, hashes)


def ids(files):
    return [path.rpartition("/")[2].partition(".")[0] for path in files]


def table(header, files, *values):
    rows = [
        ",".join((each, *(value[at % len(value)] for value in values)))
        for at, each in enumerate(ids(files))
    ]
    return "\n".join((header, *rows, "")).encode()


def last(path):
    return ("", path.split("/")[-2]) if path.endswith(".jpg") else None


def first(path):
    return ("", path.split("/")[0]) if path.endswith(".jpg") else None


def unlabeled(path):
    return NOTHING if path.endswith(".jpg") else None


def in_splits(path):
    return tuple(path.split("/")[1:3]) if path.endswith(".jpg") else None


PETS = classes("pets/cat", "pets/dog")
IMAGES = classes("images/cat", "images/dog")
DEEP = classes("data/images/cat", "data/images/dog")
DEEPER = classes("a/b/images/cat", "a/b/images/dog")
SPLITS = classes(*(f"data/{split}/{label}" for split in ("train", "test") for label in "xy"))

AROUND = {
    "a table of attributes by id": (
        {**PETS, "breeds.csv": table("id,breed", PETS, "xy")}, "breeds.csv", [last, first],
    ),
    "a table of splits by id": (
        {**PETS, "folds.csv": table("id,fold", PETS, "01")}, "folds.csv", [last, first],
    ),
    "a table of boxes by id": (
        {**PETS, "boxes.csv": table("id,x,y,w,h", PETS, "1", "2", "3", "4")},
        "boxes.csv",
        [last, first],
    ),
    "a table in a folder next to it": (
        {**PETS, "meta/breeds.csv": table("id,breed", PETS, "xy")},
        "meta/breeds.csv",
        [last, first],
    ),
    "a table further down": (
        {**PETS, "meta/v1/all/breeds.csv": table("id,breed", PETS, "xy")},
        "meta/v1/all/breeds.csv",
        [last, first],
    ),
    "a table two levels up": (
        {**DEEP, "train.csv": table("id,breed", DEEP, "xy")}, "train.csv", [last],
    ),
    "a table between two folders": (
        {**DEEPER, "a/train.csv": table("id,breed", DEEPER, "xy")}, "a/train.csv", [last, first],
    ),
    "a table next to splits of classes": (
        {**SPLITS, "weights.csv": table("id,weight", SPLITS, "12")}, "weights.csv", [in_splits],
    ),
    "a list of labels by id": (
        {**IMAGES, "labels.txt": "".join(f"{each} 1\n" for each in ids(IMAGES)).encode()},
        "labels.txt",
        [last],
    ),
    "lists of splits by id": (
        {**PETS, "test_ids.txt": "\n".join(ids(PETS)).encode()}, "test_ids.txt", [last, first],
    ),
    "an array": ({**PETS, "setid.mat": b"MATLAB 5.0 MAT-file"}, "setid.mat", [last, first]),
    "annotations in a folder next to it": (
        {**PETS, "ann/all.xml": XML}, "ann/all.xml", [last, first],
    ),
    "a list next to a folder around images": (
        {**photos("data/images", N), "ids.txt": "".join(f"{n} 1\n" for n in N).encode()},
        "ids.txt",
        [unlabeled],
    ),
}  # fmt: skip
"""Files, the one that may carry labels, and what each way through the printed commands takes."""


@pytest.mark.parametrize("name", AROUND)
def test_files_around_a_folder_are_named_before_they_are_left_out(name, tmp_path, run_in):
    files, carrier, ways = AROUND[name]
    write_files(tmp_path / "in", files)
    expected = {str(digests(files, take)): take for take in ways}
    pending, ends = [(["--input", "in"], False)], set()
    while pending:
        arguments, is_named = pending.pop()
        code, _, err = run_in(arguments)
        if code:
            is_named |= carrier in err
            more = [each for each in follow_once(arguments, err) if "observations" not in str(each)]
            assert more, err
            pending += [(each, is_named) for each in more]
            continue
        assert is_named, arguments
        found = [str(found_in(tmp_path / "out", given)) for given in (True, False)]
        (end,) = expected.keys() & set(found)
        ends.add(end)
    assert ends == expected.keys()


def follow_once(arguments, err):
    """The command with the flags that a message prints, for each way."""
    steps = []

    def stop(words):
        steps.append(words)
        return (2, "", err) if len(steps) == 1 else (0, "", "")

    return [list(end.arguments) for end in follow(arguments, stop, 1)]


CARRIES_NOTHING = {
    "classes.txt": b"cat\ndog\n",
    "notes.txt": b"These images were taken in 2019 by us. They show pets.\n",
    "README.md": b"# Pets\n",
    "LICENSE": b"MIT\n",
    "sample_submission.csv": b"id,label\na,x\n",
}


@pytest.mark.parametrize("path", CARRIES_NOTHING)
def test_files_that_carry_nothing_are_not_named(path, tmp_path, run_in):
    files = {**IMAGES, path: CARRIES_NOTHING[path]}
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert (code, path in err) == (2, False), err
    assert list(printed_flags(err)) == [["--input", "in/images"]]
    code, _, err = run_in(["--input", "in/images"])
    assert code == 0, err
    assert found_in(tmp_path / "out", False) == digests(IMAGES, last)


def test_a_list_around_annotated_images_is_named(tmp_path, run_in):
    images = [{"id": at, "file_name": f"{n}.jpg", "width": 24, "height": 16}
              for at, n in enumerate(N)]  # fmt: skip
    boxes = [{"id": at, "image_id": at, "category_id": 1, "bbox": [1, 1, 5, 5]}
             for at, _ in enumerate(N)]  # fmt: skip
    coco = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "cat"}]}
    files = {
        **photos("export/images", N),
        "export/annotations.json": json.dumps(coco).encode(),
        "split.txt": "".join(f"{n} train\n" for n in N).encode(),
    }
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    assert "the recognized layout, coco, does not read it: split.txt" in err
    (end,) = follow(["--input", "in"], run_in)
    assert (end.code, end.arguments[-1]) == (0, 'ignore=["/split.txt"]')


def test_a_table_of_others_stays_in_the_input_if_masks_are_left_out(tmp_path, run_in):
    files = together(
        photos("images", N),
        masks("masks", N),
        {"patients.csv": b"patient,label\np1,30\np2,31\n"},
    )
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert (code, "patients.csv" in err) == (2, True), err
    assert "observations.yaml" not in err  # rows cannot have a feature called label


def test_collections_are_offered_with_what_each_leaves_out(tmp_path, run_in):
    files = together(
        *(photos(f"{each}/images", N) for each in "ab"),
        {f"{each}/all.xml": XML for each in "ab"},
        {"splits.csv": b"id,split\n000,train\n"},
    )
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    for each in "ab":
        assert f"--input in/{each}, without splits.csv, which may carry labels" in err


@pytest.mark.parametrize("inner", ["images", "cat", "2019/x"])
def test_a_folder_around_the_only_folder_of_images_does_not_name_a_class(inner, tmp_path, run_in):
    files = photos(f"data/{inner}", N)
    write_files(tmp_path / "in", files)
    take = last if inner == "cat" else unlabeled
    for end in follow(["--input", "in"], run_in):
        assert end.code == 0, end
        assert found_in(tmp_path / "out", False) == digests(files, take)


def test_what_is_unclear_in_the_only_folder_is_asked_for_that_folder(tmp_path, run_in):
    names = [f"{word}.{number}" for word in ("cat", "dog") for number in range(6)]
    files = {f"in_all/{name}.jpg": photo(name) for name in names}
    write_files(tmp_path / "in", files)
    for end in follow(["--input", "in"], run_in):
        assert end.code == 0, end


def test_the_class_that_the_user_chose_stays_if_a_file_is_left_out(tmp_path, run_in):
    files = {**PETS, "test_ids.txt": "\n".join(ids(PETS)).encode()}
    write_files(tmp_path / "in", files)
    check_all_ways(files, [last, first], run_in)
