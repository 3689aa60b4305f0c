"""The collections that the commands of README.md and docs/recipes.md name, with ten or twenty
images each."""

import json
import shutil
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]


def draw(path: Path, shade: int) -> None:
    """A small photograph of one color."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (160, 120), (shade % 256, (7 * shade) % 256, 90)).save(path, quality=90)


def draw_collections(folder: Path) -> Path:
    """Fills the folder, links the environment into it, and returns it."""
    for number in range(20):
        for animal in ("cat", "dog"):
            draw(folder / "photos" / animal / f"{number:04d}.jpg", number + 50 * (animal == "dog"))
            draw(folder / "more-photos" / animal / f"{number:04d}.jpg", number + 100)
            draw(
                folder
                / "collection"
                / ("val" if number < 4 else "train")
                / animal
                / f"{number}.jpg",
                number,
            )
        draw(folder / "masks" / "cell" / f"{number}.png", number)
        draw(folder / "digits" / f"img_{number:05d}_{number % 10}.jpg", number)
        for side in ("left", "right"):
            draw(
                folder
                / "patients"
                / ("sick" if number % 2 else "well")
                / f"p{number:03d}_{side}.jpg",
                number,
            )
    rows = [
        f"photos/{animal}/{number:04d}.jpg,{animal}"
        for number in range(20)
        for animal in ("cat", "dog")
    ]
    (folder / "labels.csv").write_text("\n".join(["file,class", *rows]), encoding="utf-8")
    for word, number in (("train", 1), ("val", 2)):
        draw(folder / "coco" / f"{word}2017" / f"{number}.jpg", number)
        annotations = {
            "images": [{"id": number, "file_name": f"{number}.jpg", "width": 160, "height": 120}],
            "categories": [{"id": 18, "name": "dog"}],
            "annotations": [
                {"id": 1, "image_id": number, "category_id": 18, "bbox": [16, 12, 80, 60]}
            ],
        }
        path = folder / "coco" / "annotations" / f"instances_{word}2017.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(annotations), encoding="utf-8")
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


def count_records(dataset: Path) -> dict[str, int]:
    """How many records each split has."""
    marker = json.loads((dataset / "recordmill.json").read_text(encoding="utf-8"))
    return {split: entry["records"] for split, entry in marker["splits"].items()}
