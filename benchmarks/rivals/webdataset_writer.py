"""webdataset: its `ShardWriter` puts images into tar files of 1,000 images.

An image is stored with its class and its other values.
"""

import os
import time

import webdataset

from benchmarks.rivals import job


def main() -> None:
    """Converts the input folder."""
    arguments = job.arguments(__doc__)
    os.makedirs(arguments.output, exist_ok=True)
    started, items = time.perf_counter(), job.items(arguments.input)
    with webdataset.ShardWriter(
        f"{arguments.output}/train-%05d.tar", maxcount=1_000, verbose=0
    ) as writer:
        for item in items:
            values = job.features(item, arguments.mode)
            image = values.pop("image/encoded")
            others = {
                name: value.decode() if isinstance(value, bytes) else value
                for name, value in values.items()
            }
            writer.write(
                {
                    "__key__": os.path.splitext(item.name)[0],
                    "jpg": image,
                    "cls": item.label,
                    "json": others,
                }
            )
    size = sum(entry.stat().st_size for entry in os.scandir(arguments.output))
    job.report(len(items), size, time.perf_counter() - started)


if __name__ == "__main__":
    main()
