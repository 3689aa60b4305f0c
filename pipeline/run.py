"""`python -m pipeline.run`: the chain of steps, and the way in. No other module imports this one."""

import gc
import sys

if __name__ == "__main__":
    gc.disable()  # looking for garbage in what is imported, and stays, takes 0.1 s; `launch` lets it begin

import apache_beam as beam
from apache_beam.pvalue import AsSingleton

from recordmill.pipeline.job import Job
from recordmill.pipeline.launch import launch
from recordmill.schemas.outcome import Outcome
from recordmill.transforms.batch_references import BatchReferences
from recordmill.transforms.convert_shards import ConvertShards
from recordmill.transforms.group_duplicates import GroupDuplicates
from recordmill.transforms.list_images import ListImages
from recordmill.transforms.plan_shards import PlanShards, ShuffleReferences
from recordmill.transforms.publish_dataset import PublishDataset
from recordmill.transforms.select_images import SelectImages
from recordmill.transforms.summarize_images import SummarizeImages


def build(root: beam.Pipeline, job: Job) -> beam.PCollection[Outcome]:
    """Builds one conversion: references flow, pixels don't."""
    settings, run = job.settings, job.run
    inputs = root | beam.Create(job.inputs, reshuffle=len(job.inputs) > 1)  # several are listed side by side
    listed = inputs | ListImages(settings.source, settings.listing)
    images = listed | GroupDuplicates(settings)  # as they are, unless the settings speak of duplicates
    refs = images | BatchReferences()
    selection = AsSingleton(refs | SelectImages(settings.seed, settings.splits, settings.limit))
    summary = refs | SummarizeImages(settings.seed, settings.splits, selection)  # one small row
    plan = AsSingleton(summary | PlanShards(settings, run, selection))
    return (
        refs
        | ShuffleReferences(settings, plan)  # ((split, index), batches): the one shuffle
        | ConvertShards(settings, run, plan)  # a report a finished shard
        | PublishDataset(settings, run, plan)  # one outcome
    )


def main() -> None:
    """Runs one conversion and exits: 0 done, 1 failed, 2 wrong usage or configuration, 3 too many rejected."""
    sys.exit(launch(sys.argv[1:], build))


if __name__ == "__main__":
    main()
