"""Compares an update of a dataset with a rebuild, side by side.

    python -m benchmarks.update --check
    python -m benchmarks.update --images 2000 --pairs 3 --case default

Photographs become a dataset. Then 200 are added, 100 removed and 100 changed (fewer with
`--images`), and each round converts what there is then, once with `--reuse` and once without. Both
also convert 100 photographs, so that start-up can be set apart. Before that, an update whose
unchanged photographs consist of zeros shows that none of them is read.
"""

import hashlib
import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks import measure, photographs
from benchmarks.measure import BenchmarkError, Run, spread

FEW = 100
IMAGES = 20_000
NOT_COMPARED = {"recordmill.json", "records.versions", "config.yaml"}
"""Files of a dataset that say something of its run."""


@dataclass(frozen=True, slots=True)
class Case:
    """Settings, and the most that an update may cost of a rebuild, in CPU seconds.

    None means no target.
    """

    settings: Sequence[str]
    apart: float
    whole: float | None = None


CASES = {
    "reencode": Case(("images.reencode=always",), 0.15, 0.35),
    "default": Case((), 0.40, 0.75),
    "header": Case(("images.check=header",), 1.1),
}


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection before and after its edits.

    Attributes:
        before: its folder.
        after: the folder with the edits.
        emptied: the same, and what has not changed is zeros of the same size and time.
        edits: photographs that are new or changed.
        images: photographs there are afterwards.
    """

    before: Path
    after: Path
    emptied: Path
    edits: int
    images: int


def edit(images: int, make: Callable[[int], Path], work: Path) -> Collection:
    """Makes a collection of so many photographs, and edits one in fifty of them."""
    changed = removed = images // 200
    added = 2 * changed
    pool = sorted(make(images + added + changed).rglob("*.jpg"), key=lambda path: path.name)
    folders = [work / "update" / name for name in ("before", "after", "emptied")]
    shutil.rmtree(work / "update", ignore_errors=True)
    for number, path in enumerate(pool[: images + added]):
        is_new = number >= images
        is_changed = number < changed
        for folder in folders:
            target = folder / path.parent.name / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            if folder == folders[0]:
                if not is_new:
                    os.link(path, target)
            elif is_changed:
                os.link(pool[images + added + number], target)
            elif number >= changed + removed:
                if folder == folders[1] or is_new:
                    os.link(path, target)
                else:
                    _write_zeros(target, path)
    before, after, emptied = folders
    return Collection(before, after, emptied, added + changed, images + added - removed)


def _write_zeros(target: Path, path: Path) -> None:
    status = path.stat()
    with target.open("wb") as file:
        file.truncate(status.st_size)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def digests(dataset: Path) -> dict[str, str]:
    """Returns the SHA-256 of each file that is the same for the same dataset.

    The marker is digested without its run.
    """
    files = (path for path in dataset.rglob("*") if path.is_file())
    contents = {
        str(path.relative_to(dataset)): path.read_bytes()
        for path in files
        if path.name not in NOT_COMPARED
    }
    marker = {key: value for key, value in _marker(dataset).items() if key != "run"}
    contents["recordmill.json"] = json.dumps(marker).encode()
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}


def _marker(dataset: Path) -> dict[str, Any]:
    marker: dict[str, Any] = json.loads((dataset / "recordmill.json").read_bytes())
    return marker


def check(pipeline: Sequence[str], collection: Collection, work: Path) -> dict[str, Any]:
    """Makes the dataset to reuse, and checks that an update gives a rebuild's bytes.

    It also checks how many images the update decoded.

    Raises:
        BenchmarkError: it gives others.
    """
    earlier, rebuilt, updated = (
        work / f"dataset-{name}" for name in ("earlier", "rebuilt", "updated")
    )
    for output in (earlier, rebuilt, updated):
        shutil.rmtree(output, ignore_errors=True)
    command = [*pipeline, "--set", "report=false"]  # the report shows changed images as they were
    measure.run([*command, "--input", str(collection.before), "--output", str(earlier)])
    measure.run([*command, "--input", str(collection.after), "--output", str(rebuilt)])
    measure.run(
        [
            *command,
            "--reuse",
            str(earlier),
            "--input",
            str(collection.emptied),
            "--output",
            str(updated),
        ]
    )
    one, other = digests(updated), digests(rebuilt)
    if differ := sorted(
        name for name in one.keys() | other.keys() if one.get(name) != other.get(name)
    ):
        raise BenchmarkError(f"an update gives other files than a rebuild: {', '.join(differ[:5])}")
    marker = _marker(updated)
    decoded = marker["ledger"]["written"] - marker["run"]["images_reused"]
    if decoded != collection.edits:
        raise BenchmarkError(
            f"{decoded} images were converted, and {collection.edits} are new or changed"
        )
    return {"files_compared": len(one), "converted": decoded}


@dataclass(frozen=True, slots=True)
class Round:
    """The two runs of one way in a round: on all photographs and on a few."""

    all: Run
    few: Run

    @property
    def apart(self) -> float:
        """CPU seconds without start-up."""
        return self.all.cpu_seconds - self.few.cpu_seconds


def compare(
    case: Case, pipeline: Sequence[str], collection: Collection, few: Path, pairs: int, work: Path
) -> Any:
    """Runs a case and returns its figures."""
    command = [*pipeline, *(word for setting in case.settings for word in ("--set", setting))]
    proof = check(command, collection, work)
    earlier, earlier_few = work / "dataset-earlier", work / "dataset-few"
    shutil.rmtree(earlier_few, ignore_errors=True)
    measure.run([*command, "--input", str(few), "--output", str(earlier_few)])

    def both(reuse: bool) -> Round:
        flags = [["--reuse", str(dataset)] if reuse else [] for dataset in (earlier_few, earlier)]
        small = measure.convert([*command, *flags[0]], few, FEW, work)
        return Round(
            measure.convert([*command, *flags[1]], collection.after, collection.images, work), small
        )

    rounds = measure.alternate(
        {"rebuild": partial(both, False), "update": partial(both, True)}, pairs
    )
    turns = [*zip(rounds["update"], rounds["rebuild"], strict=True)]
    return {
        **proof,
        "pairs": pairs,
        "apart": _upper_quartile([update.apart / rebuild.apart for update, rebuild in turns]),
        "whole": _upper_quartile(
            [update.all.cpu_seconds / rebuild.all.cpu_seconds for update, rebuild in turns]
        ),
        "cpu_seconds": {
            name: spread(each.all.cpu_seconds for each in runs) for name, runs in rounds.items()
        },
        "cpu_seconds_few": {
            name: spread(each.few.cpu_seconds for each in runs) for name, runs in rounds.items()
        },
        "cpus_busy_with_other_work": spread(
            each.all.others for runs in rounds.values() for each in runs
        ),
    }


def _upper_quartile(ratios: Sequence[float]) -> dict[str, float]:
    quartile = (
        statistics.quantiles(ratios, n=4, method="inclusive")[2] if len(ratios) > 1 else ratios[0]
    )
    return {**spread(ratios), "upper_quartile": round(quartile, 4)}


def missed(name: str, result: Mapping[str, Any]) -> list[str]:
    """Describes each target of a case that its result does not reach."""
    case = CASES[name]
    return [
        f"{name}: {result[kind]['upper_quartile']:.2f} of a rebuild ({kind}), the target is "
        f"{most:.2f}"
        for kind, most in (("apart", case.apart), ("whole", case.whole))
        if most is not None and result[kind]["upper_quartile"] > most
    ]


def table(results: Mapping[str, Any], images: int) -> Table:
    """Lays the figures out."""
    title = f"{images:,} photographs: CPU seconds of an update to those of a rebuild"
    shown = Table(
        "", "update s", "rebuild s", "apart", "target", "whole", "target", "others", title=title
    )
    for name, result in results.items():
        case = CASES[name]
        seconds = (f"{result['cpu_seconds'][way]['median']:.1f}" for way in ("update", "rebuild"))
        apart, whole = (f"{result[kind]['upper_quartile']:.2f}" for kind in ("apart", "whole"))
        most = "" if case.whole is None else f"{case.whole:.2f}"
        others = f"{result['cpus_busy_with_other_work']['median']:.2f}"
        shown.add_row(name, *seconds, apart, f"{case.apart:.2f}", whole, most, others)
    return shown


def main() -> None:
    """Runs the chosen cases."""
    parser = measure.options(__doc__)
    parser.add_argument(
        "--case", action="append", choices=sorted(CASES), help="a case to run (all)"
    )
    parser.add_argument(
        "--images", type=int, default=IMAGES, help=f"photographs, at least {2 * FEW} (%(default)s)"
    )
    parser.add_argument("--pairs", type=int, default=9, help="rounds of both (%(default)s)")
    arguments = parser.parse_args()
    if arguments.images < 2 * FEW:
        sys.exit(f"--images must be at least {2 * FEW}")
    make = partial(photographs.make, work=arguments.work, own=arguments.photographs)
    collection, few, results = edit(arguments.images, make, arguments.work), make(FEW), {}
    photographs.warm(collection.after)
    for name in arguments.case or CASES:
        results[name] = compare(
            CASES[name], arguments.pipeline, collection, few, arguments.pairs, arguments.work
        )
    measure.console.print(table(results, arguments.images))
    misses = [miss for name, result in results.items() for miss in missed(name, result)]
    measure.finish(
        {"machine": measure.machine(), "images": arguments.images, "cases": results},
        misses,
        arguments.check,
    )


if __name__ == "__main__":
    main()
