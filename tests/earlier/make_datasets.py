"""Makes the inputs and the datasets in this folder; README.md says what they are.

Run it only in a checkout of commit 728cb4bb: another commit would make other datasets.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from frozen_pictures import draw_jpeg, draw_png  # noqa: E402

TIME = 1_700_000_000
"""When all files of the inputs were modified; a checkout sets another time."""

MADE = ("photos", "pets", "removed.txt", "classes", "boxes", "nightly", "unfinished", "cut")

CUT = """
import sys

sys.path.insert(0, "../support")
from cut_switch import cut_switch
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

with cut_switch("move_file", 3):
    sys.exit(launch(sys.argv[1:], build))
"""
"""Converts, and fails while the third file is put in place."""


def draw_photos() -> dict[str, bytes]:
    """Two classes, with a rotated JPEG, PNGs, a copy, a rejected file and an ignored one."""
    files = {f"cat/{number}.jpg": draw_jpeg(f"cat {number}", (40, 30)) for number in range(4)}
    files |= {f"dog/{number}.jpg": draw_jpeg(f"dog {number}", (40, 30)) for number in range(4)}
    return files | {
        "cat/turned.jpg": draw_jpeg("turned cat", (40, 30), orientation=6),
        "cat/copy.jpg": files["cat/1.jpg"],
        "dog/drawn.png": draw_png("drawn dog", (24, 16)),
        "dog/gray.png": draw_png("gray dog", (24, 16), mode="L"),
        "dog/cut.jpg": draw_jpeg("cut dog", (40, 30))[:-200],
        "dog/Thumbs.db": b"made by a system",
    }


BOXES = {
    "a": [(1, [2, 3, 20, 15])],
    "b": [(2, [5, 5, 10, 12]), (1, [30, 10, 30, 10])],  # the second extends past the right side
    "c": [(2, [1, 1, 8, 8]), (2, [50, 2, 8, 8])],  # the second is outside the image
    "turned": [(1, [4, 4, 10, 20])],
    "copy": [(1, [2, 3, 20, 15])],
    "removed": [(2, [3, 3, 9, 9]), (1, [1, 1, 4, 4])],
    "empty": [],
    "d": [(0, [6, 6, 12, 12])],
    "e": [(0, [0, 0, 40, 30]), (2, [10, 10, 5, 5])],
    "gone": [(1, [2, 2, 6, 6])],
}
"""Category and box (x, y, width, height) of each object, by image; the last three are in val."""


def draw_pets() -> dict[str, bytes]:
    """A COCO collection with a clipped box, one outside its image, and a rotated image."""
    files: dict[str, bytes] = {"train/unlisted.jpg": draw_jpeg("unlisted", (40, 30))}
    classes = enumerate(("bird", "cat", "dog"))
    categories = [{"id": number, "name": name} for number, name in classes]
    for split, names in (("train", [*BOXES][:7]), ("val", [*BOXES][7:])):
        images, annotations = [], []
        for number, name in enumerate(names, 1):
            width, height = (30, 40) if name == "turned" else (40, 30)
            size = {"width": width, "height": height}
            images.append({"id": number, "file_name": f"{name}.jpg", **size})
            for category, box in BOXES[name]:
                entry = {"image_id": number, "category_id": category, "bbox": box, "iscrowd": 0}
                annotations.append({"id": len(annotations) + 1, **entry})
            orientation = 6 if name == "turned" else 1
            content = draw_jpeg(f"pet {name}", (40, 30), orientation=orientation)
            files[f"{split}/{name}.jpg"] = content
        text = json.dumps({"images": images, "annotations": annotations, "categories": categories})
        files[f"annotations/instances_{split}.json"] = text.encode()
    files["train/copy.jpg"] = files["train/a.jpg"]
    return files


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes files, all of one time."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (TIME, TIME))


def run(*flags: str, program: tuple[str, str] = ("-m", "pipeline.run"), code: int = 0) -> None:
    """Converts a collection as a user does in this folder."""
    command = [sys.executable, *program, *flags]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=HERE, env=environment, check=False)
    assert done.returncode == code, done.returncode


def main() -> None:
    """Makes everything again."""
    for name in MADE:
        shutil.rmtree(HERE / name, ignore_errors=True)
    photos, pets = draw_photos(), draw_pets()
    write(HERE / "pets", pets)
    digest = hashlib.sha256(pets["val/gone.jpg"]).hexdigest()
    lines = ["# removed on request, 2026-11", "", "key:train/removed.jpg", f"sha256:{digest}"]
    text = "\n".join([*lines, "key:train/never.jpg", ""])
    (HERE / "removed.txt").write_text(text, encoding="utf-8")
    run("--config", "boxes.yaml", "--input", "pets", "--output", "boxes")

    nightly = ("--input", "photos", "--output", "nightly", "--versions", "--update")
    settings = ("shards={count: 2, cuts: fixed}", "report=false", "licence=CC0-1.0")
    nightly += tuple(f"--set={setting}" for setting in settings)
    before = {name: content for name, content in photos.items() if name != "dog/drawn.png"}
    before["cat/3.jpg"] = draw_jpeg("another cat", (40, 30))
    before["dog/gone.jpg"] = draw_jpeg("gone dog", (40, 30))
    write(HERE / "photos", before)
    run(*nightly)
    shutil.rmtree(HERE / "photos")
    write(HERE / "photos", photos)
    run(*nightly)

    creator = "creator=The Zoo of Springfield"
    run("--input", "photos", "--output", "classes", "--set", "licence=CC-BY-4.0", "--set", creator)
    limits = ("--set", "max_rejected={share: 0, count: 0}")
    run("--input", "photos", "--output", "unfinished", "--set", "report=false", *limits, code=3)
    few = ("--set", "limit=5", "--set", "splits.fractions={train: 1.0}", "--set", "report=false")
    run("--input", "photos", "--output", "cut", *few, program=("-c", CUT), code=1)
    (HERE / "cut" / "sidecars").rmdir()  # it is empty, so a checkout would not have it


if __name__ == "__main__":
    main()
