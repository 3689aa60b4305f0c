"""Measures how the pipeline's memory grows with its input.

    python -m benchmarks.memory --check

It compares the peak over the whole process tree at two sizes. The allowance is 300 MB and 1.3 KB
for each photograph: what the runner may keep is a reference, never an image.
"""

import itertools
import shlex
from functools import partial

from rich.table import Table

from benchmarks import measure, photographs

BASE = 300e6
PER_REFERENCE = 1.3e3


def allowance(count: int) -> float:
    """Returns the bytes allowed for a number of photographs."""
    return BASE + PER_REFERENCE * count


def main() -> None:
    """Runs the pipeline once at each size."""
    parser = measure.options(__doc__)
    # Shared pages would count twice.
    parser.set_defaults(pipeline=shlex.split(f"{measure.PIPELINE} --processes=1"))
    parser.add_argument(
        "--counts", type=int, nargs="+", default=[2_000, 20_000], help="photographs (%(default)s)"
    )
    arguments = parser.parse_args()
    make = partial(photographs.make, work=arguments.work, own=arguments.photographs)
    shown = Table(
        "photographs", "peak MB", "allowed MB", title="peak resident memory, all processes"
    )
    peaks, missed = {}, []
    for count in arguments.counts:
        peak = measure.convert(arguments.pipeline, make(count), count, arguments.work).peak_rss
        peaks[count] = peak
        row = (f"{count:,}", f"{peak / 1e6:.0f}", f"{allowance(count) / 1e6:.0f}")
        shown.add_row(*row)
        if peak > allowance(count):
            missed.append(f"{row[0]} photographs: {row[1]} MB, {row[2]} MB are allowed")
    measure.console.print(shown)
    growth = {
        f"{fewer}-{more}": round((peaks[more] - peaks[fewer]) / (more - fewer))
        for fewer, more in itertools.pairwise(sorted(peaks))
    }
    result = {
        "machine": measure.machine(),
        "peak_rss_mb": {count: round(peak / 1e6, 1) for count, peak in peaks.items()},
        "bytes_per_photograph": growth,
    }
    measure.finish(result, missed, arguments.check)


if __name__ == "__main__":
    main()
