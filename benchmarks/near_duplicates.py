"""Plants copies of photographs, and counts those that `images.near_duplicates: together` finds.

    python -m benchmarks.near_duplicates --check

Each of 500 photographs gets four copies: half the size, quality 20, 20 % brighter, and 2 % cropped
off each side. A copy is found if it is in its original's group, directly or by way of other copies.
Two originals in one group are a false join, unless they are copies of each other:
`--photographs DIR` takes your own.
"""

import io
import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance
from rich.table import Table

from benchmarks import measure
from benchmarks.photographs import numbered, photograph
from recordmill.transforms.group_duplicates import link_groups
from recordmill.transforms.publishing.duplicates import are_distinctive, find_near_pairs

COUNT = 500
QUALITY = 85
TARGETS = {"half": 0.98, "quality20": 0.98, "brighter": 0.98, "cropped": 0.5}
"""The least share of the copies of each kind that must be found, of generated photographs."""

SETTINGS = (
    "images.near_duplicates=together",
    "splits.fractions={train: 0.5, test: 0.5}",
    "shards.count=1",
)


def plant(image: Image.Image) -> Mapping[str, tuple[Image.Image, int]]:
    """The copies of an image by kind, each with the quality at which it is encoded."""
    width, height = image.size
    left, top = round(0.02 * width), round(0.02 * height)
    return {
        "half": (image.resize((max(width // 2, 1), max(height // 2, 1))), QUALITY),
        "quality20": (image, 20),
        "brighter": (ImageEnhance.Brightness(image).enhance(1.2), QUALITY),
        "cropped": (image.crop((left, top, width - left, height - top)), QUALITY),
    }


def make(count: int, folder: Path, own: Path | None) -> int:
    """Writes photographs and their copies into a folder, and returns the number of photographs.

    A file's name is `KIND/NUMBER.jpg`.
    """
    paths = (
        sorted(path for path in own.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
        if own
        else []
    )
    read: Callable[[int], bytes] = (
        (lambda number: paths[number].read_bytes()) if own else photograph
    )
    count = min(count, len(paths)) if own else count
    for number in range(count):
        image = Image.open(io.BytesIO(read(number))).convert("RGB")
        for kind, (copy, quality) in {"original": (image, 95), **plant(image)}.items():
            stream = io.BytesIO()
            copy.save(stream, "JPEG", quality=quality)
            (folder / kind).mkdir(parents=True, exist_ok=True)
            (folder / kind / f"{number:05}.jpg").write_bytes(numbered(stream.getvalue(), number))
    return count


def count_found(hashes: Mapping[tuple[str, int], tuple[str, int]]) -> dict[str, Any]:
    """Counts copies that share their original's group, and what else there is to know.

    Args:
        hashes: split and difference hash by kind and number.
    """
    keys = sorted(hashes)
    values = np.array([hashes[key][1] for key in keys], np.uint64)
    telling = np.flatnonzero(are_distinctive(values))
    pairs = telling[find_near_pairs(values[telling], len(keys) ** 2)[0]].tolist()
    groups = link_groups([*pairs, *([place, place] for place in range(len(keys)))])
    group_of = {key: groups[place] for place, key in enumerate(keys)}
    originals = Counter(group_of[key] for key in keys if key[0] == "original")
    found = Counter(
        kind for kind, number in keys if group_of[kind, number] == group_of["original", number]
    )
    return {
        "planted": Counter(kind for kind, _ in keys)["original"],
        "found": {kind: found[kind] for kind in TARGETS},
        "originals_joined_with_others": sum(count for count in originals.values() if count > 1),
        "pairs_of_originals": sum(
            len([*combinations(range(count), 2)]) for count in originals.values()
        ),
        "pairs_across_splits": sum(
            hashes[keys[one]][0] != hashes[keys[other]][0] for one, other in pairs
        ),
    }


def read_hashes(dataset: Path) -> dict[tuple[str, int], tuple[str, int]]:
    """Split and difference hash of each image of a dataset, by kind and number."""
    found = {}
    for path in (dataset / "sidecars").iterdir():
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            kind, name = row["key"].split("/")
            found[kind, int(name.removesuffix(".jpg"))] = (
                path.name.split("-")[0],
                int(row["difference_hash"], 16),
            )
    return found


def main() -> None:
    """Runs the benchmark."""
    parser = measure.options(__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="photographs (%(default)s)")
    arguments = parser.parse_args()
    work = arguments.work / "near-duplicates"
    shutil.rmtree(work, ignore_errors=True)
    count = make(arguments.count, work / "photographs", arguments.photographs)
    flags = [word for setting in SETTINGS for word in ("--set", setting)]
    command = [
        *arguments.pipeline,
        "--input",
        str(work / "photographs"),
        "--output",
        str(work / "dataset"),
    ]
    run = measure.run([*command, *flags])
    result = count_found(read_hashes(work / "dataset"))
    table = Table("copy", "found", title=f"{count:,} photographs, {4 * count:,} copies")
    for kind, found in result["found"].items():
        table.add_row(kind, f"{found:,} ({found / count:.1%})")
    measure.console.print(table, {key: value for key, value in result.items() if key != "found"})
    misses = [
        f"{kind}: {found:,}"
        for kind, found in result["found"].items()
        if found < TARGETS[kind] * count
    ]
    misses += ["pairs across splits"] * bool(result["pairs_across_splits"])
    result |= {"machine": measure.machine(), "cpu_seconds": run.cpu_seconds}
    measure.finish(result, misses, arguments.check)


if __name__ == "__main__":
    main()
