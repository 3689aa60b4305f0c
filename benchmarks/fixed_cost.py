"""Measures what a run costs before the first photograph counts.

    python -m benchmarks.fixed_cost --check

A run of 100 small images is compared with importing Beam alone: as it is installed, and as the
command imports it for local files. All run in alternation; the target is for the median of the
differences.
"""

import sys
from functools import partial

from benchmarks import measure, photographs

COUNT = 100
SIZE = (64, 48)
TARGET = 0.75  # seconds more than the import
IMPORTS = {
    "import": "import apache_beam",
    "import for local files": (
        "from recordmill.pipeline.import_beam import import_beam_for_local_files as run; run()"
    ),
}


def main() -> None:
    """Runs all in alternation."""
    parser = measure.options(__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="rounds of all (%(default)s)")
    arguments = parser.parse_args()
    images = photographs.make(COUNT, arguments.work, arguments.photographs, SIZE)
    contenders = {
        "ours": partial(measure.convert, arguments.pipeline, images, COUNT, arguments.work),
    }
    for name, code in IMPORTS.items():
        contenders[name] = partial(measure.run, [sys.executable, "-c", code])
    measure.alternate(contenders, 1)  # a first start reads programs from the disk
    rounds = measure.alternate(contenders, arguments.pairs)
    pairs = zip(rounds["ours"], rounds["import"], strict=True)
    difference = measure.spread(ours.seconds - imported.seconds for ours, imported in pairs)
    result = {
        "machine": measure.machine(),
        "pairs": arguments.pairs,
        "seconds": {
            name: measure.spread(run.seconds for run in runs) for name, runs in rounds.items()
        },
        "cpu_seconds": {
            name: measure.spread(run.cpu_seconds for run in runs) for name, runs in rounds.items()
        },
        "peak_rss": {
            name: measure.spread(run.peak_rss for run in runs) for name, runs in rounds.items()
        },
        "difference": difference,
    }
    median = difference["median"]
    measure.console.print(f"{median:.2f} s more than importing Beam (target: at most {TARGET} s)")
    missed = (
        [f"{median:.2f} s more than importing Beam, {TARGET} s are allowed"]
        if median > TARGET
        else []
    )
    measure.finish(result, missed, arguments.check)


if __name__ == "__main__":
    main()
