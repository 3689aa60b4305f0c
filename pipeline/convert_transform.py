"""`recordmill.Convert`: a whole conversion as a PTransform, which the command runs, too."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Unpack

import apache_beam as beam
import orjson
from apache_beam import coders
from apache_beam.pvalue import AsSingleton
from apache_beam.transforms.combiners import ToList
from apache_beam.transforms.window import GlobalWindows

from recordmill import storage
from recordmill.pipeline.attempt import prepare_job
from recordmill.pipeline.configuration import preflight
from recordmill.pipeline.configuration.options import IN_PROCESS_RUNNERS, LaunchOptions
from recordmill.pipeline.job import Job
from recordmill.pipeline.terminal import Terminal
from recordmill.reading.report.draw_samples import draw_samples
from recordmill.reading.report.write_report import write_report
from recordmill.schemas.dataset.file_names import REJECTED
from recordmill.schemas.dataset.outcome import Outcome
from recordmill.schemas.dataset.totals import FinishedShards
from recordmill.schemas.errors import RecordmillError, UsageError
from recordmill.schemas.settings.keywords import DatasetKeywords
from recordmill.schemas.settings.source import Input
from recordmill.schemas.str_path import StrPath
from recordmill.storage.dataset_files import read_marker, staging_folder
from recordmill.transforms.claim_output import ClaimOutput
from recordmill.transforms.convert_shards import ConvertShards
from recordmill.transforms.find_earlier import FindEarlier, find_fitting
from recordmill.transforms.find_split_cutoffs import FindSplitCutoffs
from recordmill.transforms.group_duplicates import GroupDuplicates
from recordmill.transforms.hash_references import HashReferences
from recordmill.transforms.list_images import ListReferences
from recordmill.transforms.plan_shards import NO_EARLIER, PlanShards, ShuffleReferences
from recordmill.transforms.planning.earlier_dataset import EarlierNames
from recordmill.transforms.planning.run_inputs import RunInputs
from recordmill.transforms.planning.run_plan import RunPlan, dataset_to_convert
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.publish_dataset import PublishDataset, publish
from recordmill.transforms.publishing.companions.run_reports import Reporters
from recordmill.transforms.summarize_images import SummarizeImages

OnFailure = Literal["raise", "emit"]
"""What a conversion that makes no dataset does to its pipeline."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of a dataset in place.

    Attributes:
        split: its split.
        path: where it is.
        records: the number of its records.
        bytes: its size.
        sha256: its SHA-256, in hex.
    """

    split: str
    path: str
    records: int
    bytes: int
    sha256: str


for _type in (Shard, RunInputs, Outcome):
    coders.registry.register_coder(_type, coders.PickleCoder)


class Converted(NamedTuple):
    """What a conversion gives, once its dataset is in place or it has failed.

    Attributes:
        outcome: a PCollection of one `Outcome`.
        shards: a PCollection of a `Shard` for each file of the dataset, new or kept.
        rejected: a PCollection of the lines of `rejected.jsonl`, as mappings.
    """

    outcome: Any
    shards: Any
    rejected: Any


class Convert(beam.PTransform):
    """Converts a collection as `recordmill run` does, as a part of any pipeline.

    It is applied to a pipeline. Without `inputs`, it is applied to a PCollection of folders, files
    and patterns, which is read as one collection: several of them need names, as in
    `NAME=gs://bucket/photos`. The settings must then name `source.kind`.

    The result has the PCollections of `Converted`.

    Example:
        done = pipeline | recordmill.Convert("photos", "dataset", images={"quality": 90})
    """

    def __init__(
        self,
        inputs: StrPath | Sequence[StrPath] | Mapping[str, StrPath] | None = None,
        output: StrPath | None = None,
        *,
        config: StrPath | None = None,
        update: bool = False,
        versions: bool = False,
        overwrite: bool = False,
        reuse: Sequence[StrPath] = (),
        against: StrPath | None = None,
        on_failure: OnFailure = "raise",
        **settings: Unpack[DatasetKeywords],
    ) -> None:
        """Reads the settings, and recognizes the layout of the inputs.

        Args:
            inputs: a folder or file; or several by name. The names then begin the images' keys.
            output: the dataset's folder.
            config: a configuration, as `--config` takes it.
            update: whether to replace the dataset in the output, and reuse its images.
            versions: whether to publish in a new folder below the output, and keep earlier
                datasets.
            overwrite: whether to replace another dataset in the output.
            reuse: earlier datasets whose unchanged images are taken without decoding them. These,
                and the one to update, are opened when the pipeline runs.
            against: the dataset with which `expect` compares; None for the one in the output.
            on_failure: `raise` fails the pipeline if no dataset was made; with `emit`, it goes on,
                and the outcome says why.
            settings: as in YAML; a mapping sets only the keys in it: `images={"quality": 90}`.

        Raises:
            RecordmillError: a setting is wrong, or an input or the output cannot be used.
        """
        super().__init__()
        if output is None:
            raise UsageError("output is missing: name the folder for the dataset")
        if on_failure not in ("raise", "emit"):
            raise UsageError(f"on_failure is {on_failure!r}: give raise or emit")
        options = LaunchOptions(
            input=tuple(_input_texts(inputs)),
            output=os.path.expanduser(os.fspath(output)),
            config=None if config is None else os.fspath(config),
            update=update,
            versions=versions,
            overwrite=overwrite,
            reuse=tuple(os.fspath(each) for each in reuse),
            against=None if against is None else os.fspath(against),
            processes=1,
            keywords=settings,
            owns_process=False,
            in_pipeline=True,
        )
        job = prepare_job(options, Terminal(None))
        # The outcome is a PCollection instead.
        self._job = replace(job, run=replace(job.run, outcome_file=None))
        self._on_failure = on_failure
        self._is_command = False

    @classmethod
    def of_job(cls, job: Job) -> "Convert":
        """Returns the transform of a command, which gives the PCollection of the outcome alone."""
        transform = cls.__new__(cls)
        beam.PTransform.__init__(transform)
        transform._job, transform._on_failure, transform._is_command = job, "emit", True
        return transform

    @property
    def output(self) -> str:
        """The dataset's folder."""
        return self._job.run.output

    def display_data(self) -> dict[str, str]:
        """Returns the places that it reads and writes."""
        inputs = ", ".join(each.path for each in self._job.inputs)
        return {"inputs": inputs, "output": self.output}

    def expand(self, source: Any) -> Any:
        """Adds the conversion to a pipeline.

        Raises:
            UsageError: the pipeline has another conversion into the same output; or `source` does
                not fit `inputs`.
        """
        _refuse_same_output(source.pipeline, self.output)
        job = self._job
        if not self._is_command:
            job = _on_runner(job, type(source.pipeline.runner).__name__)
        if job.inputs:
            if isinstance(source, beam.PCollection):
                raise UsageError("Convert has inputs already: apply it to the pipeline itself")
            given: Any = RunInputs(job.inputs, job.run.inputs)
            # Several are listed in parallel.
            create = beam.Create(job.inputs, reshuffle=len(job.inputs) > 1)
            inputs = source.pipeline | create
        else:
            given, inputs = _find_inputs(source, job.run.output)
        outcome, plan = _convert(inputs, given, job)
        if self._is_command:
            return outcome
        if self._on_failure == "raise":
            # A runner that tries the failing step again does not publish again.
            settled = outcome | "Settle" >> beam.Reshuffle()
            outcome = settled | "RaiseOnFailure" >> beam.Map(raise_on_failure)
        list_shards = beam.FlatMap(shards_of, plan, job.run).with_output_types(Shard)
        read_rejected = beam.FlatMap(rejected_of, plan, job.run)
        shards = outcome | "ListShards" >> list_shards
        rejected = outcome | "ReadRejected" >> read_rejected
        return Converted(outcome, shards, rejected)


