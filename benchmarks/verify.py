"""Compares verifying a dataset with reading it by TensorFlow, side by side, start-up apart.

    python -m benchmarks.verify --check

Contenders alternate, each in a process of its own that reads the whole dataset once untimed and
then some passes timed. A ratio is that of the fastest passes of a round; the median of the rounds
is reported.
"""

import shutil
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import measure, photographs
from benchmarks.measure import Run

TARGETS = {"frames": 2.0, "files": 1.0}
"""The least that our records a second may be of TensorFlow's, by level."""

RIVAL = "tensorflow"
_FIT = ("--set", "shards.count=8", "--set", "splits.fractions={train: 1.0}")


def make_dataset(pipeline: Sequence[str], images: Path, work: Path) -> Path:
    """Converts photographs once, and returns the dataset's folder.

    A folder that is there already is returned as it is.
    """
    output = work / f"dataset-of-{images.name}"
    if not (output / "recordmill.json").exists():
        shutil.rmtree(output, ignore_errors=True)
        measure.run([*pipeline, *_FIT, "--input", str(images), "--output", str(output)])
    return output


def rate(run: Run) -> float:
    """Returns records per second in the fastest pass.

    The time is by the contender's own clock: its start-up is not in it.
    """
    return float(run.summary["records"] / min(run.summary["seconds"]))


def compare(dataset: Path, pairs: int, passes: int) -> dict[str, Any]:
    """Runs the contenders in alternation and returns their figures."""
    command = [sys.executable, "-m", "benchmarks.passes"]
    contenders = {
        name: partial(measure.run, [*command, name, str(dataset), "--passes", str(passes)])
        for name in (*TARGETS, RIVAL)
    }
    rounds = measure.alternate(contenders, pairs)
    counts = {run.summary["records"] for runs in rounds.values() for run in runs}
    if len(counts) > 1:
        raise measure.BenchmarkError(f"not everybody read as many records: {sorted(counts)}")
    return {
        "records": counts.pop(),
        "pairs": pairs,
        "records_per_second": {
            name: measure.spread(map(rate, runs)) for name, runs in rounds.items()
        },
        "peak_rss_mb": {
            name: measure.spread(run.peak_rss / 1e6 for run in runs)
            for name, runs in rounds.items()
        },
        "cpus_busy_with_other_work": {
            name: measure.spread(run.others for run in runs) for name, runs in rounds.items()
        },
        "ours_to_tensorflow": {
            level: measure.spread(
                rate(ours) / rate(theirs)
                for ours, theirs in zip(rounds[level], rounds[RIVAL], strict=True)
            )
            for level in TARGETS
        },
    }


def table(result: Mapping[str, Any]) -> Table:
    """Lays the figures out."""
    title = (
        f"{result['records']:,} records, medians of {result['pairs']} alternating rounds, "
        "start-up apart"
    )
    shown = Table("", "records/s", "to TensorFlow", "peak MB", "others", title=title)
    for name, rates in result["records_per_second"].items():
        ratio = result["ours_to_tensorflow"].get(name)
        ratios = (
            f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})" if ratio else ""
        )
        peak, others = (
            result[key][name]["median"] for key in ("peak_rss_mb", "cpus_busy_with_other_work")
        )
        shown.add_row(name, f"{rates['median']:,.0f}", ratios, f"{peak:,.0f}", f"{others:.2f}")
    return shown


def main() -> None:
    """Makes the dataset, compares, and tells."""
    parser = measure.options(__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="records (%(default)s)")
    parser.add_argument("--pairs", type=int, default=5, help="rounds (%(default)s)")
    parser.add_argument(
        "--passes", type=int, default=3, help="timed passes of each in a round (%(default)s)"
    )
    arguments = parser.parse_args()
    images = photographs.make(arguments.count, arguments.work, arguments.photographs)
    dataset = make_dataset(arguments.pipeline, images, arguments.work)
    result = compare(dataset, arguments.pairs, arguments.passes)
    measure.console.print(table(result))
    missed = [
        f"{level}: {result['ours_to_tensorflow'][level]['median']:.2f} of TensorFlow's, the target "
        f"is {least:.2f}"
        for level, least in TARGETS.items()
        if result["ours_to_tensorflow"][level]["median"] < least
    ]
    measure.finish({"machine": measure.machine(), **result}, missed, arguments.check)


if __name__ == "__main__":
    main()
