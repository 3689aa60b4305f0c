import os
import unicodedata

import pytest

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.inputs.listing.named_image import find_named_image

PATH = "a/notes.xml"


@pytest.fixture
def file(tmp_path):
    root = tmp_path / "in"
    (root / "a").mkdir(parents=True)
    (root / "a/1.jpg").write_bytes(b"four")
    (root / "out.jpg").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").touch()
    return ImageRef(f"photos/{PATH}", str(root / PATH), 9, "1", split="train", spelling=PATH)


def test_an_image_has_its_own_place_and_the_files_split(file):
    image = file.uri.replace("notes.xml", "1.jpg")
    expected = ImageRef("photos/a/1.jpg", image, 4, str(os.stat(image).st_mtime_ns), split="train")
    assert find_named_image(file, PATH, "a/1.jpg") == expected
    assert find_named_image(file, PATH, "./a//1.jpg").key == "photos/a/1.jpg"


def test_its_key_is_in_nfc_however_it_is_spelt(file):
    spelt = unicodedata.normalize("NFD", "é.jpg")
    image = file.uri.replace("a/notes.xml", spelt)
    with open(image, "wb"):
        pass
    ref = find_named_image(file, PATH, spelt)
    assert (ref.key, ref.uri, ref.status) == ("photos/é.jpg", image, "")


@pytest.mark.parametrize(
    ("below", "key", "reason", "detail"),
    [
        ("a/2.jpg", "photos/a/2.jpg", "vanished", "no such file or directory"),
        ("a/1.jpg/x", "photos/a/1.jpg/x", "vanished", "not a directory"),
        ("out.jpg", "photos/out.jpg", "outside_root", "'out.jpg' is a link that leads out of the input"),
        ("http://x/1.jpg", "photos/http:/x/1.jpg", "outside_root", "'http://x/1.jpg' is not below the input"),
    ],
)
def test_one_that_is_not_there_or_elsewhere_is_rejected(file, below, key, reason, detail):
    ref = find_named_image(file, PATH, below)
    assert (ref.key, ref.status, ref.reason, ref.detail) == (key, "rejected", reason, f"named by notes.xml: {detail}")


def test_names_on_a_store_need_no_check(file):
    ref = find_named_image(ImageRef("notes.xml", "gs://b/in/notes.xml"), "notes.xml", "1.jpg")
    assert ref == ImageRef("1.jpg", "gs://b/in/1.jpg", -1)
