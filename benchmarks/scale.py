"""Measures whether the pipeline's cost grows in a straight line.

    python -m benchmarks.scale --check

What 10,000 and 100,000 references cost predicts a million. The input is small JPEGs in 100 class
folders: listing a million files costs what it costs, whatever is in them. Shards hold as many
images as shards of 128 MiB hold photographs of 108 KB. First the small sizes are run, and lines
fitted through their medians; then the prediction for the large sizes is written to a file; then
these are run and compared. What real photographs cost in each stage is measured besides.
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
from benchmarks.scale_model import Figures, Line, fit_all, predict

SIZE = (64, 48)
CLASSES = 100
IMAGES_A_SHARD = 1_200
WITHIN = 0.25
"""How far what is measured may be from what was predicted."""

CHECKED = ("seconds", "cpu_seconds", "peak_rss", "marker_bytes", "plan_bytes")
QUIET = 0.3
"""Processors that others may have kept busy where seconds by the clock are to mean anything."""

SHUFFLE, PLAN = "Convert/ShuffleReferences/GroupByShard", "Convert/PlanShards/Map(plan_dataset)"
REPORTS = "Convert/PublishDataset/GatherReports/InjectDefault"
KEEPING = "MALLOC_MMAP_THRESHOLD_=1048576"
"""glibc gives buffers back at once from a size on, which it raises, as they come, up to 32 MB: runs
of 100,000 references would keep buffers that runs of a million give back. Memory is a straight line
only where that size stays."""

STAGED = (
    "env",
    KEEPING,
    sys.executable,
    "-m",
    "benchmarks.stages",
    "--config",
    "configs/class_folders.yaml",
)

PHOTOGRAPH_CASES = {
    "header": ["--set", "images.check=header"],
    "default": [],
    "reencode": ["--set", "images.reencode=always"],
}


def run_once(images: Path, count: int, work: Path, flags: Sequence[str]) -> dict[str, float]:
    """Converts so many images, and gives what it cost.

    Raises:
        measure.BenchmarkError: if it fails, or its files do not hold a record for each image.
    """
    output = work / "output"
    shutil.rmtree(output, ignore_errors=True)
    # A million files read from the disk would cost more CPU each than 10,000 from memory.
    photographs.warm(images)
    try:
        whole = measure.run([*STAGED, *flags, "--input", str(images), "--output", str(output)])
        marker = output / "recordmill.json"
        records, size = frames.count(output)
        if records != count:
            raise measure.BenchmarkError(f"{records} records for {count} images")
        sidecars = sum(path.stat().st_size for path in (output / "sidecars").glob("*.jsonl"))
        shards = sum(
            len(split["shards"]) for split in json.loads(marker.read_bytes())["splits"].values()
        )
        marker_bytes = marker.stat().st_size
    finally:
        shutil.rmtree(output, ignore_errors=True)
    stages, flows = whole.summary["stages"], whole.summary["flows"]
    return {
        "seconds": whole.seconds,
        "cpu_seconds": whole.cpu_seconds,
        "peak_rss": whole.peak_rss,
        "marker_bytes": marker_bytes,
        "plan_bytes": flows[PLAN]["bytes"],
        "shuffled_bytes": flows[SHUFFLE]["bytes"],
        "report_bytes": flows[REPORTS]["bytes"],
        "record_bytes": size,
        "sidecar_bytes": sidecars,
        "shards": shards,
        "others": whole.others,
        **{f"{stage}_cpu": cost["cpu"] for stage, cost in stages.items()},
        **{f"{stage}_read": cost["read"] for stage, cost in stages.items()},
        **{f"{stage}_written": cost["written"] for stage, cost in stages.items()},
        **{f"{stage}_rss": cost["peak_rss"] for stage, cost in stages.items()},
    }


def small_flags(images: Path) -> list[str]:
    """Settings by which a shard holds as many small images as one of photographs would."""
    some = [path.stat().st_size for path in sorted((images / "class_00").iterdir())[:200]]
    return ["--set", f"shards.size={round(IMAGES_A_SHARD * sum(some) / len(some))}B"]


def ratios(predicted: Figures, measured: Figures) -> dict[str, float]:
    """What was measured for each 1 that was predicted."""
    return {name: round(measured[name] / predicted[name], 3) for name in CHECKED}


def missed(compared: Mapping[int, Figures], busy: Mapping[int, float]) -> list[str]:
    """Describes each prediction that was wrong.

    Seconds by the clock count only where no one else was at work.
    """
    misses = []
    for count, figures in compared.items():
        for name, ratio in figures.items():
            if name == "seconds" and max(busy.values()) > QUIET:
                continue
            if abs(ratio - 1) > WITHIN:
                misses.append(
                    f"{name} of {count:,} references is {ratio:.2f} of what was predicted"
                )
    return misses


def photograph_costs(count: int, work: Path, own: Path | None) -> dict[str, dict[str, float]]:
    """Returns what a photograph costs in the stage that converts, by case.

    The costs are CPU seconds and bytes, without start-up.
    """
    few = count // 10
    found = {}
    for case, flags in PHOTOGRAPH_CASES.items():
        less, more = (
            run_once(photographs.make(each, work, own), each, work, flags) for each in (few, count)
        )
        names = (
            "converting_cpu",
            "converting_read",
            "converting_written",
            "record_bytes",
            "sidecar_bytes",
        )
        found[case] = {name: (more[name] - less[name]) / (count - few) for name in names}
        found[case]["others"] = max(less["others"], more["others"])
        measure.console.log(
            f"photographs, {case}: {found[case]['converting_cpu'] * 1e3:.2f} ms of CPU each"
        )
    return found


def line_table(lines: Mapping[str, Line]) -> Table:
    """Lays out what is fixed and what each reference costs."""
    shown = Table("", "fixed", "a reference", title="fitted")
    for name, line in lines.items():
        shown.add_row(name, f"{line.fixed:,.3f}", f"{line.each:.3g}")
    return shown


def comparison_table(predicted: Mapping[int, Figures], measured: Mapping[int, Figures]) -> Table:
    """Shows predictions next to measurements."""
    shown = Table(
        "references",
        "",
        "predicted",
        "measured",
        "measured / predicted",
        title="predicted, then measured",
    )
    for count, figures in measured.items():
        for name in CHECKED:
            before, after = predicted[count][name], figures[name]
            shown.add_row(
                f"{count:,}", name, f"{before:,.1f}", f"{after:,.1f}", f"{after / before:.2f}"
            )
    return shown


def _parse() -> argparse.Namespace:
    parser = measure.options(__doc__)
    parser.add_argument(
        "--fit", type=int, nargs="+", default=[10_000, 100_000], help="small sizes (%(default)s)"
    )
    parser.add_argument(
        "--predict", type=int, nargs="+", default=[300_000, 1_000_000], help="large (%(default)s)"
    )
    parser.add_argument(
        "--runs", type=int, default=3, help="how often each small size is run (%(default)s)"
    )
    parser.add_argument(
        "--photographs_count",
        type=int,
        default=2_000,
        help="real photographs (%(default)s); 0: none",
    )
    parser.add_argument(
        "--prediction", type=Path, metavar="FILE", help="where the prediction goes (in --work)"
    )
    return parser.parse_args()


def main() -> None:
    """Runs the small sizes, predicts, runs the large ones."""
    arguments = _parse()
    work: Path = arguments.work.resolve()
    load = measure.load()

    def run(count: int) -> dict[str, float]:
        images = photographs.make(count, work, arguments.photographs, SIZE, CLASSES)
        figures = run_once(images, count, work, small_flags(images))
        seconds, cpu, memory = figures["seconds"], figures["cpu_seconds"], figures["peak_rss"] / 1e6
        measure.console.log(
            f"{count:,} references: {seconds:.1f} s, {cpu:.1f} s of CPU, {memory:.0f} MB"
        )
        return figures

    fitted = {count: [run(count) for _ in range(arguments.runs)] for count in sorted(arguments.fit)}
    lines = fit_all(
        {count: [_positive(figures) for figures in runs] for count, runs in fitted.items()}
    )
    predicted = {count: predict(lines, count) for count in sorted(arguments.predict)}
    prediction: Path = arguments.prediction or work / "scale-prediction.json"
    prediction.write_text(
        json.dumps({"fitted_on": sorted(fitted), "predicted": predicted}, indent=2)
    )
    measure.console.print(line_table(lines))
    measure.console.log(f"the prediction is in {prediction}; now it is tried")
    measured = {count: run(count) for count in sorted(arguments.predict)}
    measure.console.print(comparison_table(predicted, measured))
    compared = {count: ratios(predicted[count], figures) for count, figures in measured.items()}
    busy = {count: max(run["others"] for run in runs) for count, runs in fitted.items()}
    busy |= {count: figures["others"] for count, figures in measured.items()}
    if max(busy.values()) > QUIET:
        measure.console.print(
            "seconds by the clock are not checked: others kept the processors busy"
        )
    result: dict[str, Any] = {
        "machine": {**measure.machine(), "load_before": load, "load_after": measure.load()},
        "cpus_busy_with_other_work": busy,
        "lines": {name: [line.fixed, line.each] for name, line in lines.items()},
        "fitted": fitted,
        "predicted": predicted,
        "measured": measured,
        "measured_to_predicted": compared,
    }
    if arguments.photographs_count:
        result["photographs"] = photograph_costs(
            arguments.photographs_count, work, arguments.photographs
        )
    measure.finish(result, missed(compared, busy), arguments.check)


def _positive(figures: Figures) -> dict[str, float]:
    """Those figures by which a line can be fitted: what a stage did not do has none."""
    return {name: value for name, value in figures.items() if value > 0 and name != "others"}


if __name__ == "__main__":
    main()
