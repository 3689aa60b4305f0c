"""Annotations at the top or in a folder of their own, and images in folders of folders."""

from pathlib import Path

import pytest
from paired_inputs import photo
from peer import as_box, read_dataset
from printed_commands import write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

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


def voc(name):
    return (
        f"<annotation><filename>{name}</filename><size><width>24</width><height>16</height></size>"
        "<object><name>cat</name><bndbox><xmin>6</xmin><ymin>4</ymin><xmax>18</xmax><ymax>12</ymax>"
        "</bndbox></object></annotation>"
    ).encode()


CAT = (as_box("cat", 0.25, 0.25, 0.75, 0.75),)
VOC = {
    **{f"images/train/{name}.jpg": photo(name) for name in NAMES[:2]},
    **{f"images/val/{name}.jpg": photo(name) for name in NAMES[2:]},
    "annotations/a1.xml": voc("a1.jpg"),
    "annotations/b2.xml": voc("train/b2.jpg"),
    "annotations/c3.xml": voc("c3"),
    "annotations/d4.xml": voc("d4.jpg"),
}


def test_xml_files_of_voc_in_one_folder_and_images_in_split_folders(tmp_path, run_in):
    write_files(tmp_path / "in", VOC)
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert boxes_by_split() == [("train", CAT)] * 2 + [("validation", CAT)] * 2


def test_an_image_that_two_split_folders_hold_stops_voc(tmp_path, run_in):
    write_files(tmp_path / "in", {**VOC, "images/val/a1.jpg": photo("other")})
    code, _, err = run_in(["--input", "in"])
    assert code == 1
    assert "images/train and images/val hold a1.jpg: remove the one" in err


def test_an_image_that_no_split_folder_holds_is_lost_and_counted(tmp_path, run_in):
    write_files(tmp_path / "in", {**VOC, "annotations/e5.xml": voc("e5.jpg")})
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert "vanished: 1" in err
    assert boxes_by_split() == [("train", CAT)] * 2 + [("validation", CAT)] * 2


def test_text_files_of_yolo_in_another_folder_are_read_once_it_is_renamed(tmp_path, run_in):
    folder = tmp_path / "in"
    files = {f"img/{name}.jpg": photo(name) for name in NAMES}
    files |= {f"annotations/{name}.txt": b"0 0.5 0.5 0.5 0.5\n" for name in NAMES}
    write_files(folder, {**files, "classes.txt": b"cat\n"})
    code, _, err = run_in(["--input", "in"])
    assert code == 2
    advice = "rename the folder annotations to labels and rename the folder img to images to"
    assert f"annotations/a1.txt is a text file of YOLO: {advice} read it; " in err
    (folder / "annotations").rename(folder / "labels")
    (folder / "img").rename(folder / "images")
    code, _, err = run_in(["--input", "in"])
    assert code == 0, err
    assert [boxes for _, boxes in boxes_by_split()] == [CAT] * 4
