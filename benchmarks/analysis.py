"""Measures what an analysis of 50,000 images takes, without importing TensorFlow.

    python -m benchmarks.analysis --check

The sidecars are made up: an analysis reads nothing else, and never an image. The command itself
notes when its imports begin and end.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import measure
from recordmill.schemas.dataset.file_names import INDEX, MARKER, sidecar_name
from recordmill.schemas.dataset.json_values import as_json, to_json
from recordmill.schemas.dataset.marker import (
    PLAN_VERSION,
    DuplicateCounts,
    Fingerprint,
    Ledger,
    Marker,
    PlanEntry,
    SameBytes,
    ShardEntry,
    SplitEntry,
)

COUNT = 50_000
SHARDS = 20
TARGET = 20.0  # seconds without the imports


def write_dataset(folder: Path, count: int) -> None:
    """Writes a marker and sidecars of this many photographs, in the pipeline's form."""
    rng = np.random.default_rng(0)
    shards = []
    (folder / "sidecars").mkdir(parents=True)
    for shard, numbers in enumerate(np.array_split(np.arange(count), SHARDS)):
        name = f"train-{shard:05d}-of-{SHARDS:05d}.tfrecord"
        content = b"".join(_row(int(number), rng) for number in numbers)
        (folder / "sidecars" / f"{name}.jsonl").write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        shards.append(ShardEntry(name, len(numbers), 0, "", sidecar_name(name), digest))
    images = {"check": "decode", "moments": True}
    recipe = {
        "compression": "none",
        "images": images,
        "labels": {"catch_all": None},
        "plan_version": PLAN_VERSION,
    }
    marker = Marker(
        name="benchmark",
        plan=PlanEntry("benchmark", recipe),
        convention="default",
        unit="image",
        features={},
        labels={f"class{number:04d}": number for number in range(1_000)},
        splits={"train": SplitEntry(records=count, bytes=0, classes={}, shards=tuple(shards))},
        ledger=Ledger(count, count, {}, {}, {}),
        changes={},
        duplicates=DuplicateCounts(SameBytes(), None),
        input_bytes=0,
        output_bytes=0,
        files=(),
        index=INDEX,
        fingerprint=Fingerprint("0", {}, {}),
        notes=(),
    )
    (folder / MARKER).write_bytes(as_json(to_json(marker)))


def _row(number: int, rng: np.random.Generator) -> bytes:
    height, width = (int(side) for side in rng.integers(250, 650, 2))
    means = rng.uniform(40, 200, 3)
    moments = [
        [int(height * width * mean), int(height * width * (mean**2 + 3_000))] for mean in means
    ]
    label = number % 1_000
    row = {
        "key": f"class{label:04d}/{number:08d}.jpg",
        "bytes": 48_000 + number,
        "sha256": f"{number:064x}",
        "class": f"class{label:04d}",
        "label": label,
        "height": height,
        "width": width,
        "channels": 3,
        "moments": moments,
        "changes": [],
        "offset": 50_000 * number,
        "length": 48_500,
    }
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def main() -> None:
    """Analyzes the same rows anew, several times."""
    parser = measure.options(__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="images (%(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="how often (%(default)s)")
    arguments = parser.parse_args()
    runs = []
    for _ in range(arguments.runs):
        with tempfile.TemporaryDirectory(prefix="recordmill-benchmark-") as folder:
            write_dataset(Path(folder) / "dataset", arguments.count)
            command = [sys.executable, "-m", "pipeline.analyze", f"{folder}/dataset"]
            ended = subprocess.run(command, cwd=measure.ROOT, stdout=subprocess.PIPE, check=True)
        line = json.loads(ended.stdout)
        if line["images"] != arguments.count:
            raise measure.BenchmarkError(
                f"{line['images']:,} of {arguments.count:,} images were analyzed"
            )
        runs.append(line["seconds"])
    seconds = {
        name: measure.spread(run[name] for run in runs) for name in ("imports", "analysis", "total")
    }
    median = seconds["analysis"]["median"]
    measure.console.print(
        f"{median:.1f} s for {arguments.count:,} images beside the imports (target: at most "
        f"{TARGET:.0f} s)"
    )
    missed = (
        [f"{median:.1f} s beside the imports, {TARGET:.0f} s are allowed"]
        if median > TARGET
        else []
    )
    measure.finish(
        {"machine": measure.machine(), "images": arguments.count, "seconds": seconds},
        missed,
        arguments.check,
    )


if __name__ == "__main__":
    main()
