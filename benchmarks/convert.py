"""Compares the pipeline with programs that do the same job, side by side.

    python -m benchmarks.convert
    python -m benchmarks.convert --case reencode --case header --pairs 3 --check
    python -m benchmarks.convert --case strip_nothing --case strip_exif
    python -m benchmarks.convert --others --count 2000 --pairs 1

Each round runs every contender on all photographs and on a few, so that start-up can be set apart:
throughput apart is (all - few) / (seconds for all - seconds for few), throughput whole is all /
seconds for all. Both are taken of CPU seconds, by which targets are set, and of seconds by the
clock.
"""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import measure, photographs
from benchmarks.measure import BenchmarkError, Run, spread
from benchmarks.rivals.job import SHRUNK_SIDE

FEW = 100

OTHERS = (
    "tfds_builder",
    "recorder_flow",
    "local_img2dataset",
    "webdataset_writer",
    "ray_tfrecords",
)
"""Programs that need packages of their own (benchmarks/README.md)."""

OTHERS_PYTHON = measure.ROOT / ".venv-rivals/bin/python"

KINDS = {
    "cpu_whole": "CPU, start-up included",
    "cpu_apart": "CPU, start-up apart",
    "whole": "clock, start-up included",
    "apart": "clock, start-up apart",
}
"""Throughputs that are compared."""


@dataclass(frozen=True, slots=True)
class Target:
    """The least that our throughput may be of a rival's, as the median over all pairs."""

    rival: str
    kind: str
    least: float


@dataclass(frozen=True, slots=True)
class Case:
    """A job, the flags for the contenders, and what is expected of us."""

    count: int
    settings: Sequence[str]
    mode: str
    targets: Sequence[Target]
    mark: Callable[[bytes, int], bytes] = photographs.numbered
    size: tuple[int, int] = (500, 375)
    distinct: int = photographs.POOL

    @property
    def flags(self) -> list[str]:
        """The settings, for the pipeline's command."""
        return [word for setting in self.settings for word in ("--set", setting)]


_STRIP = ("images.check=header", "images.metadata=strip")

