"""Measures how close the price that a plan names is to that of the run.

    python -m benchmarks.price --collection shelves=exports/grocery --check

Collections are planned and run under three settings. Each collection is read with `--config auto`.
Without `--collection`, drawn photographs of several sizes are converted. The processor time is that
of the whole command; the bytes are counted in the files and by Beam, not by the launcher.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import frames, measure, photographs
from benchmarks.scale import SHUFFLE

WITHIN = 0.25
"""How far a run may be from its price."""

SETTINGS: Mapping[str, Sequence[str]] = {
    "header": ("--set", "images.check=header"),
    "default": (),
    "reencode": ("--set", "images.reencode=always"),
}

CHECKED = ("cpu_seconds", "bytes_read", "bytes_shuffled", "bytes_written")

DRAWN = {"small": (2_000, (64, 48)), "medium": (1_500, (500, 375)), "large": (300, (1_600, 1_200))}
"""Drawn photographs: how many, and their width and height."""


def count_shuffled(source: Path, flags: Sequence[str], work: Path) -> float:
    """The bytes of references that Beam counts, whatever happens to the images."""
    shutil.rmtree(work / "output", ignore_errors=True)
    try:
        run = measure.run(
            [sys.executable, "-m", "benchmarks.stages", *_places(source, flags, work)]
        )
        return float(run.summary["flows"][SHUFFLE]["bytes"])
    finally:
        shutil.rmtree(work / "output", ignore_errors=True)


def _places(source: Path, flags: Sequence[str], work: Path) -> Sequence[str]:
    places = (
        "--input",
        str(source),
        "--output",
        str(work / "output"),
        "--set",
        "max_rejected.share=1",
    )
    return (*places, *flags)


def compare(
    source: Path, flags: Sequence[str], work: Path, shuffled: float
) -> dict[str, dict[str, float]]:
    """What the plan of a collection predicts, and what its run costs.

    Raises:
        measure.BenchmarkError: a command fails, or its plan has no price.
    """
    output, places = work / "output", _places(source, flags, work)
    shutil.rmtree(output, ignore_errors=True)
    try:
        plan = measure.run([sys.executable, "-m", "pipeline.run", *places, "--plan", "--json"])
        if "price" not in plan.summary:
            raise measure.BenchmarkError(f"the plan of {source} has no price")
        run = measure.run([sys.executable, "-m", "pipeline.run", *places])
        measured = {
            "cpu_seconds": run.cpu_seconds,
            "memory": run.peak_rss,
            "bytes_read": json.loads((output / "recordmill.json").read_bytes())["input_bytes"],
            "bytes_shuffled": shuffled,
            "bytes_written": frames.count(output)[1],
            "minutes": run.seconds / 60,
        }
    finally:
        shutil.rmtree(output, ignore_errors=True)
    return {"predicted": dict(plan.summary["price"]["predicted"]), "measured": measured}


def missed(cases: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[str]:
    """Describes each prediction that is too far off."""
    misses = []
    for case, found in cases.items():
        for name in CHECKED:
            ratio = found["measured"][name] / found["predicted"][name]
            if abs(ratio - 1) > WITHIN:
                misses.append(f"{name} of {case} is {ratio:.2f} of what was predicted")
    return misses


def table(cases: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Table:
    """Lays out what was measured for each 1 that was predicted."""
    shown = Table("collection, images.", *CHECKED, title="measured / predicted")
    for case, found in cases.items():
        shown.add_row(
            case, *(f"{found['measured'][name] / found['predicted'][name]:.2f}" for name in CHECKED)
        )
    return shown


def _parse() -> argparse.Namespace:
    parser = measure.options(__doc__)
    parser.add_argument(
        "--collection", action="append", default=[], metavar="NAME=DIR", help="may be repeated"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting for all of them"
    )
    parser.add_argument(
        "--setting", action="append", choices=SETTINGS, help="only this one; may be repeated"
    )
    return parser.parse_args()


def main() -> None:
    """Plans and runs each collection under each setting."""
    arguments = _parse()
    work: Path = arguments.work.resolve()
    named = dict(each.split("=", 1) for each in arguments.collection)
    sources = {name: Path(path).resolve() for name, path in named.items()} or {
        name: photographs.make(count, work, arguments.photographs, size)
        for name, (count, size) in DRAWN.items()
    }
    cases: dict[str, Any] = {}
    more = [word for each in arguments.set for word in ("--set", each)]
    for name, source in sources.items():
        shuffled = count_shuffled(source, [*SETTINGS["header"], *more], work)
        for setting in arguments.setting or SETTINGS:
            cases[f"{name}, {setting}"] = found = compare(
                source, [*SETTINGS[setting], *more], work, shuffled
            )
            cpu = found["measured"]["cpu_seconds"], found["predicted"]["cpu_seconds"]
            measure.console.log(
                f"{name}, {setting}: {cpu[0]:.1f} s of CPU, {cpu[1]:.1f} s predicted"
            )
    measure.console.print(table(cases))
    measure.finish(
        {"machine": measure.machine(), "load": measure.load(), "cases": cases},
        missed(cases),
        arguments.check,
    )


if __name__ == "__main__":
    main()
