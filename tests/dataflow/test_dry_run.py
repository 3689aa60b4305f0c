"""What `--runner=DataflowRunner --dry_run=True` builds: the job's graph, labels, workers and
packages. No network."""

import json
import sys
from pathlib import Path

import pytest
from apache_beam.runners.pipeline_context import PipelineContext

from recordmill.pipeline.attempt import prepare_job
from recordmill.pipeline.configuration.options import parse_options
from recordmill.pipeline.run import build
from recordmill.pipeline.runners import _make_pipeline
from recordmill.pipeline.terminal import Terminal
from recordmill.schemas.reference_batch import ShardBatchCoder

# `make test-dataflow` runs them.
pytestmark = pytest.mark.slow

# Without it, the input's names would be listed.
CONFIG = Path(__file__).parents[2] / "configs/class_folders.yaml"
PLACES = ["--input=gs://recordmill/raw/", "--output=gs://recordmill/dataset", f"--config={CONFIG}"]
WORKERS = [
    "--job_name=nightly",
    "--labels=team=vision",
    "--labels=airflow-version=v3-3-2",
    "--machine_type=n2d-standard-4",
    "--disk_size_gb=40",
    "--num_workers=2",
    "--max_num_workers=50",
]


@pytest.fixture(scope="module")
def job(dataflow_flags):
    """Dataflow's own description of a job, not sent."""
    options = parse_options([*dataflow_flags, *PLACES, *WORKERS, "--dry_run=True"])
    pipeline, here = _make_pipeline(options.runner, options.beam_arguments)
    assert not here
    build(pipeline, prepare_job(options, Terminal(sys.stderr)))
    return pipeline.run().job


def test_name_type_and_labels(job):
    assert (job.proto.name, job.proto.type_.name) == ("nightly", "JOB_TYPE_BATCH")
    assert dict(job.proto.labels) == {"team": "vision", "airflow-version": "v3-3-2"}


def steps_of(transforms, whole="Convert"):
    """The names of the steps in a composite transform."""
    names = (each.unique_name for each in transforms)
    below = (name.removeprefix(f"{whole}/") for name in names if name.startswith(f"{whole}/"))
    return {name for name in below if "/" not in name}


def test_the_graph_is_the_chain_and_one_shuffle(job):
    transforms = job.proto_pipeline.components.transforms.values()
    assert steps_of(transforms) == {
        "Create",
        "ListReferences",
        "ClaimOutput",
        "FindSplitCutoffs",
        "SummarizeImages",
        "PlanShards",
        "TakeDataset",
        "HashReferences",
        "ShuffleReferences",
        "ConvertShards",
        "PublishDataset",
    }
    # References by shard, and digests; in addition some rows: parts of inputs, copies, summaries
    # and reports.
    grouped = {
        each.unique_name for each in transforms if each.spec.urn == "beam:transform:group_by_key:v1"
    }
    assert grouped == {
        "Convert/ListReferences/Reshuffle/ReshufflePerKey/GroupByKey",
        "Convert/ListReferences/GroupByInput",
        "Convert/ShuffleReferences/GroupByShard",
        "Convert/PublishDataset/FindCopies/GroupByDigest",
        "Convert/PublishDataset/FindCopies/GroupCopies",
        "Convert/SummarizeImages/MergeSummaries/CombinePerKey/GroupByKey",
        "Convert/PublishDataset/GatherReports/CombinePerKey/GroupByKey",
    }


def test_the_graph_of_beams_writer(dataflow_flags):
    flags = [
        "--writer=beam",
        "--set=shards.count=2",
        "--set=splits.fractions={train: 0.9, test: 0.1}",
    ]
    options = parse_options([*dataflow_flags, *PLACES, *flags, "--dry_run=True"])
    pipeline, _ = _make_pipeline(options.runner, options.beam_arguments)
    build(pipeline, prepare_job(options, Terminal(sys.stderr)))
    transforms = pipeline.run().job.proto_pipeline.components.transforms.values()
    steps = steps_of(transforms)
    assert {
        "WriteWithBeam",
        "ListReferences",
        "PlanShards",
        "ClaimOutput",
        "PublishDataset",
    } <= steps
    chain = steps_of(transforms, "Convert/WriteWithBeam")
    assert {
        "ShuffleReferences",
        "ReadReferences",
        "ReencodeImages",
        "BuildExamples",
        "SplitExamples",
    } <= chain
    assert "ConvertShards" not in steps
    written = {
        each.unique_name for each in transforms if each.unique_name.endswith("/WriteBundles")
    }
    write = "Convert/WriteWithBeam/Write {}/Write/WriteImpl/WriteBundles"
    assert written == {write.format(split) for split in ("train", "test")}
    for transform in transforms:
        assert b"pipeline.run" not in transform.spec.payload, transform.unique_name


def test_references_are_shuffled_but_not_pixels(job):
    components = job.proto_pipeline.components
    (shuffle,) = [
        each
        for each in components.transforms.values()
        if each.unique_name.endswith("/GroupByShard")
    ]
    (shuffled,) = shuffle.inputs.values()
    coder = PipelineContext(components).coders[components.pcollections[shuffled].coder_id]
    _, batch = coder._get_component_coders()
    assert batch == ShardBatchCoder()


def test_workers_are_as_asked_for(job):
    from apache_beam.runners.dataflow.internal.apiclient import Environment

    environment = Environment(
        [], job.options, "8", "gs://p.pb", job.proto_pipeline, pipeline_proto_hash="0"
    ).proto
    (pool,) = environment.worker_pools
    assert (pool.machine_type, pool.disk_size_gb, pool.num_workers) == ("n2d-standard-4", 40, 2)
    assert pool.autoscaling_settings.max_num_workers == 50
    (image,) = pool.sdk_harness_container_images
    assert image.use_single_core_per_container  # a process a core: docs/dataflow.md counts on it


def test_the_package_is_shipped_and_the_main_session_is_not(job):
    from apache_beam.portability.api import beam_runner_api_pb2

    (environment,) = job.proto_pipeline.components.environments.values()
    role = beam_runner_api_pb2.ArtifactStagingToRolePayload
    staged = {role.FromString(each.role_payload).staged_name for each in environment.dependencies}
    assert staged == {"workflow.tar.gz", "submission_environment_dependencies.txt"}
    assert job.options.display_data()["save_main_session"] is False


def test_nothing_is_pickled_by_value(job):
    # What is defined in a module that workers import is named; the rest would travel as code, and
    # need its globals.
    for transform in job.proto_pipeline.components.transforms.values():
        assert b"pipeline.run" not in transform.spec.payload, transform.unique_name


def test_the_command_ends_well_and_says_that_nothing_runs(dataflow_flags, launch_offline):
    done = launch_offline("pipeline/run.py", *dataflow_flags, *PLACES, "--dry_run=True")
    line = json.loads(done.stdout)
    assert (done.returncode, line["status"]) == (0, "built"), done.stderr
    assert (
        done.stderr.splitlines()[-1]
        == "the Dataflow job was built and, as --dry_run asks, not started"
    )
