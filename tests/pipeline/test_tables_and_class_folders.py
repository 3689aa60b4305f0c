"""Class folders next to a table: a table that names all their images decides, and one that names
some of them stops the run, with a command for either meaning."""

import io
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from followed_ways import Files, check_all_ways, of_class, together
from paired_inputs import mask, photo
from peer import read_dataset
from printed_commands import follow, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

KINDS = ("cat", "dog")
N = range(6)


def in_classes(above: str = "", kinds: tuple[str, ...] = KINDS) -> dict[str, bytes]:
    """Six images in each of some class folders."""
    paths = [f"{above}{kind}/{kind}{n}.jpg" for kind in kinds for n in N]
    return {path: photo(path) for path in paths}


def flat(folder: str) -> dict[str, bytes]:
    return {f"{folder}/{n}.jpg": photo((folder, n)) for n in N}


def table(name: str, labels: dict[str, str], header: str = "path,label") -> Files:
    return {
        name: "".join(f"{each}\n" for each in (header, *map(",".join, labels.items()))).encode()
    }


CORRECTED = {"cat/cat3.jpg": "dog", "dog/dog2.jpg": "cat"}
OF_TEST = {path: path.split("/")[1] for path in in_classes("test/")}
OF_VAL = {f"{n}.jpg": KINDS[n % 2] for n in N}
BREEDS = {path: "tabby" if n % 2 else "persian" for n, path in enumerate(in_classes())}


def labels_of(labels):
    """Takes the images that a table names."""
    return lambda path: ("", labels[path]) if path in labels else None


PATIENTS = together(*(flat(f"patient_{p}") for p in range(3)))
FEW_PATIENTS = {path: KINDS[n % 2] for n, path in enumerate(PATIENTS) if 3 * n < len(PATIENTS)}

UNCLEAR = {
    "a few images of patients": (
        together(PATIENTS, table("labels.csv", FEW_PATIENTS)),
        [
            labels_of(FEW_PATIENTS),
            lambda path: ("", "") if path in PATIENTS else None,
        ],
    ),
    "a few corrections": (
        together(in_classes(), table("corrections.csv", CORRECTED)),
        [labels_of(CORRECTED), lambda path: of_class(path) if "/" in path else None],
    ),
    "corrections without a header": (
        together(in_classes(), table("list.csv", CORRECTED, "cat/cat0.jpg,dog")),
        [
            labels_of(CORRECTED | {"cat/cat0.jpg": "dog"}),
            lambda path: of_class(path) if "/" in path else None,
        ],
    ),
    "only the test": (
        together(in_classes("train/"), in_classes("test/"), table("test_labels.csv", OF_TEST)),
        [
            labels_of(OF_TEST),
            lambda path: tuple(path.split("/")[:2]) if "/" in path else None,
        ],
    ),
    "class folders in a folder": (
        together(
            in_classes("images/"),
            table("labels.csv", {f"images/{path}": kind for path, kind in CORRECTED.items()}),
        ),
        [
            labels_of({f"images/{path}": kind for path, kind in CORRECTED.items()}),
            lambda path: of_class(path.partition("/")[2]) if "/" in path else None,
        ],
    ),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_a_table_of_some_images_stops_and_either_meaning_has_a_command(name, tmp_path, run_in):
    files, ways = UNCLEAR[name]
    write_files(tmp_path / "in", files)
    check_all_ways(files, ways, run_in)


def test_the_message_names_the_table_and_counts_the_images(tmp_path, run_in):
    write_files(tmp_path / "in", UNCLEAR["a few corrections"][0])
    code, _, err = run_in(["--input", "in", "--set", "ignore=[/x/]"])
    assert code == 2
    assert (
        "error: the input may be meant in 2 ways: corrections.csv names 2 of 12 images in folders "
        "that may be classes, such as cat: to convert only what the table names: "
    ) in err
    assert """--set 'ignore=["/x/","/corrections.csv"]'""" in err


def test_flat_images_of_another_split_are_named_if_the_table_is_chosen(tmp_path, run_in):
    files = together(in_classes("train/"), flat("val"), table("val.csv", OF_VAL, "filename,label"))
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert (code, "val.csv names none of 12 images in folders" in err) == (2, True)
    assert not Path("out").exists()


ALL = {path: path.split("/")[0] for path in in_classes()}
SURE = {
    "all images by their paths": (together(in_classes(), table("labels.csv", ALL)), ALL),
    "all images in other words": (together(in_classes(), table("labels.csv", BREEDS)), BREEDS),
    "a folder of other images": (
        together(in_classes(), flat("test"), flat("docs"), table("labels.csv", ALL)),
        ALL,
    ),
    "a folder that the table does not know": (
        together(in_classes(), flat("extra"), table("labels.csv", ALL)),
        ALL,
    ),
    "some images of one folder": (
        together(flat("images"), table("labels.csv", OF_VAL | {"5.jpg": "dog"}, "filename,label")),
        {f"images/{name}": kind for name, kind in (OF_VAL | {"5.jpg": "dog"}).items()},
    ),
    "some images of parts": (
        together(
            flat("part1"),
            flat("part2"),
            table("labels.csv", {f"part{1 + n % 2}/{n}.jpg": KINDS[n % 2] for n in N}),
        ),
        {f"part{1 + n % 2}/{n}.jpg": KINDS[n % 2] for n in N},
    ),
}


@pytest.mark.parametrize("name", SURE)
def test_these_convert_at_the_first_try(name, tmp_path, run_in):
    files, labels = SURE[name]
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    found = Counter(each.label for each in read_dataset(Path("out")))
    assert found == Counter(labels.values())


CONTRADICTION = (
    "a split in a table or annotations that contradicts the name of the folder: the folder does "
    "not count\n"
)


@pytest.mark.parametrize("swapped", [True, False])
def test_a_split_that_contradicts_the_folder_is_noted(swapped, tmp_path, run_in):
    other = {"train": "test", "test": "train"} if swapped else {"train": "train", "test": "test"}
    files = together(flat("train"), flat("test"))
    rows = [f"{path},{KINDS[n % 2]},{other[path[:-6]]}" for n, path in enumerate(files)]
    files["labels.csv"] = "\n".join(["path,label,split", *rows, ""]).encode()
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert (f"note: 12 images have {CONTRADICTION}" in err) == swapped
    splits = Counter(each.split for each in read_dataset(Path("out")))
    assert splits == {"train": 6, "test": 6}


def test_boxes_of_less_than_a_pixel_in_parquet_have_a_command(tmp_path, run_in):
    stream = io.BytesIO()
    boxes = [{"bbox": [[0.25, 0.25, 0.5, 0.5]], "category": ["cat"]}] * 6
    pq.write_table(pa.table({"image": [photo(n) for n in N], "objects": boxes}), stream)
    write_files(tmp_path / "in", {"train.parquet": stream.getvalue()})
    code, _, err = run_in(["--input", "in"])
    assert (code, "the largest coordinate of its boxes in pixels is 0.75" in err) == (1, True)
    (end,) = follow(["--input", "in"], run_in)
    assert end.code == 0, end.message
    found = [box for each in read_dataset(Path("out")) for box in each.boxes]
    assert found == [("cat", 0.25, 0.25, 0.75, 0.75)] * 6


def test_masks_in_a_folder_of_their_own_do_not_count(tmp_path, run_in):
    masks = {f"masks/{n}.png": mask(n) for n in N}
    files = together(flat("images"), masks, table("labels.csv", OF_VAL, "filename,label"))
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert "6 images have no usable annotation" in err
