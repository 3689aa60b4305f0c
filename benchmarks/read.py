"""Compares `recordmill.open` with bare reads, `recordmill.load` and other PyTorch readers.

    python -m benchmarks.read --check

The other readers are those of other packages. `random` reads 10,000 of a million records by random
numbers, each with its checksums, in turns with `os.pread` of the same ranges. `epoch` is a shuffled
epoch of photographs, decoded, in batches of 32, in PyTorch with two workers: CPU seconds an image,
of processes that take turns. It needs the environment that `make test-interop` makes.
"""

import os
import random
import statistics
import tarfile
import time
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

from rich.table import Table

import recordmill
from benchmarks import measure, photographs
from benchmarks.load import make_dataset
from benchmarks.measure import ROOT, BenchmarkError, Run, spread
from recordmill.reading.split_index import write_indexes
from recordmill.storage.tfrecord_file import RecordSink

RECORDS, READS, COUNT = 1_000_000, 10_000, 20_000
TARGETS = {"pread": 5.0, "load": 1.1, "webdataset": 1.0, "tfrecord": 1.0}
READERS = ("ours", "load", "webdataset", "tfrecord")


def make_records(work: Path, count: int) -> Path:
    """A file of `count` records of 600 to 1,400 bytes, made unless it is there already."""
    path = work / f"records-{count}.tfrecord"
    if not path.exists():
        draw, unfinished = random.Random(1), path.with_suffix(".unfinished")
        sink = RecordSink(str(unfinished), "none")
        for _ in range(count):
            sink.write(draw.randbytes(draw.randint(600, 1400)))
        sink.close()
        unfinished.rename(path)
    return path


def read_at_random(path: Path, reads: int, rounds: int = 5) -> dict[str, Any]:
    """Compares random reads of records with bare reads of their ranges.

    Returns the median microseconds of each in alternating rounds, and their ratios.
    """
    records = recordmill.open(str(path), form="raw")[path.stem]
    numbers = random.Random(2).sample(range(len(records)), reads)
    ranges = [
        (int(records.places.entries[n, 1]) + 16, int(records.places.entries[n, 0])) for n in numbers
    ]
    file, clock, medians = os.open(path, os.O_RDONLY), time.perf_counter, []
    for _ in range(rounds):
        times: tuple[list[float], list[float]] = ([], [])
        for length, offset in ranges:
            start = clock()
            os.pread(file, length, offset)
            times[0].append(clock() - start)
        for number in numbers:
            start = clock()
            records[number]
            times[1].append(clock() - start)
        medians.append(tuple(statistics.median(each) * 1e6 for each in times))
    os.close(file)
    return {
        "records": len(records),
        "microseconds": {
            "pread": spread(bare for bare, _ in medians),
            "ours": spread(own for _, own in medians),
        },
        "to_pread": spread(ours / bare for bare, ours in medians),
    }


def make_tars(folder: Path, tars: Path, indexes: Path) -> None:
    """Makes tar files for webdataset, and index files for the package tfrecord.

    The dataset's images go into eight tar files.
    """
    if not tars.exists():
        unfinished = tars.with_name(f"{tars.name}.unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        records = recordmill.open(str(folder), form="numpy")["train"]
        for tar in range(8):
            with tarfile.open(unfinished / f"{tar}.tar", "w") as file:
                for number in range(tar, len(records), 8):
                    values = records[number]
                    parts = {
                        "jpg": values["image/encoded"][0],
                        "cls": b"%d" % values["image/class/label"][0],
                    }
                    for suffix, content in parts.items():
                        member = tarfile.TarInfo(f"{number:06}.{suffix}")
                        member.size = len(content)
                        file.addfile(member, BytesIO(content))
        unfinished.rename(tars)
    write_indexes(recordmill.open_dataset(str(folder)), str(indexes))


def feed(python: str, reader: str, places: Sequence[Path], count: int) -> Run:
    """Runs a reader.

    Raises:
        BenchmarkError: it did not deliver every image.
    """
    run = measure.run([python, "-m", "benchmarks.feed_torch", reader, *map(str, places)])
    if run.summary.get("records") != count:
        raise BenchmarkError(f"{reader} delivered {run.summary.get('records')} images of {count}")
    return run


def compare(python: str, places: Sequence[Path], count: int, pairs: int) -> dict[str, Any]:
    """Runs all readers in alternation, and returns their figures.

    A ratio is ours to the other's CPU seconds in the same round.
    """
    results = measure.alternate(
        {name: partial(feed, python, name, places, count) for name in READERS}, pairs
    )
    seconds = {
        name: [run.summary["cpu_seconds_working"] for run in runs] for name, runs in results.items()
    }

    def quartile(values: Sequence[float]) -> float:
        return round(
            statistics.quantiles(values, n=4, method="inclusive")[0]
            if len(values) > 1
            else values[0],
            3,
        )

    ratios = {
        name: [us / them for us, them in zip(seconds["ours"], seconds[name], strict=True)]
        for name in READERS
    }
    return {
        "photographs": count,
        "pairs": pairs,
        "cpu_milliseconds_an_image": {
            name: spread(1000 * own / count for own in seconds[name]) for name in READERS
        },
        "cpus_busy_with_other_work": {
            name: spread(run.others for run in runs) for name, runs in results.items()
        },
        "by_cpu": {
            name: {"lower_quartile": quartile(ratios[name]), **spread(ratios[name])}
            for name in READERS[1:]
        },
    }


def table(found: dict[str, float]) -> Table:
    """Lays the ratios out."""
    shown = Table("ours to", "ratio", "target")
    for name, ratio in found.items():
        shown.add_row(name, f"{ratio:.2f}", f"{TARGETS[name]:.1f}")
    return shown


def main() -> None:
    """Runs the chosen cases."""
    parser = measure.options(__doc__)
    parser.add_argument(
        "--case", action="append", choices=("random", "epoch"), help="a case to run (both)"
    )
    parser.add_argument(
        "--records", type=int, default=RECORDS, help="records of `random` (%(default)s)"
    )
    parser.add_argument(
        "--count", type=int, default=COUNT, help="photographs of `epoch` (%(default)s)"
    )
    parser.add_argument("--pairs", type=int, default=9, help="rounds of all readers (%(default)s)")
    parser.add_argument(
        "--torch",
        default=str(ROOT / ".venv-interop/bin/python"),
        help="the Python that has PyTorch",
    )
    arguments = parser.parse_args()
    cases, results, found = arguments.case or ["random", "epoch"], {}, {}
    arguments.work.mkdir(parents=True, exist_ok=True)
    if "random" in cases:
        results["random"] = read_at_random(make_records(arguments.work, arguments.records), READS)
        found["pread"] = results["random"]["to_pread"]["median"]
    if "epoch" in cases:
        images = photographs.make(arguments.count, arguments.work, arguments.photographs)
        folder = make_dataset(arguments.pipeline, images, arguments.work)
        tars, indexes = (folder.with_name(f"{kind}-{folder.name}") for kind in ("tars", "indexes"))
        make_tars(folder, tars, indexes)
        results["epoch"] = compare(
            arguments.torch, (folder, tars, indexes), arguments.count, arguments.pairs
        )
        found |= {
            name: ratio["lower_quartile"] for name, ratio in results["epoch"]["by_cpu"].items()
        }
    measure.console.print(table(found))
    missed = [
        f"{name}: {ratio:.2f}, the target is {TARGETS[name]}"
        for name, ratio in found.items()
        if ratio > TARGETS[name]
    ]
    measure.finish({"machine": measure.machine(), "cases": results}, missed, arguments.check)


if __name__ == "__main__":
    main()
