"""Measures how conversion speeds up with processes: 1 to N of them, pinned to 1 to N processors.

    python -m benchmarks.cores
    python -m benchmarks.cores --most 8 --case header --pairs 9

Each round runs every number of processes on all photographs and on a few, as `benchmarks.convert`
does, so that start-up can be set apart. The speed-up is how many times as fast as one process they
are; the CPU ratio is what a photograph costs them, compared with one process.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import convert, measure, photographs
from benchmarks.measure import spread


def compare(
    case: str,
    pipeline: Sequence[str],
    most: int,
    count: int,
    pairs: int,
    make: Callable[[int], Path],
    work: Path,
) -> dict[str, Any]:
    """Runs a case with 1 to `most` processes, and returns their figures by number."""
    settings = [word for setting in convert.CASES[case].settings for word in ("--set", setting)]
    inputs = {number: make(number) for number in (count, convert.FEW)}
    photographs.warm(inputs[count])
    processors = sorted(os.sched_getaffinity(0))

    def both(processes: int) -> convert.Pair:
        pinned = ["taskset", "--cpu-list", ",".join(map(str, processors[:processes]))]
        command = [*pinned, *pipeline, f"--processes={processes}", *settings]
        few, whole = (
            measure.convert(command, inputs[number], number, work)
            for number in (convert.FEW, count)
        )
        return convert.Pair(whole, few)

    results = measure.alternate(
        {str(number): partial(both, number) for number in range(1, most + 1)}, pairs
    )

    return {
        name: {
            **convert.figures(rounds),
            "speed_up": spread(map(_speed_up, rounds, results["1"])),
            "cpu_ratio": spread(map(_cpu_ratio, rounds, results["1"])),
        }
        for name, rounds in results.items()
    }


def _speed_up(pair: convert.Pair, one: convert.Pair) -> float:
    return pair.throughput("apart") / one.throughput("apart")


def _cpu_ratio(pair: convert.Pair, one: convert.Pair) -> float:
    return one.throughput("cpu_apart") / pair.throughput("cpu_apart")


def main() -> None:
    """Runs the chosen case with each number of processes."""
    parser = measure.options(__doc__)
    parser.add_argument(
        "--case", choices=sorted(convert.CASES), default="default", help="a case (%(default)s)"
    )
    parser.add_argument(
        "--most", type=int, default=len(os.sched_getaffinity(0)), help="processes (%(default)s)"
    )
    parser.add_argument(
        "--count", type=int, help=f"photographs, more than {convert.FEW} (4,000; header: 20,000)"
    )
    parser.add_argument("--pairs", type=int, default=5, help="rounds (%(default)s)")
    arguments = parser.parse_args()
    count = arguments.count or convert.CASES[arguments.case].count
    make = partial(photographs.make, work=arguments.work, own=arguments.photographs)
    figures = compare(
        arguments.case,
        arguments.pipeline,
        arguments.most,
        count,
        arguments.pairs,
        make,
        arguments.work,
    )
    shown = Table(
        "processes", "speed-up", "CPU ratio", "peak MB", title=f"{arguments.case}: {count:,} images"
    )
    for name, figure in figures.items():
        values = (f"{figure[key]['median']:.2f}" for key in ("speed_up", "cpu_ratio"))
        shown.add_row(name, *values, f"{figure['peak_rss_mb']['median']:,.0f}")
    measure.console.print(shown)
    measure.finish({"machine": measure.machine(), "processes": figures}, [], arguments.check)


if __name__ == "__main__":
    main()
