import io
import json
import sys

import numpy as np
import pytest
from PIL import Image

from benchmarks import near_duplicates


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
