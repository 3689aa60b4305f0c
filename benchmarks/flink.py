"""Measures whether Flink scales, and what it shuffles.

    scripts/flink up
    python -m benchmarks.flink --check

Photographs are re-encoded with one slot, two slots, and one slot of two threads. Every round
converts the same photographs with each of the three, in worker processes. What is compared is the
time from the moment when every reference is on its way to its shard to the end of the last shard,
as Flink's own interface tells: no start-up is in it. Bytes are Flink's too.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import measure, photographs
from benchmarks.measure import Run, spread
from scripts import flink_job
from scripts.flink_cluster import PORTS

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
class Measured:
    """One run, with the seconds of `converting` and the bytes of the whole job.

    Both are by Flink's account; the seconds are without start-up.
    """

    whole: Run
    converting: float
    shuffled: int
    sent: int

    @property
    def throughput(self) -> float:
        """Photographs a second, start-up apart."""
        return self.whole.records / self.converting


def command(pipeline: list[str], flags: tuple[str, ...]) -> list[str]:
    """The whole command, without its places."""
    sets = [word for setting in SETTINGS for word in ("--set", setting)]
    place = [f"--job_endpoint=localhost:{PORTS['job']}", "--environment_type=EXTERNAL"]
    workers = [
        f"--environment_config=localhost:{PORTS['workers']}",
        "--environment_cache_millis=60000",
    ]
    return [*pipeline, "--runner=PortableRunner", *place, *workers, *sets, *flags]


def convert(words: list[str], images: Path, count: int, work: Path) -> Measured:
    """Converts the photographs once."""
    whole = measure.convert(words, images, count, work)
    job = flink_job.newest_job()
    converting = flink_job.seconds_between(job, "AssignShards", "ConvertShards")
    return Measured(
        whole, converting, flink_job.shuffled_bytes(job, "GroupByShard"), flink_job.sent_bytes(job)
    )


def figures(count: int, rounds: Mapping[str, list[Measured]]) -> dict[str, Any]:
    """What was measured, as spreads over the rounds."""
    return {
        "contenders": {
            name: {
                "photographs_per_second_apart": spread(run.throughput for run in runs),
                "seconds_converting": spread(run.converting for run in runs),
                "seconds": spread(run.whole.seconds for run in runs),
                "shuffled_bytes_each": spread(run.shuffled / count for run in runs),
                "sent_bytes_each": spread(run.sent / count for run in runs),
            }
            for name, runs in rounds.items()
        },
        "two_slots_to_one": _ratio(rounds, "two slots", "one slot"),
        "two_threads_to_two_slots": _ratio(rounds, "two threads", "two slots"),
    }


def _ratio(rounds: Mapping[str, list[Measured]], one: str, other: str) -> dict[str, float]:
    return spread(
        a.throughput / b.throughput for a, b in zip(rounds[one], rounds[other], strict=True)
    )


def missed(result: Mapping[str, Any]) -> list[str]:
    """Describes each target that is not reached."""
    slots, threads = (
        result["two_slots_to_one"]["median"],
        result["two_threads_to_two_slots"]["median"],
    )
    most = max(figure["shuffled_bytes_each"]["max"] for figure in result["contenders"].values())
    misses = []
    if slots < TWO_SLOTS_TO_ONE:
        misses.append(f"two slots give {slots:.2f} of one, the target is {TWO_SLOTS_TO_ONE}")
    if threads < 1 - SLOTS_TO_THREADS:
        misses.append(
            f"two threads give {threads:.2f} of two slots, the target is {1 - SLOTS_TO_THREADS:.2f}"
        )
    if most > BYTES_EACH:
        misses.append(
            f"{math.ceil(most)} bytes are shuffled a photograph, {BYTES_EACH} are allowed"
        )
    return misses


def table(count: int, result: Mapping[str, Any]) -> Table:
    """Lays out the medians."""
    shown = Table(
        "",
        "images/s",
        "s in ConvertShards",
        "s in all",
        "shuffled B/image",
        title=f"{count:,} photographs",
    )
    for name, figure in result["contenders"].items():
        medians = [figure[key]["median"] for key in figure]
        shown.add_row(
            name,
            f"{medians[0]:,.0f}",
            f"{medians[1]:.1f}",
            f"{medians[2]:.1f}",
            f"{medians[3]:.0f}",
        )
    return shown


def main() -> None:
    """Runs the three in alternation."""
    parser = measure.options(__doc__)
    parser.add_argument("--count", type=int, default=4_000, help="photographs (%(default)s)")
    parser.add_argument(
        "--pairs", type=int, default=3, help="rounds of all contenders (%(default)s)"
    )
    arguments = parser.parse_args()
    images = photographs.make(arguments.count, arguments.work, arguments.photographs)
    photographs.warm(images)
    pipeline = [word for word in arguments.pipeline if not word.startswith("--runner=")]
    load = measure.load()
    contenders = {
        name: partial(convert, command(pipeline, flags), images, arguments.count, arguments.work)
        for name, flags in CONTENDERS.items()
    }
    result = {
        "machine": {**measure.machine(), "load_before": load},
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
