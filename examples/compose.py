"""Recordmill's steps in your own pipeline: read, decode, convert, split, and write with Beam's WriteToTFRecord.

    python examples/compose.py --input photos --output dataset

Start from this example to add steps of your own in between. Pixels pass through Beam's shuffle, and shards differ from
run to run; `python -m pipeline.run` avoids both.
"""

import argparse
import os

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

import recordmill


def main() -> None:
    """Converts a folder of class folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--shards", type=int, default=2)
    flags = parser.parse_args()

    classes = sorted(entry.name for entry in os.scandir(flags.input) if entry.is_dir())
    label_ids = {name: index for index, name in enumerate(classes)}
    with beam.Pipeline(runner=FnApiRunner()) as root:
        splits = (
            root
            | beam.Create([recordmill.Input(flags.input)])
            | recordmill.ListImages(recordmill.ClassFolders(), recordmill.ListingSettings())
            | recordmill.ReadImages()  # (reference, bytes)
            | recordmill.ReencodeImages(recordmill.ImageSettings(quality=90))  # (reference, image)
            | recordmill.BuildExamples(label_ids)  # (key, serialised tf.train.Example)
            | recordmill.SplitExamples({"train": 0.9, "test": 0.1})
        )
        for name, examples in splits.items():
            prefix = os.path.join(flags.output, name)
            examples | f"Write{name.capitalize()}" >> beam.io.WriteToTFRecord(
                prefix, file_name_suffix=".tfrecord", num_shards=flags.shards
            )
    counters = root.result.metrics().query(beam.metrics.MetricsFilter().with_namespace("recordmill"))["counters"]
    left_out = [f", {counter.committed} left out ({counter.key.metric.name})" for counter in counters]
    print(f"the Examples are in {flags.output}{''.join(sorted(left_out))}")


if __name__ == "__main__":
    main()
