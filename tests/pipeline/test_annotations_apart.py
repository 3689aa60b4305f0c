"""Annotations at the top or in a folder of their own, and images in folders of folders."""

from pathlib import Path

from paired_inputs import photo
from peer import as_box, read_dataset
from printed_commands import write_files

NAMES = ("a1", "b2", "c3", "d4")
HEADER = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\n"


def open_images(names):
    rows = "".join(f"{name},xclick,/m/01g317,1,0.25,0.75,0.25,0.75\n" for name in names)
    return (HEADER + rows).encode()


def boxes_by_split():
    return sorted((each.split, each.boxes) for each in read_dataset(Path("out")))


BOX = (as_box("/m/01g317", 0.25, 0.25, 0.75, 0.75),)


def test_a_table_of_boxes_next_to_images_in_a_folder_of_their_split(tmp_path, run_in):
    files = {f"images/test/{name}.jpg": photo(name) for name in NAMES}
    files["test-annotations-bbox.csv"] = open_images(NAMES)
    write_files(tmp_path / "in", files)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert boxes_by_split() == [("test", BOX)] * 4


def test_tables_of_boxes_next_to_the_folders_of_their_splits(tmp_path, run_in):
    write_files(
        tmp_path / "in",
        {
            **{f"images/train/{name}.jpg": photo(name) for name in NAMES[:2]},
            **{f"images/validation/{name}.jpg": photo(name) for name in NAMES[2:]},
            "train-annotations-bbox.csv": open_images(NAMES[:2]),
            "validation-annotations-bbox.csv": open_images(NAMES[2:]),
        },
    )
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert boxes_by_split() == [("train", BOX)] * 2 + [("validation", BOX)] * 2
