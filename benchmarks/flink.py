"""Does Flink scale, and what does it shuffle? Re-encoding with one slot, two slots, and one slot of two threads.

    scripts/flink up
    python -m benchmarks.flink --check

Every round converts all photographs and a few with each of the three, in worker processes; what is compared is the time
that Flink's own interface gives for the converting step, all less few: no start-up is in it. Bytes are Flink's too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import measure, photographs
from benchmarks.measure import BenchmarkError, Run, spread
from scripts import flink_job
from scripts.flink_cluster import PORTS

FEW = 200
SHARDS = 64
"""Several for each slot, since a slot gets whole shards, and by their hash."""

SETTINGS = ("images.reencode=always", f"shards.count={SHARDS}", "splits.fractions={train: 1.0}")
CONTENDERS = {
    "one slot": ("--parallelism=1", "--threads=1"),
    "two slots": ("--parallelism=2", "--sdk_worker_parallelism=2", "--threads=1"),
    "two threads": ("--parallelism=1", "--threads=2"),
}
TWO_SLOTS_TO_ONE = 1.5
SLOTS_TO_THREADS = 0.15
BYTES_EACH = 500


@dataclass(frozen=True, slots=True)
class Pair:
    """One contender's two runs in a round; converting is in seconds, by Flink's account."""

    whole: Run
    converting: float
    converting_few: float
    shuffled: int
    sent: int

    @property
    def throughput(self) -> float:
        """Photographs a second, start-up apart."""
        seconds = self.converting - self.converting_few
        if seconds <= 0:
            raise BenchmarkError("few photographs took as long as all: the machine is busy, or --count too small")
        return (self.whole.records - FEW) / seconds


def command(pipeline: list[str], flags: tuple[str, ...]) -> list[str]:
    """The whole command, without its places."""
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    place = [f"--job_endpoint=localhost:{PORTS['job']}", "--environment_type=EXTERNAL"]
    workers = [f"--environment_config=localhost:{PORTS['workers']}", "--environment_cache_millis=60000"]
    return [*pipeline, "--runner=PortableRunner", *place, *workers, *sets, *flags]


def both(words: list[str], inputs: Mapping[int, Path], count: int, work: Path) -> Pair:
    """Runs a contender on few photographs and on all."""
    measure.convert(words, inputs[FEW], FEW, work)
    few = flink_job.newest_job()
    whole = measure.convert(words, inputs[count], count, work)
    job = flink_job.newest_job()
    converting, converting_few = (flink_job.seconds_in(each, "ConvertShards") for each in (job, few))
    shuffled = flink_job.shuffled_bytes(job, "GroupByShard")
    return Pair(whole, converting, converting_few, shuffled, flink_job.sent_bytes(job))


def figures(count: int, rounds: Mapping[str, list[Pair]]) -> dict[str, Any]:
    """What was measured, as spreads over the rounds."""
    return {
        "contenders": {
            name: {
                "photographs_per_second_apart": spread(pair.throughput for pair in pairs),
                "seconds_converting": spread(pair.converting for pair in pairs),
                "seconds": spread(pair.whole.seconds for pair in pairs),
                "shuffled_bytes_each": spread(pair.shuffled / count for pair in pairs),
                "sent_bytes_each": spread(pair.sent / count for pair in pairs),
            }
            for name, pairs in rounds.items()
        },
        "two_slots_to_one": _ratio(rounds, "two slots", "one slot"),
        "two_threads_to_two_slots": _ratio(rounds, "two threads", "two slots"),
    }


def _ratio(rounds: Mapping[str, list[Pair]], one: str, other: str) -> dict[str, float]:
    return spread(a.throughput / b.throughput for a, b in zip(rounds[one], rounds[other], strict=True))


def missed(result: Mapping[str, Any]) -> list[str]:
    """Describes each target that is not reached."""
    slots, threads = result["two_slots_to_one"]["median"], result["two_threads_to_two_slots"]["median"]
    most = max(figure["shuffled_bytes_each"]["max"] for figure in result["contenders"].values())
    misses = []
    if slots < TWO_SLOTS_TO_ONE:
        misses.append(f"two slots give {slots:.2f} of one, the target is {TWO_SLOTS_TO_ONE}")
    if threads < 1 - SLOTS_TO_THREADS:
        misses.append(f"two threads give {threads:.2f} of two slots, the target is {1 - SLOTS_TO_THREADS:.2f}")
    if most > BYTES_EACH:
        misses.append(f"{math.ceil(most)} bytes are shuffled a photograph, {BYTES_EACH} are allowed")
    return misses


def table(count: int, result: Mapping[str, Any]) -> Table:
    """Lays out the medians."""
    shown = Table("", "images/s", "s in ConvertShards", "s in all", "shuffled B/image", title=f"{count:,} photographs")
    for name, figure in result["contenders"].items():
        medians = [figure[key]["median"] for key in figure]
        shown.add_row(name, f"{medians[0]:,.0f}", f"{medians[1]:.1f}", f"{medians[2]:.1f}", f"{medians[3]:.0f}")
    return shown


def main() -> None:
    """Runs the three in alternation."""
    parser = measure.options(__doc__)
    parser.add_argument("--count", type=int, default=4_000, help=f"photographs, more than {FEW} (%(default)s)")
    parser.add_argument("--pairs", type=int, default=3, help="rounds of all contenders (%(default)s)")
    arguments = parser.parse_args()
    make = partial(photographs.make, work=arguments.work, own=arguments.photographs)
    inputs = {number: make(number) for number in (FEW, arguments.count)}
    pipeline = [word for word in arguments.pipeline if not word.startswith("--runner=")]
    photographs.warm(inputs[arguments.count])
    contenders = {
        name: partial(both, command(pipeline, flags), inputs, arguments.count, arguments.work)
        for name, flags in CONTENDERS.items()
    }
    measure.convert(command(pipeline, CONTENDERS["two slots"]), inputs[FEW], FEW, arguments.work)  # warms up
    result = {
        "machine": {**measure.machine(), "load": measure.load()},
        "photographs": arguments.count,
        "pairs": arguments.pairs,
        **figures(arguments.count, measure.alternate(contenders, arguments.pairs)),
    }
    result["machine"]["load_after"] = measure.load()
    measure.console.print(table(arguments.count, result))
    for name in ("two_slots_to_one", "two_threads_to_two_slots"):
        ratio = result[name]
        least, median, most = (ratio[key] for key in ("min", "median", "max"))
        measure.console.print(f"{name.replace('_', ' ')}: {median:.2f} ({least:.2f} to {most:.2f})")
    measure.finish(result, missed(result), arguments.check)


if __name__ == "__main__":
    main()
