"""Recordmill's steps in a Beam pipeline of your own: class folders become TFRecords.

    python examples/compose.py --input photos --output composed

Flags that the program does not know go to Beam: `--runner=FlinkRunner`. Shards differ from run to
run, and pixels pass through Beam's shuffle; `recordmill.Convert` avoids both.
"""

import argparse
import json
import os
from dataclasses import asdict

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.options.pipeline_options import PipelineOptions

import recordmill


def main() -> None:
    """Converts a folder of class folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--shards", type=int, default=2)
    flags, others = parser.parse_known_args()
    classes = sorted(entry.name for entry in os.scandir(flags.input) if entry.is_dir())

    with beam.Pipeline(options=PipelineOptions(others)) as pipeline:
        files = pipeline | fileio.MatchFiles(f"{flags.input}/*/*") | fileio.ReadMatches()
        read = files | recordmill.ReadImages(root=flags.input, label="folder")
        encoded = read | recordmill.ReencodeImages(recordmill.ImageSettings(quality=90))
        # A DoFn of your own may change or drop images here, or between any two steps.
        built = encoded | recordmill.BuildExamples(classes)
        train, test = built | recordmill.SplitExamples({"train": 0.9, "test": 0.1}, seed=0)
        train | "WriteTrain" >> beam.io.WriteToTFRecord(
            f"{flags.output}/train", file_name_suffix=".tfrecord", num_shards=flags.shards
        )
        test | "WriteTest" >> beam.io.WriteToTFRecord(
            f"{flags.output}/test", file_name_suffix=".tfrecord", num_shards=flags.shards
        )
        rejected = (read.rejected, encoded.rejected, built.rejected) | beam.Flatten()
        lines = rejected | "AsJson" >> beam.Map(lambda image: json.dumps(asdict(image)))
        lines | "WriteRejected" >> beam.io.WriteToText(
            f"{flags.output}/rejected", file_name_suffix=".jsonl", shard_name_template=""
        )


if __name__ == "__main__":
    main()
