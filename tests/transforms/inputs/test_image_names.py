import unicodedata
from pathlib import Path

import pytest

from recordmill.transforms.inputs.image_names import find_other_place, names_in, plain_name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("d%C3%A9cran 1", "décran 1"),
        ("plain%202", "plain 2"),
        (unicodedata.normalize("NFD", "é1"), "é1"),
        ("IMG_1", "img_1"),
        ("STRASSE", "straße"),
        ("%e2%82%ac", "€"),
    ],
)
def test_spellings_of_one_name(one, other):
    assert plain_name(one) == plain_name(other)


@pytest.mark.parametrize(
    ("one", "other"), [("a 1", "a_1"), ("a+1", "a 1"), ("100%", "100"), ("%FF", "ÿ"), ("1", "01")]
)
def test_other_names(one, other):
    assert plain_name(one) != plain_name(other)


@pytest.fixture
def collection(tmp_path):
    def write(*paths):
        for path in paths:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(b"x")
        return str(tmp_path)

    return write


@pytest.mark.parametrize(
    ("there", "folder", "name", "place"),
    [
        ("images/x.jpg", "images", r"C:\Users\me\x.jpg", "images/x.jpg"),
        ("images/x.jpg", "images", "/home/me/pets/x.jpg", "images/x.jpg"),
        ("images/x.jpg", "images", r"..\..\x.jpg", "images/x.jpg"),
        ("images/x.jpg", "", r"images\1/x.jpg", "images/x.jpg"),
        ("images/x.jpg", "", "1/images/x.jpg", "images/x.jpg"),
        ("images/sub/x.jpg", "images", r"D:\pets\sub\x.jpg", "images/sub/x.jpg"),
        ("images/x.png", "images", "x.jpg", "images/x.png"),
        ("images/x.JPG", "images", "x.jpg", "images/x.JPG"),
        ("images/x.v2.png", "images", "x.v2", "images/x.v2.png"),
        ("images/x y.jpg", "images", "x%20y.jpg", "images/x y.jpg"),
        ("images/X.jpg", "images", "x.jpg", "images/X.jpg"),
        ("images/X.jpg", "images", "x", "images/X.jpg"),
        ("images/e\u0301.jpg", "images", "é.jpg", "images/e\u0301.jpg"),
        ("images/x.png|images/x.webp", "images", "x.jpg", None),
        ("images/X.jpg|images/X.JPG", "images", "x.jpg", None),
        ("a/x.jpg|x.jpg", "", "b/a/x.jpg", None),
        ("images/y.jpg", "images", "x.jpg", None),
        ("images/x.txt", "images", "x.jpg", None),
        ("images/x.jpg/y.jpg", "images", "a/x.jpg", None),
        ("images/x.jpg", "images", "https://example.com/x.jpg", None),
        ("images/x.jpg", "images", "..", None),
        ("images/x.jpg", "images", "", None),
    ],
)
def test_an_image_that_is_not_where_it_is_named_is_found_if_only_one_can_be_meant(
    collection, there, folder, name, place
):
    root = collection(*there.split("|"))
    assert find_other_place(root, folder, name) == place


def test_a_link_out_of_the_input_is_not_found(collection, tmp_path_factory):
    secret = tmp_path_factory.mktemp("elsewhere") / "x.jpg"
    secret.write_bytes(b"x")
    root = collection("images/1.jpg")
    Path(root, "images/x.jpg").symlink_to(secret)
    assert find_other_place(root, "images", r"C:\x.jpg") is None


def test_the_names_of_a_folder_are_read_again_after_a_change(collection):
    folder = collection("1.jpg", "1.txt")
    assert set(names_in(folder).by_stem) == set(names_in(folder, are_texts=True).by_stem) == {"1"}
    collection("2.jpg")
    assert set(names_in(folder).by_stem) == {"1", "2"}
    assert names_in(f"{folder}/none").by_stem == {}
