"""Trains the networks of the examples on drawn images, as their docstrings say."""

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

REPO = Path(__file__).parents[2]
SIDE = 64
COLORS = [(90, 90, 90), (170, 110, 90), (90, 130, 180)]
"""What the pixels of each class have on average."""

POINTS = ["red", "green", "blue"]
MOST_SECONDS = 120
"""Of a processor, with TensorFlow's start."""

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")]


def draw_shapes(random):
    """An image of two shapes in noise, and the ids of its pixels; borders are ignored."""
    ids = Image.new("L", (SIDE, SIDE))
    draw = ImageDraw.Draw(ids)
    for class_id in (1, 2):
        x, y = random.integers(12, SIDE - 12, 2).tolist()
        radius = int(random.integers(8, 16))
        shape = draw.ellipse if class_id == 1 else draw.rectangle
        shape((x - radius, y - radius, x + radius, y + radius), class_id)
    values = np.asarray(ids)
    pixels = np.array(COLORS)[values] + random.normal(0, 40, (SIDE, SIDE, 3))
    ignored = values.copy()
    ignored[:, :2] = 255
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), Image.fromarray(ignored)


def draw_points(random):
    """An image with a spot of each color in noise; x, y and visibility of each."""
    pixels = random.integers(0, 130, (SIDE, SIDE, 3))
    points = []
    for place in range(3):
        x, y = random.integers(4, SIDE - 4, 2).tolist()
        color = np.full(3, 60)
        color[place] = 255
        pixels[y - 2 : y + 3, x - 2 : x + 3] = color
        is_labeled = random.random() > 0.1
        points += [x + 0.5, y + 0.5, 2] if is_labeled else [0, 0, 0]
    return Image.fromarray(pixels.astype(np.uint8)), points


@pytest.fixture
def run_example(tmp_path):
    """`run_example(name)`: what the example prints of the dataset; its processor's time is
    limited."""

    def run(name):
        limit = (MOST_SECONDS, MOST_SECONDS)
        done = subprocess.run(
            [sys.executable, REPO / "examples" / name, "dataset"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPO)},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_a_network_learns_semantic_masks(tmp_path, run_command, run_example):
    random, rows = np.random.default_rng(1), ["image,mask,split"]
    (tmp_path / "shapes").mkdir()
    for number in range(240):
        image, ids = draw_shapes(random)
        image.save(tmp_path / f"shapes/{number}.jpg", quality=95)
        ids.save(tmp_path / f"shapes/{number}.png")
        rows.append(f"shapes/{number}.jpg,shapes/{number}.png,{'test' if number < 40 else 'train'}")
    (tmp_path / "masks.csv").write_text("\n".join(rows), encoding="utf-8")
    columns = "{kind: manifest, columns: {uri: image, mask: mask, split: split}}"
    command = f"recordmill run masks.csv dataset --set convention=deeplab --set source='{columns}'"
    done = run_command(
        f"{command} --set splits.from_source='{{train: train, test: test}}'", tmp_path
    )
    assert done.returncode == 0, done.stderr
    (found,) = re.findall(r"^intersection over union: (\S+)$", run_example("train_segmentation.py"))
    assert float(found) >= 0.9


def test_a_network_learns_key_points(tmp_path, run_command, run_example):
    random = np.random.default_rng(2)
    (tmp_path / "coco/annotations").mkdir(parents=True)
    category = {"id": 1, "name": "spots", "keypoints": POINTS}
    for split, count in (("train", 400), ("test", 60)):
        (tmp_path / f"coco/{split}").mkdir()
        images, annotations = [], []
        for number in range(count):
            image, points = draw_points(random)
            name = f"{number}.png"
            image.save(tmp_path / "coco" / split / name)
            images.append({"id": number, "file_name": name, "width": SIDE, "height": SIDE})
            labeled = sum(code > 0 for code in points[2::3])
            annotation = {"id": number + 1, "image_id": number, "category_id": 1, "iscrowd": 0}
            annotation |= {"bbox": [0, 0, SIDE, SIDE], "area": SIDE * SIDE}
            annotations.append({**annotation, "keypoints": points, "num_keypoints": labeled})
        content = {"images": images, "annotations": annotations, "categories": [category]}
        path = tmp_path / f"coco/annotations/instances_{split}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
    done = run_command("recordmill run coco dataset --set convention=tf_object_detection", tmp_path)
    assert done.returncode == 0, done.stderr
    (found,) = re.findall(r"^found: (\S+) of \d+ key points$", run_example("train_keypoints.py"))
    assert float(found) >= 0.9
