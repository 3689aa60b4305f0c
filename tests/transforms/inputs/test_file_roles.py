"""The roles of files, from their names and their first bytes."""

import pytest

from recordmill.transforms.inputs.file_roles import (
    FileRole,
    is_description_name,
    role_of_head,
    role_of_name,
    suffix_of,
    title_of,
)
from recordmill.transforms.inputs.image_suffixes import is_image_name


@pytest.mark.parametrize(
    ("path", "suffix"),
    [
        ("a/b.XML", "xml"),
        ("a.b/c", None),
        (".hidden", None),
        ("a.tar.gz", "gz"),
        ("a. jpg", None),
        ("img.0123456789abcdef", None),
    ],
)
def test_extensions_are_plain_and_in_lower_case(path, suffix):
    assert suffix_of(path) == suffix


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("cat/1.JPG", "image"),
        ("1.dng", "image"),
        ("1.j2k", "image"),
        ("annotations.xml", "annotations"),
        ("a.geojson", "annotations"),
        ("label_map.pbtxt", "annotations"),
        ("list.CSV", "table"),
        ("train.jsonl", "table"),
        ("setid.mat", "array"),
        ("labels.h5", "array"),
        ("labels.db", "array"),
        ("masks.zip", "archive"),
        ("depth.exr", "second image"),
        ("README.md", "description"),
        ("demo.ipynb", "description"),
        ("package.json", "description"),
        ("CITATION.cff", "description"),
        ("license.csv", "table"),
        ("readme.json", "annotations"),
    ],
)
def test_most_names_give_a_role(path, role):
    found = role_of_name(path)
    assert found is not None
    assert found.role == role


@pytest.mark.parametrize("path", ["train.txt", "README", "README.txt", "classes", "x.unknown"])
def test_texts_and_unknown_names_are_decided_by_their_bytes(path):
    assert role_of_name(path) is None


@pytest.mark.parametrize(
    "path",
    [
        *("README", "readme.txt", "README.dataset.txt", "README.roboflow.txt", "00-README.txt"),
        *("LICENSE", "LICENSE.txt", "LICENSE_CC-BY", "COPYING", "NOTICE", "AUTHORS.txt"),
        *(
            "requirements.txt",
            "requirements-dev.txt",
            "terms of use.txt",
            "Makefile",
            "a/about.txt",
        ),
        *("data description.txt", "sha256sums", "SHA256SUMS.txt", "CHANGELOG"),
    ],
)
def test_descriptions_have_well_known_names(path):
    assert is_description_name(path)
    assert role_of_head(b"Some prose about it.\nAnd more.\n", path).role == "description"


@pytest.mark.parametrize(
    "path",
    [
        *("train.txt", "classes.txt", "annotations.txt", "0001.txt", "cat", "readme.csv"),
        *("license.jpg", "labels.names", "threadme_list.txt", "notes.txt", "licensed_images.txt"),
    ],
)
def test_other_names_are_not_descriptions(path):
    assert not is_description_name(path)


@pytest.mark.parametrize(
    ("head", "role"),
    [
        (b"\xff\xd8\xff\xe0", FileRole("image")),
        (b"RIFF\0\0\0\0WEBP", FileRole("image")),
        (b"\0\0\0\x20ftypavif", FileRole("image")),
        (b"\x89HDF\r\n\x1a\n", FileRole("array", "HDF5")),
        (b"MATLAB 5.0 MAT-file", FileRole("array", "MATLAB")),
        (b"\x93NUMPY\1\0", FileRole("array", "numpy")),
        (b"\x80\4\x95", FileRole("array", "pickle")),
        (b"PK\3\4", FileRole("archive", "zip")),
        (b"PAR1", FileRole("table", "Parquet")),
        (b"<?xml?>\n<annotations>", FileRole("annotations", "CVAT's XML")),
        (b"\xef\xbb\xbf<annotation>", FileRole("annotations", "Pascal VOC's XML")),
        (b"<!DOCTYPE html>", FileRole("description")),
        (b' {"images": [{"file_name": "1.jpg"}]', FileRole("annotations", "COCO's JSON")),
        (b'{"a.jpg9": {"regions": []}}', FileRole("annotations", "VIA's JSON")),
        (
            b'[{"image": "1.jpg", "label": [{"original_width": 4}], "annotator": 1}]',
            FileRole("annotations", "Label Studio's JSON-MIN, and its JSON is read"),
        ),
        (b'{"shapes": []}', FileRole("annotations", "LabelMe's JSON")),
        (b"[1, 2]", FileRole("annotations", "JSON")),
        (b"0 0.5 0.5 0.1 0.2\n1 .5 .5 1e-3 .2\n", FileRole("annotations", "boxes as in YOLO")),
        (b"images/1.jpg\nimages/2.jpg\n", FileRole("list", "names of images")),
        (b"images/1.jpg 3\r\nimages/2.jpg 4\r\n", FileRole("list", "names of images")),
        (b"1.png,cat\n", FileRole("list", "names of images")),
        (b"0001 1\n0002 -1\n0003 1\n", FileRole("list", "lines of names or numbers")),
        (b"1 001.Black\n2 002.Red\n3 003.Tit\n", FileRole("list", "lines of names or numbers")),
        (b"a cat on a mat\n", FileRole("other")),
        (b"\0\1\2\3", FileRole("other")),
        (b"\xff\xfe\xfa", FileRole("other")),
        (b"", FileRole("other")),
    ],
)
def test_first_bytes_give_a_role(head, role):
    assert role_of_head(head, "x.txt") == role


def test_a_list_that_is_named_like_a_description_is_a_list():
    assert role_of_head(b"1.jpg cat\n2.jpg dog\n", "about.txt").role == "list"
    assert role_of_head(b"numpy==1.2\npillow\ntorch>=2\n", "requirements.txt").role == "description"
    sums = b"".join(b"%032d  %d.jpg\n" % (number, number) for number in range(9))
    assert role_of_head(sums, "md5sums.txt").role == "description"
    text = b"Pets v1 - 2024\n\nThe dataset includes 99 images.\nAll are annotated in COCO format.\n"
    assert role_of_head(text, "README.roboflow.txt").role == "description"


def test_a_character_that_is_cut_at_the_end_does_not_hide_a_list():
    head = "".join(f"übung/{number}.jpg\n" for number in range(99)).encode()
    assert role_of_head(head[:1024], "x.txt").role == "list"
    assert role_of_head(("é" * 600).encode()[:1023] + b"\xc3", "README").role == "description"


def test_only_roles_that_may_carry_something_stop_a_run():
    assert not FileRole("image").may_carry
    assert not FileRole("description").may_carry
    assert FileRole("other").may_carry
    assert is_image_name("a.b/c.PNG")
    assert not is_image_name("a.png/c")
    assert title_of("x.csv", b"a,b") is None
