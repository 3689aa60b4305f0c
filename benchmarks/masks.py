"""Compares the conversion of COCO's objects with masks with the two scripts that people use.

    python -m benchmarks.masks --rivals .venv-interop/bin/python --check
    python -m benchmarks.masks --count 500 --pairs 1 --before ../before

`--rivals` is the Python of an environment with tf-models-official and the Object Detection API,
such as that of `make test-interop`. The masks of all programs must be equal. With `--before`, the
same conversion without masks is compared with that of an earlier checkout. Start-up is set apart as
in `benchmarks.convert`.
"""

import json
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from benchmarks import convert, measure, photographs
from benchmarks.convert import KINDS, Pair, Target
from benchmarks.measure import BenchmarkError, spread
from recordmill import examples_as_numpy

FEW = 100
OBJECTS = 7
"""The objects of an image: as many as COCO's have on average."""

SIZE = (500, 375)
PIPELINE = (
    f"{shlex.quote(sys.executable)} -m pipeline.run --runner=DirectRunner --config "
    f"{measure.ROOT}/configs/coco.yaml"
)
SCRIPTS = ("official", "object_detection")
TARGETS = (
    *(Target(script, "cpu_apart", 1.0) for script in SCRIPTS),
    Target("before", "cpu_apart", 0.95),
)


def make(count: int, work: Path, own: Path | None = None) -> Path:
    """Returns a folder of photographs with COCO's annotations, made unless it is there already."""
    plain = photographs.make(count, work, own, SIZE, classes=1)
    folder = plain.with_name(f"{plain.name}-coco-{OBJECTS}")
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(plain / "class_00", unfinished / "train2017")
        (unfinished / "annotations").mkdir()
        path = unfinished / "annotations/instances_train2017.json"
        names = sorted(each.name for each in (unfinished / "train2017").iterdir())
        path.write_text(json.dumps(annotate(names)), encoding="utf-8")
        unfinished.rename(folder)
    return folder


def annotate(names: Sequence[str]) -> Mapping[str, Any]:
    """Draws polygons of 10 to 40 corners, and one crowd in ten images, as runs."""
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, name in enumerate(names, start=1):
        images.append({"id": number, "file_name": name, "width": SIZE[0], "height": SIZE[1]})
        random = np.random.default_rng(number)
        for place in range(OBJECTS):
            annotation = _draw_polygon(random)
            if number % 10 == 0 and place == 0:
                annotation = _draw_crowd(random)
            category = 1 + int(random.integers(0, 80))
            annotation |= {"image_id": number, "category_id": category}
            annotations.append({"id": len(annotations) + 1, **annotation})
    categories = [{"id": number, "name": f"class {number}"} for number in range(1, 81)]
    return {"images": images, "annotations": annotations, "categories": categories}


def _draw_polygon(random: np.random.Generator) -> dict[str, Any]:
    corners = int(random.integers(10, 41))
    radius = float(np.exp(random.uniform(np.log(8), np.log(120))))
    angles = np.linspace(0, 2 * np.pi, corners, endpoint=False)
    radii = radius * random.uniform(0.6, 1, corners)
    center = [random.uniform(radius, side - radius) for side in SIZE]
    points = (center + np.stack([np.cos(angles), np.sin(angles)], 1) * radii[:, None]).round(2)
    left, top = points.min(axis=0).tolist()
    width, height = np.ptp(points, axis=0).tolist()
    return {
        "segmentation": [points.ravel().tolist()],
        "bbox": [left, top, width, height],
        "area": float(np.pi * radius**2),
        "iscrowd": 0,
    }


def _draw_crowd(random: np.random.Generator) -> dict[str, Any]:
    runs = random.integers(1, 40, 2 * 800)
    covered = int(runs.sum())
    return {
        "segmentation": {
            "size": [SIZE[1], SIZE[0]],
            "counts": [*runs.tolist(), SIZE[0] * SIZE[1] - covered],
        },
        "bbox": [0, 0, *SIZE],
        "area": int(runs[1::2].sum()),
        "iscrowd": 1,
    }


def read_masks(folder: Path) -> dict[str, list[bytes]]:
    """Returns the pixels of the masks of each record, by the name of its image."""
    # Imported here: only the comparison of masks needs it.
    from recordmill.imaging.masks.mask_file import decode_mask

    found = {}
    for values in examples_as_numpy(folder):
        name = values["image/filename"][0].decode()
        masks = (decode_mask(each, SIZE).values for each in values["image/object/mask"])
        found[name] = [mask.astype(np.uint8).tobytes() for mask in masks]
    return found


