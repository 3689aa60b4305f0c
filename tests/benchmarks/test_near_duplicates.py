import io
import json
import sys

import numpy as np
import pytest
from PIL import Image

from benchmarks import near_duplicates

PATTERN, OTHER = 0x0F0F_1234_5678_F0F0, 0x3C3C_FEDC_0123_5A5A


def test_a_copy_counts_where_it_shares_its_originals_group():
    hashes = {("original", 0): ("train", PATTERN), ("original", 1): ("test", OTHER)}
    hashes |= {("half", 0): ("train", PATTERN ^ 0b11111), ("half", 1): ("train", OTHER ^ 1)}
    hashes |= {
        ("cropped", 0): ("train", PATTERN ^ 0b1111111111),
        ("cropped", 1): ("test", OTHER ^ 0b111111),
    }
    hashes |= {("original", 2): ("test", 0), ("brighter", 2): ("test", 0)}  # blank
    assert near_duplicates.count_found(hashes) == {
        "planted": 3,
        "found": {"half": 2, "quality20": 0, "brighter": 0, "cropped": 2},  # by way of the half
        "originals_joined_with_others": 0,
        "pairs_of_originals": 0,
        "pairs_across_splits": 2,
    }
    hashes["original", 1] = ("test", PATTERN ^ 0b1111000000)
    found = near_duplicates.count_found(hashes)
    assert (found["originals_joined_with_others"], found["pairs_of_originals"]) == (2, 1)


def test_copies_are_what_they_are_called(tmp_path):
    assert near_duplicates.make(1, tmp_path, None) == 1
    data = {path.parent.name: path.read_bytes() for path in tmp_path.glob("*/00000.jpg")}
    images = {kind: Image.open(io.BytesIO(each)) for kind, each in data.items()}
    sizes = {kind: image.size for kind, image in images.items()}
    whole = {kind: (500, 375) for kind in ("original", "quality20", "brighter")}
    assert sizes == {**whole, "half": (250, 187), "cropped": (480, 359)}
    assert np.mean(images["brighter"]) > 1.1 * np.mean(images["original"])
    assert len(data["quality20"]) < len(data["original"]) / 3


@pytest.mark.slow
def test_the_command_finds_copies(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(
        sys, "argv", ["near_duplicates", "--count", "12", "--check", "--work", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as ended:
        near_duplicates.main()
    result = json.loads(capsys.readouterr().out)
    assert (ended.value.code, result["planted"], result["pairs_across_splits"]) == (0, 12, 0)
