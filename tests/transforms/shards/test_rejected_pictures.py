"""Pictures of rejected files, which are made with their shard."""

import base64
import io

import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.schemas.image_ref import ImageRef
from recordmill.transforms.shards.shard_files import (
    MOST_SHOWN_OF_REASON,
    read_rejected_pictures,
    write_rejected_pictures,
)


@pytest.fixture
def refs(tmp_path):
    """A JPEG, one that was cut, one that is no image, and one that is gone."""
    Image.effect_noise((400, 200), 90).convert("RGB").save(tmp_path / "whole.jpg")
    whole = (tmp_path / "whole.jpg").read_bytes()
    (tmp_path / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "page.jpg").write_bytes(b"<html>")
    names = ("whole.jpg", "cut.jpg", "page.jpg", "gone.jpg")
    return [ImageRef(name, str(tmp_path / name), size=-1) for name in names]


def test_what_can_be_seen_of_the_chosen_files_is_drawn(refs, tmp_path):
    path = str(tmp_path / "pictures.json")
    shown = {"truncated": ["cut.jpg", "gone.jpg"], "unknown_format": ["page.jpg"]}
    write_rejected_pictures(path, refs, shown, make_settings())
    (found,) = read_rejected_pictures([str(tmp_path / "none.json"), path])
    assert (found.key, found.reason) == ("cut.jpg", "truncated")
    picture = Image.open(io.BytesIO(base64.b64decode(found.picture)))
    assert (picture.format, picture.size) == ("JPEG", (160, 80))


def test_some_pictures_of_each_reason_are_kept_of_all_shards(refs, tmp_path):
    paths = [str(tmp_path / f"{number}.json") for number in range(9)]
    for number, path in enumerate(paths):
        reason = ("truncated", "value_too_large")[number == 8]
        write_rejected_pictures(path, refs, {reason: ["cut.jpg"]}, make_settings())
    reasons = [each.reason for each in read_rejected_pictures(paths)]
    assert reasons == [*["truncated"] * MOST_SHOWN_OF_REASON, "value_too_large"]


def test_pictures_of_a_shard_that_is_written_again_replace_those_of_the_failed_run(refs, tmp_path):
    path = str(tmp_path / "pictures.json")
    write_rejected_pictures(path, refs, {"truncated": ["cut.jpg"]}, make_settings())
    write_rejected_pictures(path, refs, {}, make_settings())
    assert read_rejected_pictures([path]) == ()
