"""Measures what is left of the throughput if each read of an image takes 50 ms.

    python -m benchmarks.slow_reads --check

A store far away is this slow. The same photographs are converted by turns with 0 and with 50 ms a
read, each run in a process of its own that has registered a file system `slow://` over local files;
the seconds are those of the conversion, start-up apart.
"""

import os
import shutil
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import BinaryIO, ClassVar

from apache_beam.io.filesystem import CompressionTypes, MatchResult
from apache_beam.io.localfilesystem import LocalFileSystem

from benchmarks import measure, photographs

CASES = {
    "reencode": (["--set", "images.reencode=always"], 4000, 0.8),
    "pass-through": (["--set", "images.check=header"], 8000, 0.5),
}
DELAY = 0.05


class SlowFileSystem(LocalFileSystem):
    """Files of this machine at `slow:///path`, each of whose reads takes a while.

    Attributes:
        seconds: that a read takes.
        under_way: reads begun and not ended.
        most_under_way: so many there were at once.
    """

    seconds: ClassVar[float] = 0.0
    under_way: ClassVar[int] = 0
    most_under_way: ClassVar[int] = 0
    _lock: ClassVar[threading.Lock] = threading.Lock()

    @classmethod
    def scheme(cls) -> str:
        """The beginning of its URLs."""
        return "slow"

    def match(self, patterns: list[str], limits: list[int] | None = None) -> list[MatchResult]:
        """Finds files, no folders; their paths are URLs again."""
        found = super().match([each.removeprefix("slow://") for each in patterns], limits)
        for result in found:
            result.metadata_list = [
                file for file in result.metadata_list if os.path.isfile(file.path)
            ]
            for file in result.metadata_list:
                file.path = f"slow://{file.path}"
        return found

    def open(
        self, path: str, mime_type: str = "", compression_type: str = CompressionTypes.UNCOMPRESSED
    ) -> BinaryIO:
        """Opens a file; the one read of it that follows is paid for here."""
        kind = SlowFileSystem
        with kind._lock:
            kind.under_way += 1
            kind.most_under_way = max(kind.most_under_way, kind.under_way)
        time.sleep(kind.seconds)
        with kind._lock:
            kind.under_way -= 1
        return open(path.removeprefix("slow://"), "rb")


def convert(images: Path, output: Path, seconds: float, flags: list[str]) -> float:
    """Converts in this process, with so many seconds a read; gives how long it took.

    Raises:
        measure.BenchmarkError: if it fails.
    """
    from recordmill.pipeline.launch import launch
    from recordmill.pipeline.run import build

    SlowFileSystem.seconds = seconds
    shutil.rmtree(output, ignore_errors=True)
    begun = time.perf_counter()
    code = launch(
        [
            f"--input=slow://{images}",
            f"--output={output}",
            "--set=splits.fractions={train: 1}",
            *flags,
        ],
        build,
    )
    took = time.perf_counter() - begun
    shutil.rmtree(output, ignore_errors=True)
    if code:
        raise measure.BenchmarkError(f"the conversion ended with {code}")
    return took


def _convert_apart(images: Path, output: Path, seconds: float, case: str) -> float:
    program = (
        "import json, sys; from pathlib import Path; from benchmarks import slow_reads; "
        "images, output, seconds, case = sys.argv[1:]; "
        "took = slow_reads.convert(Path(images), Path(output), float(seconds), "
        "slow_reads.CASES[case][0]); "
        "print(json.dumps({'took': took}))"
    )
    words = [sys.executable, "-c", program, str(images), str(output), str(seconds), case]
    return float(measure.run(words).summary["took"])


def main() -> None:
    """Runs each case by turns."""
    parser = measure.options(__doc__)
    parser.add_argument("--case", action="append", choices=CASES, help="repeatable (both)")
    parser.add_argument("--count", type=int, help="photographs (by case)")
    parser.add_argument("--pairs", type=int, default=3, help="rounds of both (%(default)s)")
    arguments = parser.parse_args()
    result, missed = {}, []
    for case in arguments.case or CASES:
        _, count, target = CASES[case]
        count = arguments.count or count
        images = photographs.make(count, arguments.work, arguments.photographs).resolve()
        contenders = {
            name: partial(
                _convert_apart, images, arguments.work.resolve() / "output", seconds, case
            )
            for name, seconds in (("at once", 0.0), ("slow", DELAY))
        }
        rounds = measure.alternate(contenders, arguments.pairs)
        kept = measure.spread(
            fast / slow for fast, slow in zip(rounds["at once"], rounds["slow"], strict=True)
        )
        rates = {
            name: measure.spread(count / took for took in runs) for name, runs in rounds.items()
        }
        result[case] = {"count": count, "images_per_second": rates, "kept": kept}
        measure.console.print(
            f"{case}: {kept['median']:.2f} of the throughput is kept (target: {target})"
        )
        if kept["median"] < target:
            missed.append(f"{case}: {kept['median']:.2f}, {target} is the target")
    measure.finish(
        {"machine": measure.machine(), "delay": DELAY, "cases": result}, missed, arguments.check
    )


if __name__ == "__main__":
    main()