def _input_texts(
    inputs: StrPath | Sequence[StrPath] | Mapping[str, StrPath] | None,
) -> Iterator[str]:
    """Yields the inputs as `--input` takes them."""
    if inputs is None:
        return
    if isinstance(inputs, Mapping):
        yield from (f"{name}={os.fspath(path)}" for name, path in inputs.items())
    elif isinstance(inputs, str | os.PathLike):
        yield os.fspath(inputs)
    else:
        yield from (os.fspath(each) for each in inputs)


def _refuse_same_output(pipeline: beam.Pipeline, output: str) -> None:
    """Raises UsageError if two conversions in a pipeline write to one output."""
    found = [each for each in _applied(pipeline.transforms_stack[0]) if isinstance(each, Convert)]
    if [each.output for each in found].count(output) > 1:
        raise UsageError(
            f"two conversions of this pipeline write to {output}: give each an output of its own"
        )


def _applied(node: Any) -> Iterator[Any]:
    for part in node.parts:
        yield part.transform
        yield from _applied(part)


def _on_runner(job: Job, runner: str) -> Job:
    """Returns a job that names its runner."""
    if runner == "SwitchingDirectRunner":
        runner = "DirectRunner"
    return replace(job, run=replace(job.run, facts={**job.run.facts, "runner": runner}))


def _find_inputs(source: Any, output: str) -> tuple[AsSingleton, beam.PCollection[Input]]:
    """Returns the `RunInputs` of a PCollection of strings, and a PCollection of them.

    Raises:
        UsageError: it is not such a PCollection.
    """
    if not isinstance(source, beam.PCollection):
        raise UsageError("Convert has no inputs: name them, or apply it to a PCollection of paths")
    if not source.is_bounded:
        raise UsageError(
            "Convert cannot read an unbounded PCollection, since a dataset is published once: "
            "apply it to a bounded one"
        )
    paths = source | "InOneWindow" >> beam.WindowInto(GlobalWindows())
    find = beam.Map(find_inputs, output).with_output_types(RunInputs)
    found = paths | "GatherInputs" >> ToList() | "FindInputs" >> find
    each = beam.FlatMap(_inputs_of).with_output_types(Input)
    return AsSingleton(found), found | "EachInput" >> each | "SpreadInputs" >> beam.Reshuffle()