def check_masks(commands: Mapping[str, Sequence[str]], images: Path, work: Path) -> None:
    """Runs each program, and compares the masks that it writes.

    Raises:
        BenchmarkError: masks differ.
    """
    found = {}
    for name, command in commands.items():
        output = work / "output"
        shutil.rmtree(output, ignore_errors=True)
        measure.run([*command, "--input", str(images), "--output", str(output)])
        found[name] = read_masks(output)
        shutil.rmtree(output)
    ours = found.pop("ours")
    if sum(map(len, ours.values())) != OBJECTS * len(ours):
        raise BenchmarkError("objects are missing in our records")
    for name, theirs in found.items():
        if theirs != ours:
            differing = [image for image in ours if theirs.get(image) != ours[image]]
            raise BenchmarkError(f"masks of {len(differing):,} images differ from those of {name}")


def compare(
    commands: Mapping[str, Sequence[str]],
    inputs: Mapping[int, Path],
    pairs: int,
    work: Path,
) -> dict[str, Any]:
    """Runs all programs in alternation, and returns the ratios of the first to each other one."""
    few, count = sorted(inputs)

    def both(command: Sequence[str]) -> Pair:
        return Pair(
            measure.convert(command, inputs[count], count, work),
            measure.convert(command, inputs[few], few, work),
        )

    contenders = {name: partial(both, command) for name, command in commands.items()}
    results = measure.alternate(contenders, pairs)
    first, *others = commands
    return {
        "contenders": {name: convert.figures(rounds) for name, rounds in results.items()},
        "ours_to": {
            other: {
                kind: spread(
                    us.throughput(kind) / them.throughput(kind)
                    for us, them in zip(results[first], results[other], strict=True)
                )
                for kind in KINDS
            }
            for other in others
        },
    }


def show(title: str, result: Mapping[str, Any]) -> Table:
    """Lays out the medians."""
    shown = Table("", "CPU ms each", "CPU s", "peak MB", "MB written", "ours to it", title=title)
    for name, figures in result["contenders"].items():
        ratio = result["ours_to"].get(name, {}).get("cpu_apart")
        shown.add_row(
            name,
            f"{figures['cpu_milliseconds_each']['median']:.2f}",
            f"{figures['cpu_seconds']['median']:.1f}",
            f"{figures['peak_rss_mb']['median']:,.0f}",
            f"{figures['output_bytes'] / 1e6:,.0f}",
            "" if ratio is None else "{median:.2f} ({min:.2f} to {max:.2f})".format(**ratio),
        )
    return shown


def main() -> None:
    """Compares the programs."""
    parser = measure.options(__doc__)
    parser.set_defaults(pipeline=shlex.split(PIPELINE))
    parser.add_argument("--count", type=int, default=5_000, help=f"images, more than {FEW}")
    parser.add_argument("--pairs", type=int, default=3, help="rounds (%(default)s)")
    parser.add_argument("--rivals", metavar="PYTHON", help="Python with the two scripts' packages")
    parser.add_argument("--before", type=Path, metavar="DIR", help="a checkout to compare with")
    arguments = parser.parse_args()
    ours, pairs, work = arguments.pipeline, arguments.pairs, arguments.work
    inputs = {count: make(count, work, arguments.photographs) for count in (FEW, arguments.count)}
    photographs.warm(inputs[arguments.count])
    results = {}
    if arguments.rivals:
        module = [arguments.rivals, "-m", "benchmarks.rivals.coco_scripts", "--script"]
        scripts = {script: [*module, script] for script in SCRIPTS}
        commands = {"ours": [*ours, "--set", "masks=png"], **scripts}
        check_masks(commands, inputs[FEW], work)
        results["masks: png"] = compare(commands, inputs, pairs, work)
    if arguments.before:
        place = arguments.before.resolve()
        # `env` runs it in the folder of the checkout, whose modules come first.
        moved = ["env", f"--chdir={place}", f"PYTHONPATH={place}"]
        commands = {"ours": list(ours), "before": [*moved, *ours]}
        results["masks: none"] = compare(commands, inputs, pairs, work)
    missed = []
    for title, result in results.items():
        measure.console.print(show(f"{title}, {arguments.count:,} images", result))
        for target in TARGETS:
            ratio = result["ours_to"].get(target.rival, {}).get(target.kind)
            if ratio and ratio["median"] < target.least:
                missed.append(
                    f"{title}: {ratio['median']:.2f} of {target.rival}, the target is "
                    f"{target.least:.2f}"
                )
    result = {"machine": measure.machine(), "images": arguments.count, "cases": results}
    measure.finish(result, missed, arguments.check)


if __name__ == "__main__":
    main()
