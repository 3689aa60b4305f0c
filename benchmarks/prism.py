"""Measures what Prism adds to a run's start-up.

It converts 100 small images on Prism and on DirectRunner, in alternation.

    python -m benchmarks.prism

`scripts/prism` builds the binary first, where it is not in the cache.
"""

import os
import subprocess
import sys
from functools import partial

from benchmarks import measure, photographs
from benchmarks.fixed_cost import COUNT, SIZE


def main() -> None:
    """Runs both in alternation."""
    parser = measure.options(__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="rounds of both (%(default)s)")
    arguments = parser.parse_args()
    environment = {**os.environ, "PYTHON": sys.executable}
    script = measure.ROOT / "scripts" / "prism"
    built = subprocess.run([script], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    images = photographs.make(COUNT, arguments.work, arguments.photographs, SIZE)
    command = [word for word in arguments.pipeline if not word.startswith("--runner=")]
    prism = ["--runner=PrismRunner", f"--prism_location={built.stdout.strip()}"]
    contenders = {
        name: partial(measure.convert, [*command, *flags], images, COUNT, arguments.work)
        for name, flags in {"prism": prism, "direct": ["--runner=DirectRunner"]}.items()
    }
    measure.alternate(contenders, 1)  # a first start reads programs from the disk
    rounds = measure.alternate(contenders, arguments.pairs)
    pairs = list(zip(rounds["prism"], rounds["direct"], strict=True))
    result = {
        "machine": {**measure.machine(), "load": measure.load()},
        "pairs": arguments.pairs,
        "seconds": {
            name: measure.spread(run.seconds for run in runs) for name, runs in rounds.items()
        },
        "difference": measure.spread(one.seconds - other.seconds for one, other in pairs),
        "ratio": measure.spread(one.seconds / other.seconds for one, other in pairs),
    }
    difference, ratio = result["difference"]["median"], result["ratio"]["median"]
    measure.console.print(
        f"Prism takes {difference:.2f} s more than DirectRunner, {ratio:.2f} times as long"
    )
    measure.finish(result, [], arguments.check)


if __name__ == "__main__":
    main()
