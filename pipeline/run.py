"""The chain of steps, and its entry points: `recordmill`, and in a clone `python -m pipeline.run`.

Beam and the steps are imported where they are used, so that `--help` does not wait a second or two
for them.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apache_beam as beam

    from recordmill.pipeline.job import Job
    from recordmill.schemas.dataset.outcome import Outcome


def build(root: "beam.Pipeline", job: "Job") -> "beam.PCollection[Outcome]":
    """Builds one conversion: the shuffle moves references to images, never their pixels."""
    from dataclasses import replace

    import apache_beam as beam
    from apache_beam.pvalue import AsSingleton

    from recordmill.pipeline.configuration.options import IN_PROCESS_RUNNERS
    from recordmill.reading.report.write_report import write_report
    from recordmill.storage.dataset_files import staging_folder
    from recordmill.transforms.claim_output import ClaimOutput
    from recordmill.transforms.convert_shards import ConvertShards
    from recordmill.transforms.find_earlier import find_fitting
    from recordmill.transforms.find_split_cutoffs import FindSplitCutoffs
    from recordmill.transforms.group_duplicates import GroupDuplicates
    from recordmill.transforms.hash_references import HashReferences
    from recordmill.transforms.list_images import ListReferences
    from recordmill.transforms.plan_shards import PlanShards, ShuffleReferences
    from recordmill.transforms.planning.run_plan import dataset_to_convert
    from recordmill.transforms.publish_dataset import PublishDataset
    from recordmill.transforms.summarize_images import SummarizeImages
    from recordmill.transforms.write_with_beam import WriteWithBeam

    settings, run = job.settings, job.run
    # Several are listed in parallel.
    inputs = root | beam.Create(job.inputs, reshuffle=len(job.inputs) > 1)
    # In-process runners have one worker.
    spread = run.facts.get("runner", "DirectRunner") not in IN_PROCESS_RUNNERS
    listing = replace(settings.listing, left_by_user=run.left_by_user, inputs=len(job.inputs))
    listed = inputs | ListReferences(settings.source, listing, spread, run.progress)  # in batches
    earlier = find_fitting(job.earlier, settings, job.recipe)
    # Unchanged unless the settings handle duplicates.
    grouped = listed | GroupDuplicates(settings, run.exclusions, earlier)
    refs = grouped | HashReferences(settings.seed)
    selection = AsSingleton(refs | FindSplitCutoffs(settings))
    summary = refs | SummarizeImages(settings, selection, run.other_classes)  # one small row
    planned = summary | PlanShards(settings, job.recipe, run, selection, earlier)
    claimed = planned | ClaimOutput(run)
    plan = AsSingleton(claimed)
    dataset = AsSingleton(claimed | "TakeDataset" >> beam.Map(dataset_to_convert))
    if run.writer == "beam":  # pixels flow
        staging = staging_folder(run.output, run.run_id)
        finished = refs | WriteWithBeam(settings, staging, dataset, run.progress)
    else:
        # ((split, index), batches): the one shuffle.
        shards = refs | ShuffleReferences(settings, dataset)
        finished = shards | ConvertShards(settings, run, plan)  # one report per finished shard
    # One outcome.
    return finished | PublishDataset(settings, run, plan, write_report)


def main(prog: str = "recordmill") -> None:
    """Runs the command `recordmill`, and exits with the code of its subcommand.

    Args:
        prog: what the user typed to start it.
    """
    _use_one_thread_for_algebra()
    from recordmill.pipeline.command import run_command

    sys.exit(run_command(sys.argv[1:], build, prog))


def _use_one_thread_for_algebra() -> None:
    """Stops OpenBLAS, which comes with numpy, from starting a thread per processor on import.

    The threads would waste 0.1 s of processor time, and would exist when processes are forked. Sums
    would depend on their number.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


if __name__ == "__main__":
    _use_one_thread_for_algebra()
    from recordmill.pipeline.launch import launch

    sys.exit(launch(sys.argv[1:], build))
