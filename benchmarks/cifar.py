"""Compares the pipeline with the usual loop that converts CIFAR-10, side by side.

    python -m benchmarks.cifar --check

Both turn its binary files into raw pixels in TFRecords. They are measured as by
`benchmarks.convert`: whole, and with start-up apart.
"""

import shlex
import sys
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import convert, measure
from benchmarks.convert import Case, Target

PIPELINE = (
    f"{shlex.quote(sys.executable)} -m pipeline.run --runner=DirectRunner --config "
    "configs/cifar10.yaml"
)
CASE = Case(
    60_000,
    (),
    "uint8",
    (Target("cifar_loop", "cpu_whole", 1.0), Target("cifar_loop", "cpu_apart", 0.7)),
)
FILES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def make(count: int, work: Path) -> Path:
    """Returns a folder with CIFAR-10's files: `count` records of noise in all.

    It is made below `work` unless it is there already.
    """
    folder = work / f"cifar-{count}"
    if not folder.exists():
        unfinished = folder.with_name(folder.name + ".unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        records = np.random.default_rng(count).integers(0, 256, (count, 3073), dtype=np.uint8)
        records[:, 0] %= len(NAMES)
        for name, part in zip(FILES, np.array_split(records, len(FILES)), strict=True):
            (unfinished / name).write_bytes(part.tobytes())
        (unfinished / "batches.meta.txt").write_text("\n".join(NAMES) + "\n")
        unfinished.rename(folder)
    for path in folder.iterdir():  # everybody finds the files in the page cache
        path.read_bytes()
    return folder


def main() -> None:
    """Runs both in alternation."""
    parser = measure.options(__doc__)
    parser.set_defaults(pipeline=shlex.split(PIPELINE))
    parser.add_argument(
        "--count",
        type=int,
        default=CASE.count,
        help=f"records, more than {convert.FEW} (%(default)s)",
    )
    parser.add_argument("--pairs", type=int, default=5, help="rounds of both (%(default)s)")
    arguments = parser.parse_args()
    made = partial(make, work=arguments.work)
    result = convert.compare(
        CASE, arguments.pipeline, arguments.count, arguments.pairs, made, arguments.work
    )
    measure.console.print(convert.table("cifar", result), convert.ratios(CASE, result))
    report = {"machine": measure.machine(), "cases": {"cifar": result}}
    measure.finish(report, convert.missed("cifar", CASE, result), arguments.check)


if __name__ == "__main__":
    main()
