import base64
import io
import os
from dataclasses import replace

import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.shards.shard_files import read_examples, write_examples


@pytest.fixture
def refs(tmp_path):
    """A PNG, a file that is gone, and a damaged one."""
    Image.new("RGB", (40, 30), (200, 30, 30)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes()[:40])
    return [
        ImageRef(name, str(tmp_path / name), size=-1) for name in ("a.png", "b.png", "gone.png")
    ]


def test_each_change_has_an_example_that_can_be_read_again(refs, tmp_path):
    path, other = str(tmp_path / "first.json"), str(tmp_path / "second.json")
    write_examples(
        path,
        refs,
        {"reencoded": "a.png", "rotated": "b.png", "resized": "gone.png"},
        make_settings(),
    )
    write_examples(other, refs, {"reencoded": "a.png", "flattened": "a.png"}, make_settings())
    first, second = read_examples([str(tmp_path / "none.json"), path, other])
    assert (first.change, first.key, first.changes) == ("reencoded", "a.png", ("reencoded",))
    assert first.before_bytes == os.path.getsize(tmp_path / "a.png")
    assert (second.change, second) == ("flattened", replace(first, change="flattened"))
    picture = Image.open(io.BytesIO(base64.b64decode(first.before)))
    assert picture.size == (120, 90)
    assert all(abs(a - b) < 6 for a, b in zip(picture.getpixel((9, 9)), (200, 30, 30), strict=True))


def test_an_image_may_show_several_changes(refs, tmp_path):
    path = str(tmp_path / "examples.json")
    write_examples(
        path,
        refs,
        {"reencoded": "a.png", "flattened": "a.png", "rotated": "b.png"},
        make_settings(),
    )
    assert [(each.change, each.key) for each in read_examples([path])] == [
        ("flattened", "a.png"),
        ("reencoded", "a.png"),
    ]


def test_without_changes_there_are_no_examples(refs, tmp_path):
    assert read_examples([str(tmp_path / "none.json")]) == ()
    write_examples(str(tmp_path / "none.json"), refs, {"rotated": "b.png"}, make_settings())
    assert read_examples([str(tmp_path / "none.json")]) == ()


def test_examples_of_a_shard_that_is_written_again_replace_those_of_the_failed_run(refs, tmp_path):
    path = str(tmp_path / "examples.json")
    write_examples(path, refs, {"reencoded": "a.png"}, make_settings())
    write_examples(path, refs, {}, make_settings())
    assert read_examples([path]) == ()
