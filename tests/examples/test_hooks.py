"""Runs the functions of `examples/hooks.py` in a conversion."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from recordmill.schemas.features import Example
from recordmill.transforms.records.image_functions import find_function

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

FLAGS = (
    "--set=images.function=hooks:crop_square --set=keep=hooks:is_colorful --set=images.store=png"
)


def test_images_are_cropped_and_filtered(tmp_path, run_command, monkeypatch):
    noise = np.random.default_rng(5).integers(0, 256, (12, 9, 12, 3), np.uint8)
    (tmp_path / "photos/cat").mkdir(parents=True)
    for number, image in enumerate(noise):
        Image.fromarray(image).save(tmp_path / f"photos/cat/{number}.png")
    Image.new("L", (12, 9), 99).save(tmp_path / "photos/cat/gray.png")
    Image.new("RGB", (12, 7), "red").save(tmp_path / "photos/cat/low.png")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    done = run_command(f"recordmill run --input=photos --output=dataset {FLAGS}", tmp_path)
    find_function.cache_clear()
    sys.modules.pop("hooks", None)
    assert done.returncode == 0, done.stderr
    ledger = json.loads(done.stdout)["ledger"]
    assert (ledger["written"], ledger["rejected"], ledger["left_out"]) == (
        12,
        {"function": 1},
        {"unwanted": 1},
    )
    (rejected,) = (tmp_path / "dataset/rejected.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(rejected)["detail"] == "12 x 7 pixels are too few"
    stored = set()
    for path in (tmp_path / "dataset").glob("*.tfrecord"):
        content = path.read_bytes()
        while content:
            length = int.from_bytes(content[:8], "little")
            features = Example.FromString(content[12 : 12 + length]).features.feature
            encoded = features["image/encoded"].bytes_list.value[0]
            stored.add(np.asarray(Image.open(io.BytesIO(encoded))).tobytes())
            content = content[16 + length :]
    assert stored == {image[:, 1:10].tobytes() for image in noise}
