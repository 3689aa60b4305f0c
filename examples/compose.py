"""Recordmill's steps in your own pipeline, which writes with Beam's WriteToTFRecord.

    python examples/compose.py --input photos --output composed

The steps are read, re-encode, convert, split and write. Add a step of your own between them. Pixels
pass through Beam's shuffle, and shards differ from run to run; `recordmill run` avoids
both, and with `--writer=beam` runs these very steps on any input.
"""

import argparse
import os
from typing import Any

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

import recordmill


def main() -> None:
    """Converts a folder of class folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--shards", type=int, default=2)
    flags = parser.parse_args()

    classes = sorted(entry.name for entry in os.scandir(flags.input) if entry.is_dir())
    labels = recordmill.LabelMap({name: index for index, name in enumerate(classes)})
    images, shards = (
        recordmill.ImageSettings(quality=90),
        recordmill.ShardSettings(count=flags.shards),
    )
    settings = recordmill.DatasetSettings(
        source=recordmill.ClassFolders(), images=images, shards=shards
    )
    # One range of hashes per split: Beam's writer distributes a split's Examples among its files.
    plan = recordmill.DatasetPlan(
        label_map=labels, starts={split: [0] for split in settings.splits.names}
    )
    with beam.Pipeline(runner=FnApiRunner()) as root:
        batches = (
            root
            | beam.Create([recordmill.Input(flags.input)])
            | recordmill.ListReferences(settings.source, settings.listing)
        )
        # A step of your own may change the images before Examples are built: own=beam.Map(...)
        finished = recordmill.convert_with_beam(batches, settings, flags.output, plan)
        finished | beam.Map(report, flags.output)


def report(finished: Any, output: str) -> None:
    """Reports the outcome of the images; fails the pipeline if the files lack some."""
    if problem := finished.find_problem():
        raise ValueError(problem)
    rejected = [example.text for _, example in sorted(finished.rejected_examples.items())]
    such = f"; rejected, such as {', '.join(rejected)}" if rejected else ""
    print(f"{finished.rows.records} Examples are in {output}{such}")


if __name__ == "__main__":
    main()
