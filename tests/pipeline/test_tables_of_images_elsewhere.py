"""Tables that name images outside the input: the printed flag converts them."""

from collections import Counter
from hashlib import sha256

import pytest
from paired_inputs import photo
from peer import Found, read_dataset
from printed_commands import follow, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

KINDS = ("cat", "dog")


@pytest.mark.parametrize("given", ["tables", "tables/recorder.csv"])
def test_a_table_of_tensorflow_recorder_with_absolute_paths(tmp_path, run_in, given):
    photos = {f"pool/{kind}/{n}.jpg": photo(n) for kind in KINDS for n in range(3)}
    write_files(tmp_path, photos)
    rows = [
        f"{split},{tmp_path}/pool/{kind}/{n}.jpg,{kind}"
        for kind in KINDS
        for n, split in enumerate(("TRAIN", "VALIDATION", "TEST"))
    ]
    table = "\n".join(("split,image_uri,label", *rows, "")).encode()
    write_files(tmp_path, {"tables/recorder.csv": table})
    code, _, err = run_in(["--input", given])
    assert code == 2
    assert "but its images are outside its folder, where they are read only if you" in err
    (end,) = follow(["--input", given], run_in)
    assert end.arguments == ("--input", given, "--set", f"source.root={tmp_path}/pool")
    assert end.code == 0, end.message
    assert Counter(read_dataset(tmp_path / "out")) == Counter(
        Found(sha256(photos[f"pool/{kind}/{n}.jpg"]).hexdigest(), split, kind, ())
        for kind in KINDS
        for n, split in enumerate(("train", "validation", "test"))
    )
