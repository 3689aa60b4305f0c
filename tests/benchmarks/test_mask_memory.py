"""The memory of a conversion with masks does not depend on the number of objects in an image."""

import json
import sys

import numpy as np
import pytest
from PIL import Image

from benchmarks import measure

WIDTH, HEIGHT = 4000, 3000
OBJECTS = 300
MOST_BYTES = 500_000_000


def write_collection(folder):
    """An image of 12 megapixels with polygons, every third of which is written as runs."""
    random = np.random.default_rng(12)
    (folder / "annotations").mkdir(parents=True)
    (folder / "train").mkdir()
    pixels = random.integers(0, 256, (HEIGHT // 8, WIDTH // 8, 3), np.uint8)
    Image.fromarray(pixels).resize((WIDTH, HEIGHT)).save(folder / "train/a.jpg", quality=90)
    annotations = []
    for number in range(OBJECTS):
        left, top = (int(random.integers(0, side - 600)) for side in (WIDTH, HEIGHT))
        width, height = random.integers(50, 600, 2).tolist()
        right, bottom = left + width, top + height
        segmentation = [[left, top, right, top, right, bottom, left, bottom]]
        if number % 3 == 0:
            rest = HEIGHT - height
            runs = [left * HEIGHT + top, *[height, rest] * (width - 1), height]
            runs.append(WIDTH * HEIGHT - sum(runs))
            segmentation = {"size": [HEIGHT, WIDTH], "counts": runs}
        annotation = {"id": number + 1, "image_id": 1, "category_id": 1, "iscrowd": 0}
        annotation |= {"bbox": [left, top, width, height], "area": width * height}
        annotations.append({**annotation, "segmentation": segmentation})
    content = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": WIDTH, "height": HEIGHT}],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "cat"}],
    }
    path = folder / "annotations/instances_train.json"
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.slow
def test_many_objects_of_a_large_image(tmp_path):
    write_collection(tmp_path / "coco")
    command = [sys.executable, "-m", "pipeline.run", "--runner=DirectRunner", "--processes=1"]
    places = [f"--input={tmp_path / 'coco'}", f"--output={tmp_path / 'dataset'}"]
    run = measure.run([*command, "--config=configs/coco.yaml", "--set", "masks=png", *places])
    marker = json.loads((tmp_path / "dataset/recordmill.json").read_bytes())
    assert marker["annotations"]["masks"]["written"] == OBJECTS
    assert run.peak_rss < MOST_BYTES