CASES = {
    "reencode": Case(
        4_000,
        ("images.reencode=always",),
        "reencode",
        (Target("two_processes", "cpu_apart", 1.1), Target("tensorflow_writer", "cpu_whole", 1.2)),
    ),
    "default": Case(4_000, (), "decode", (Target("two_processes", "cpu_apart", 1.35),)),
    "header": Case(
        20_000, ("images.check=header",), "copy", (Target("tensorflow_writer", "cpu_whole", 1.3),)
    ),
    # 12 megapixels, as of a phone. Few are distinct: encoding one takes seconds.
    "shrink": Case(
        400,
        (f"images.resize={{longest: {SHRUNK_SIDE}}}",),
        "shrink",
        (Target("two_processes", "cpu_apart", 0.97),),
        size=(4000, 3000),
        distinct=20,
    ),
    # Compared with the case `header` on the same photographs.
    "strip_nothing": Case(
        8_000, _STRIP, "copy", (Target("header", "cpu_apart", 0.95),), photographs.bare
    ),
    "strip_exif": Case(
        8_000, _STRIP, "copy", (Target("header", "cpu_apart", 0.95),), photographs.with_exif
    ),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """One contender's two runs in a round: on all photographs and on a few."""

    whole: Run
    few: Run

    def throughput(self, kind: str) -> float:
        """Returns photographs per second, for one of `KINDS`.

        It is NaN if few took as long as all, on a busy machine.

        Raises:
            BenchmarkError: few took as much CPU as all.
        """
        clock = "cpu_seconds" if kind.startswith("cpu") else "seconds"
        seconds, records = getattr(self.whole, clock), self.whole.records
        if kind.endswith("apart"):
            seconds, records = seconds - getattr(self.few, clock), records - self.few.records
        if seconds <= 0 and clock == "cpu_seconds":
            raise BenchmarkError("few photographs took as much CPU as all: --count is too small")
        return float(records / seconds) if seconds > 0 else math.nan


def compare(
    case: Case,
    pipeline: Sequence[str],
    count: int,
    pairs: int,
    make: Callable[[int], Path],
    work: Path,
    others: Sequence[str] = (),
) -> dict[str, Any]:
    """Runs a case on `make(count)` photographs, and returns its figures.

    Its output is below `work`.
    """
    commands = {"ours": [*pipeline, *case.flags]}
    for rival in dict.fromkeys((*(target.rival for target in case.targets), *others)):
        python = OTHERS_PYTHON if rival in OTHERS else sys.executable
        module = [str(python), "-m", f"benchmarks.rivals.{rival}", "--mode", case.mode]
        commands[rival] = [*pipeline, *CASES[rival].flags] if rival in CASES else module
    inputs = {number: make(number) for number in (count, FEW)}

    def both(command: Sequence[str]) -> Pair:
        few, whole = (
            measure.convert(command, inputs[number], number, work) for number in (FEW, count)
        )
        return Pair(whole, few)

    photographs.warm(inputs[count])
    for command in commands.values():  # a first start reads programs from the disk
        measure.convert(command, inputs[FEW], FEW, work)
    results = measure.alternate(
        {name: partial(both, command) for name, command in commands.items()}, pairs
    )
    return {
        "photographs": count,
        "pairs": pairs,
        "contenders": {name: figures(rounds) for name, rounds in results.items()},
        "ours_to": {
            rival: {
                kind: spread(
                    us.throughput(kind) / them.throughput(kind)
                    for us, them in zip(results["ours"], results[rival], strict=True)
                )
                for kind in KINDS
            }
            for rival in commands
            if rival != "ours"
        },
    }


def figures(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Returns the spreads of one contender's runs."""
    runs = [pair.whole for pair in pairs]
    working = [run.working for run in runs if run.working is not None]
    return {
        "seconds": spread(run.seconds for run in runs),
        "seconds_few": spread(pair.few.seconds for pair in pairs),
        "seconds_working_by_own_account": spread(working) if working else None,
        "cpu_seconds": spread(run.cpu_seconds for run in runs),
        "cpu_seconds_few": spread(pair.few.cpu_seconds for pair in pairs),
        "cpu_milliseconds_each": spread(1e3 / pair.throughput("cpu_apart") for pair in pairs),
        "cpus_busy_with_other_work": spread(run.others for run in runs),
        "peak_rss_mb": spread(run.peak_rss / 1e6 for run in runs),
        "photographs_per_second_whole": spread(pair.throughput("whole") for pair in pairs),
        "photographs_per_second_apart": spread(pair.throughput("apart") for pair in pairs),
        "output_bytes": runs[-1].size,
    }


def missed(name: str, case: Case, result: Mapping[str, Any]) -> list[str]:
    """Describes each target of the case that its result does not reach."""
    medians = {
        target: result["ours_to"][target.rival][target.kind]["median"] for target in case.targets
    }
    return [
        f"{name}: {ratio:.2f} of {target.rival} ({target.kind}), the target is {target.least:.2f}"
        for target, ratio in medians.items()
        if ratio < target.least
    ]


def table(name: str, result: Mapping[str, Any]) -> Table:
    """Lays out the medians of a case's figures."""
    title = (
        f"{name}: {result['photographs']:,} images, medians of {result['pairs']} alternating pairs"
    )
    headings = (
        "CPU ms each",
        f"CPU s of {FEW}",
        "CPU s",
        "peak MB",
        "MB written",
        "seconds",
        "others",
    )
    shown = Table("", *headings, title=title)
    for contender, figure in result["contenders"].items():
        medians = {key: value["median"] for key, value in figure.items() if isinstance(value, dict)}
        shown.add_row(
            contender,
            f"{medians['cpu_milliseconds_each']:.2f}",
            f"{medians['cpu_seconds_few']:.2f}",
            f"{medians['cpu_seconds']:.2f}",
            f"{medians['peak_rss_mb']:,.0f}",
            f"{figure['output_bytes'] / 1e6:,.0f}",
            f"{medians['seconds']:.2f}",
            f"{medians['cpus_busy_with_other_work']:.2f}",
        )
    return shown


def ratios(case: Case, result: Mapping[str, Any]) -> Table:
    """Lays out our throughput as a multiple of each rival's, pair by pair."""
    least = {(target.rival, target.kind): f"{target.least:.2f}" for target in case.targets}
    shown = Table("ours to", "by", "least", "median", "largest", "target")
    for rival, kinds in result["ours_to"].items():
        for kind, ratio in kinds.items():
            values = (f"{ratio[key]:.2f}" for key in ("min", "median", "max"))
            shown.add_row(rival, KINDS[kind], *values, least.get((rival, kind), ""))
    return shown


def main() -> None:
    """Runs the chosen cases."""
    parser = measure.options(__doc__)
    parser.add_argument(
        "--case", action="append", choices=sorted(CASES), help="a case to run (all)"
    )
    parser.add_argument("--count", type=int, help=f"photographs, more than {FEW} (400 to 20,000)")
    parser.add_argument(
        "--pairs", type=int, default=5, help="rounds of all contenders (%(default)s)"
    )
    parser.add_argument(
        "--others", action="store_true", help="compare with programs from .venv-rivals, too"
    )
    arguments = parser.parse_args()
    make = partial(photographs.make, work=arguments.work, own=arguments.photographs)
    results, misses = {}, []
    for name in arguments.case or CASES:
        case = CASES[name]
        count = arguments.count or case.count
        others = OTHERS if arguments.others else ()
        results[name] = compare(
            case,
            arguments.pipeline,
            count,
            arguments.pairs,
            partial(make, mark=case.mark, size=case.size, distinct=case.distinct),
            arguments.work,
            others,
        )
        measure.console.print(table(name, results[name]), ratios(case, results[name]))
        misses += missed(name, case, results[name])
    measure.finish({"machine": measure.machine(), "cases": results}, misses, arguments.check)


if __name__ == "__main__":
    main()
