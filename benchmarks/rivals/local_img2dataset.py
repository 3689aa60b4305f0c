"""img2dataset on local files.

It reads a table of `file://` addresses and labels, and writes webdataset's tar files in two
processes. Its TFRecord writer needs tensorflow-io, which has no release for current TensorFlow.
"""

import csv
import glob
import os
import tempfile
import time
from pathlib import Path

os.environ["NO_ALBUMENTATIONS_UPDATE"] = (
    "1"  # importing it would ask for a newer version over the network
)

import img2dataset

from benchmarks.rivals import job

MODES = {
    "reencode": {},
    "decode": {"skip_reencode": True},
    "copy": {"disable_all_reencoding": True, "extract_exif": False},
}


def main() -> None:
    """Converts the input folder."""
    arguments = job.arguments(__doc__)
    started, items = time.perf_counter(), job.items(os.path.abspath(arguments.input))
    with tempfile.TemporaryDirectory() as folder:
        table = f"{folder}/files.csv"
        with open(table, "w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(["url", "label", "filename"])
            lines.writerows([Path(item.path).as_uri(), item.label, item.name] for item in items)
        img2dataset.download(
            table,
            output_folder=arguments.output,
            output_format="webdataset",
            input_format="csv",
            save_additional_columns=["label", "filename"],
            resize_mode="no",
            encode_quality=95,
            processes_count=os.cpu_count(),
            thread_count=16,
            number_sample_per_shard=1_000,
            **MODES[arguments.mode],
        )
    size = sum(map(os.path.getsize, glob.glob(f"{arguments.output}/*.tar")))
    job.report(len(items), size, time.perf_counter() - started)


if __name__ == "__main__":
    main()