def _inputs_of(given: RunInputs) -> tuple[Input, ...]:
    return given.inputs


def find_inputs(texts: Sequence[str], output: str) -> RunInputs:
    """Returns the inputs that the strings of a PCollection name, in any order."""
    try:
        if not texts:
            raise UsageError("the PCollection of inputs is empty: give at least one path")
        inputs = preflight.parse_inputs(sorted(map(os.fspath, texts)))
        inputs = tuple(map(preflight.separate_pattern, inputs))
        preflight.check_places(inputs, output)
        folders = {each.name: preflight.find_folder(each.path, each.path, True) for each in inputs}
    except RecordmillError as error:
        return RunInputs(problem=str(error))
    return RunInputs(inputs, folders)


def _convert(
    inputs: beam.PCollection[Input], given: Any, job: Job
) -> tuple[beam.PCollection[Outcome], AsSingleton]:
    """Builds one conversion: the shuffle moves references to images, never their pixels.

    Args:
        inputs: what to list.
        given: the `RunInputs`, or a side input with them.
        job: the conversion.

    Returns:
        A PCollection of one outcome; and the plan, as a side input.
    """
    settings, run = job.settings, job.run
    # In-process runners have one worker.
    spread = run.facts.get("runner", "DirectRunner") not in IN_PROCESS_RUNNERS
    listing = replace(
        settings.listing, left_by_user=run.left_by_user, inputs=max(1, len(job.inputs))
    )
    # In batches.
    listed = inputs | ListReferences(settings.source, listing, spread, run.progress)
    earlier = _find_earlier(inputs.pipeline, job)
    # Unchanged unless the settings handle duplicates.
    grouped = listed | GroupDuplicates(settings, run.exclusions, earlier)
    refs = grouped | HashReferences(settings.seed)
    selection = AsSingleton(refs | FindSplitCutoffs(settings))
    summary = refs | SummarizeImages(settings, selection, run.other_classes)  # one small row
    planned = summary | PlanShards(settings, job.recipe, run, selection, earlier, given)
    claimed = planned | ClaimOutput(run)
    plan = AsSingleton(claimed)
    reporters = Reporters(write_report, draw_samples)
    if run.preview:  # a pipeline without the steps that write starts sooner
        nothing = inputs.pipeline | "WriteNothing" >> beam.Create([FinishedShards()])
        report = beam.Map(publish, plan, settings, run, reporters, copies=())
        return nothing | "ReportPlan" >> report, plan
    dataset = AsSingleton(claimed | "TakeDataset" >> beam.Map(dataset_to_convert))
    if run.writer == "beam":  # pixels flow
        from recordmill.transforms.write_with_beam import WriteWithBeam

        staging = staging_folder(run.output, run.run_id)
        finished = refs | WriteWithBeam(settings, staging, dataset, run.progress)
    else:
        # ((split, index), batches): the one shuffle.
        shards = refs | ShuffleReferences(settings, dataset)
        finished = shards | ConvertShards(settings, run, plan)  # one report per finished shard
    return finished | PublishDataset(settings, run, plan, reporters), plan


def _find_earlier(pipeline: beam.Pipeline, job: Job) -> Any:
    """Returns the `EarlierDatasets`, or a side input with them if they are opened later."""
    if not isinstance(job.earlier, EarlierNames):
        return find_fitting(job.earlier, job.settings, job.recipe)
    if job.earlier == EarlierNames():
        return NO_EARLIER
    return AsSingleton(pipeline | FindEarlier(job.earlier, job.settings, job.recipe))


def raise_on_failure(outcome: Outcome) -> Outcome:
    """Returns the outcome of a conversion that made a dataset, or kept one.

    Raises:
        RecordmillError: it did not.
    """
    if outcome.exit_code:
        raise RecordmillError(outcome.message)
    return outcome


def shards_of(outcome: Outcome, plan: RunPlan, run: RunSettings) -> Iterator[Shard]:
    """Yields the files of the dataset that is in place."""
    if outcome.status not in ("published", "kept") or outcome.exit_code:
        return
    folder = _folder_of(outcome, plan, run)
    for split, entry in read_marker(folder).splits.items():
        for each in entry.shards:
            path = storage.join(folder, each.name)
            yield Shard(split, path, each.records, each.bytes, each.sha256)


def rejected_of(outcome: Outcome, plan: RunPlan, run: RunSettings) -> Iterator[dict[str, Any]]:
    """Yields the lines of `rejected.jsonl`; after a failure, those in staging."""
    folder = plan.decision.staging
    if outcome.status in ("published", "kept"):
        folder = _folder_of(outcome, plan, run)
    path = storage.join(folder, REJECTED)
    if storage.exists(path):
        yield from map(orjson.loads, storage.read_lines(path))


def _folder_of(outcome: Outcome, plan: RunPlan, run: RunSettings) -> str:
    """Returns the folder of the dataset in place: the output, or a version below it."""
    version = plan.decision.version
    if outcome.dataset is not None and outcome.dataset.version is not None:
        version = outcome.dataset.version
    return plan.decision.at(run.output, version).output
