"""Ray Data: a map over the files on all processors, then `write_tfrecords`."""

import os
import time
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

import ray

from benchmarks.rivals import job


def record(row: dict[str, Any], mode: str) -> job.Features:
    """The record of a file."""
    return job.features(job.Item(**row), mode)


def main() -> None:
    """Converts the input folder."""
    arguments = job.arguments(__doc__)
    # Without a dashboard, and with paths of this checkout: workers start in another folder.
    ray.init(
        num_cpus=os.cpu_count(),
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.getcwd()}},
    )
    started, items = time.perf_counter(), job.items(os.path.abspath(arguments.input))
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = ray.data.from_items(
        [item._asdict() for item in items], override_num_blocks=4 * (os.cpu_count() or 1)
    )
    rows.map(record, fn_args=(arguments.mode,)).write_tfrecords(os.path.abspath(arguments.output))
    size = sum(entry.stat().st_size for entry in os.scandir(arguments.output))
    job.report(len(items), size, time.perf_counter() - started)
    ray.shutdown()


if __name__ == "__main__":
    main()
