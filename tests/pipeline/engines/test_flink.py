"""The main job on a standalone Flink cluster, through its job server and through FlinkRunner."""

import json
import os
import signal
import subprocess

import pytest
from cluster_runs import SETTINGS, assert_same, finished_shards, flags_for
from engines import FLINK, flink_runner_flags
from stored_records import sorted_records

from scripts.flink_job import newest_job, shuffled_bytes

pytestmark = [pytest.mark.flink, pytest.mark.usefixtures("ended_launches")]


def flags_through(runner, workers):
    """The flags that send a job to the cluster: through its job server, or one that the launcher
    starts."""
    if runner == "FlinkRunner":
        return flink_runner_flags(workers)
    return FLINK.flags(workers)


@pytest.mark.parametrize(
    ("runner", "workers", "parallelism"),
    [
        ("PortableRunner", "LOOPBACK", 1),
        ("PortableRunner", "LOOPBACK", 2),
        # 1: where nobody waits; 4 on FlinkRunner: where a task manager is killed.
        ("PortableRunner", "EXTERNAL", 2),
        ("FlinkRunner", "EXTERNAL", 1),
        ("FlinkRunner", "LOOPBACK", 1),
        ("FlinkRunner", "LOOPBACK", 2),
    ],
)
def test_the_bytes_of_direct_runner(
    flink, run_to_its_end, reference, collection, tmp_path, runner, workers, parallelism
):
    flags = [*flags_through(runner, workers), f"--parallelism={parallelism}"]
    code, line, stderr = run_to_its_end(collection, tmp_path / "flink", *flags)
    assert (code, line["status"]) == (0, "published"), stderr
    marker = assert_same(tmp_path / "flink", reference)
    assert marker["run"]["runner"] == runner
    job = newest_job()
    assert {vertex["parallelism"] for vertex in job["vertices"]} == {parallelism}
    assert 0 < shuffled_bytes(job, "GroupByShard") <= 500 * 302


def test_workers_have_what_setup_file_ships(flink):
    script = (
        "import recordmill.pipeline.run, recordmill, sys; sys.stdout.write(recordmill.__file__)"
    )
    python = flink.folder / "workers/bin/python"
    # As the cluster starts it: this checkout may be on the path.
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [python, "-c", script],
        cwd=flink.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"{flink.folder}/workers/lib/")


def test_each_shard_has_one_note_and_one_report_though_an_image_is_huge_and_a_worker_dies(
    four_slots, spawn, convert, class_folders, picture, wait_until, tmp_path
):
    source = class_folders(tmp_path / "photos", {"cat": 60, "dog": 60}, size=(900, 700))
    (source / "cat/huge.jpg").write_bytes(picture("huge", size=(7_000, 5_000)))
    (source / "dog/text.jpg").write_bytes(b"no picture")
    output = tmp_path / "flink"
    # What is finished stays in staging.
    strict = ("--set=max_rejected.count=0", "--set=max_rejected.share=0")
    flags = [*flink_runner_flags("EXTERNAL"), "--parallelism=4", *strict]
    process = spawn(*flags_for(source, output, *flags))
    wait_until(lambda: finished_shards(output) >= 2)
    FLINK.processes.kill(FLINK.executor, signal.SIGKILL)
    four_slots()  # as a supervisor would
    stdout, stderr = process.communicate(timeout=600)
    # The ledger balances only if each shard is reported once; then the limit fails the run.
    assert (process.returncode, json.loads(stdout)["ledger"]["rejected"]) == (
        3,
        {"unknown_format": 1},
    ), stderr
    notes = sorted(path.name for path in output.glob(".staging-*/*.done.json"))
    assert notes == [
        f"{split}-{index:05d}.done.json" for split in ("test", "train") for index in range(6)
    ]
    direct = convert(source, settings=SETTINGS, output=tmp_path / "direct")
    resumed = convert(source, settings=SETTINGS, output=output)
    assert resumed.deterministic_files == direct.deterministic_files
    assert resumed.marker["run"]["shards_reused"] == 12


def test_ctrl_c_cancels_the_job(flink, spawn, collection, wait_until, tmp_path):
    output = tmp_path / "flink"
    process = spawn(*flags_for(collection, output, *flink_runner_flags("EXTERNAL")))
    wait_until(lambda: finished_shards(output) >= 1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    again = "run the same command again to continue from its finished shards"
    assert (
        json.loads(stdout)["message"]
        == f"interrupted: the job on FlinkRunner was canceled; {again}"
    )
    assert "Traceback" not in stderr
    wait_until(lambda: newest_job()["state"] == "CANCELED", 60)


def test_no_one_waits(flink, run_to_its_end, reference, collection, wait_until, tmp_path):
    summary = tmp_path / "outcome.json"
    flags = [*flink.flags("EXTERNAL"), "--no_wait"]
    code, line, _ = run_to_its_end(
        collection, tmp_path / "flink", *flags, f"--outcome_file={summary}"
    )
    assert (code, line["status"]) == (0, "submitted")
    wait_until(summary.exists)
    assert json.loads(summary.read_bytes())["status"] == "published"
    assert_same(tmp_path / "flink", reference)


@pytest.mark.parametrize(
    ("runner", "workers"), [("PortableRunner", "EXTERNAL"), ("FlinkRunner", "LOOPBACK")]
)
def test_beams_writer_writes_the_same_examples(
    flink, spawn, reference, collection, tmp_path, runner, workers
):
    output = tmp_path / "flink"
    flags = [each for each in flags_for(collection, output) if not each.startswith("--threads")]
    beams = ["--parallelism=2", "--writer=beam"]
    process = spawn(*flags, *flags_through(runner, workers), *beams)
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr
    line = json.loads(stdout)
    assert (line["status"], line["ledger"]) == ("written", reference.line["ledger"])
    for split in ("train", "test"):
        ours = sorted_records(reference.output, f"{split}-*")
        assert sorted_records(output, f"{split}-*") == ours
