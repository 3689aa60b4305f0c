"""Compares `recordmill.load` with the best hand-written tf.data pipeline, side by side.

    python -m benchmarks.load --check

Both go through the same dataset once, in processes of their own that take turns; a round's ratio is
ours to the other's images a second from the first batch to the last. Cases: `decoded` (JPEGs of
500x375 decoded, in batches of 32) and `resized` (and resized to 224x224).
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import measure, photographs
from benchmarks.measure import BenchmarkError, Run, spread

COUNT = 10_000
TARGET = 0.95
CASES: Mapping[str, Sequence[str]] = {"decoded": (), "resized": ("--size", "224")}
READERS = ("ours", "ours_in_order", "tf_data")


def make_dataset(pipeline: Sequence[str], images: Path, work: Path) -> Path:
    """Converts the photographs into one split of eight shards, unless that was done before."""
    folder = work / f"dataset-{images.name}"
    if not (folder / "recordmill.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        settings = ("images.check=header", "splits.fractions={train: 1.0}", "shards.count=8")
        flags = [word for setting in settings for word in ("--set", setting)]
        measure.run([*pipeline, *flags, "--input", str(images), "--output", str(folder)])
    return folder


def feed(reader: str, folder: Path, count: int, options: Sequence[str]) -> Run:
    """Runs a reader.

    Raises:
        BenchmarkError: it did not deliver every image.
    """
    run = measure.run([sys.executable, "-m", "benchmarks.feed", reader, str(folder), *options])
    if run.summary.get("records") != count:
        raise BenchmarkError(f"{reader} delivered {run.summary.get('records')} images of {count}")
    return run


def rate(run: Run, clock: str = "seconds_working") -> float:
    """Images a second, of wall time or of processors' time."""
    return float(run.summary["fed"] / run.summary[clock])


def compare(folder: Path, count: int, pairs: int, options: Sequence[str]) -> dict[str, Any]:
    """Runs all readers in alternation and returns their figures."""
    results = measure.alternate(
        {name: partial(feed, name, folder, count, options) for name in READERS}, pairs
    )

    def ratio(name: str, clock: str) -> dict[str, float]:
        rounds = zip(results[name], results["tf_data"], strict=True)
        return spread(rate(us, clock) / rate(them, clock) for us, them in rounds)

    return {
        "photographs": count,
        "pairs": pairs,
        "images_per_second": {name: spread(map(rate, runs)) for name, runs in results.items()},
        "cpus_busy_with_other_work": {
            name: spread(run.others for run in runs) for name, runs in results.items()
        },
        "to_tf_data": {name: ratio(name, "seconds_working") for name in READERS[:-1]},
        "to_tf_data_by_cpu_seconds": {
            name: ratio(name, "cpu_seconds_working") for name in READERS[:-1]
        },
    }


def table(results: Mapping[str, Any]) -> Table:
    """Lays the ratios out."""
    shown = Table(
        "case", "reader", "images/s", "to tf_data: least", "median", "largest", "by CPU", "target"
    )
    for case, result in results.items():
        for name, ratio in result["to_tf_data"].items():
            values = (f"{ratio[key]:.2f}" for key in ("min", "median", "max"))
            speed, by_cpu = (
                result["images_per_second"][name],
                result["to_tf_data_by_cpu_seconds"][name],
            )
            target = f"{TARGET:.2f}" if name == "ours" else ""
            shown.add_row(
                case, name, f"{speed['median']:,.0f}", *values, f"{by_cpu['median']:.2f}", target
            )
    return shown


def main() -> None:
    """Runs the chosen cases."""
    parser = measure.options(__doc__)
    parser.add_argument(
        "--case", action="append", choices=sorted(CASES), help="a case to run (both)"
    )
    parser.add_argument("--count", type=int, default=COUNT, help="photographs (%(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="rounds of all readers (%(default)s)")
    arguments = parser.parse_args()
    images = photographs.make(arguments.count, arguments.work, arguments.photographs)
    folder = make_dataset(arguments.pipeline, images, arguments.work)
    feed("ours", folder, arguments.count, ())  # reads files and programs from the disk
    results = {
        case: compare(folder, arguments.count, arguments.pairs, CASES[case])
        for case in arguments.case or CASES
    }
    measure.console.print(table(results))
    ratios = {case: result["to_tf_data"]["ours"]["median"] for case, result in results.items()}
    missed = [
        f"{case}: {ratio:.2f} of tf_data, the target is {TARGET}"
        for case, ratio in ratios.items()
        if ratio < TARGET
    ]
    measure.finish({"machine": measure.machine(), "cases": results}, missed, arguments.check)


if __name__ == "__main__":
    main()
