"""The main job on a standalone Flink cluster: the bytes of DirectRunner's, and what happens when
something dies."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from cluster_runs import SETTINGS, assert_same, finished_shards, flags_for
from stored_records import read_records

from scripts import flink_cluster
from scripts.flink_job import newest_job, shuffled_bytes
from tests.pipeline.conftest import OWN_CODE


@pytest.mark.parametrize("runner", ["PortableRunner", "FlinkRunner"])
def test_look_alikes_and_functions(
    flink, convert, convert_in_child, look_alikes, through, in_workers, tmp_path, runner
):
    one = convert(look_alikes, settings=OWN_CODE, output=tmp_path / "direct")
    flags = [*through(runner), *in_workers["LOOPBACK"], "--parallelism=2"]
    other = convert_in_child(look_alikes, *flags, settings=OWN_CODE, output=tmp_path / "flink")
    assert (one.code, other.code, other.errors) == (0, 0, [])
    assert_same(tmp_path / "flink", one)


@pytest.mark.parametrize(
    ("runner", "workers", "parallelism"),
    [
        ("PortableRunner", "LOOPBACK", 1),
        ("PortableRunner", "LOOPBACK", 2),
        # 1: where nobody waits; 2 on FlinkRunner: where a task manager is killed.
        (
            "PortableRunner",
            "EXTERNAL",
            2,
        ),
        ("FlinkRunner", "EXTERNAL", 1),
        ("FlinkRunner", "LOOPBACK", 1),
        ("FlinkRunner", "LOOPBACK", 2),
    ],
)
def test_the_bytes_of_direct_runner(
    flink,
    run_to_its_end,
    reference,
    collection,
    through,
    in_workers,
    tmp_path,
    runner,
    workers,
    parallelism,
):
    flags = [*through(runner), *in_workers[workers], f"--parallelism={parallelism}"]
    code, line, stderr = run_to_its_end(collection, tmp_path / "flink", *flags)
    assert (code, line["status"]) == (0, "published"), stderr
    marker = assert_same(tmp_path / "flink", reference)
    assert marker["run"]["runner"] == runner
    job = newest_job()
    assert {vertex["parallelism"] for vertex in job["vertices"]} == {parallelism}
    assert 0 < shuffled_bytes(job, "GroupByShard") <= 500 * 302


def test_an_update(
    flink, run_to_its_end, convert, reference, collection, picture, through, in_workers, tmp_path
):
    root, output = (
        shutil.copytree(collection, tmp_path / "photos"),
        shutil.copytree(reference.output, tmp_path / "old"),
    )
    (root / "cat" / "new.jpg").write_bytes(picture("new"))
    os.utime(root / "cat" / "new.jpg", (1_700_000_000, 1_700_000_000))
    rebuilt = convert(root, settings=SETTINGS, output=tmp_path / "rebuilt")
    flags = [*through("PortableRunner"), *in_workers["LOOPBACK"], "--parallelism=2", "--update"]
    code, line, stderr = run_to_its_end(root, output, *flags)
    assert (code, line["status"]) == (0, "published"), stderr
    marker = assert_same(output, rebuilt)
    assert marker["run"]["images_reused"] == marker["ledger"]["written"] - 1


def test_workers_have_what_setup_file_ships(flink):
    script = (
        "import recordmill.pipeline.run, recordmill, sys; sys.stdout.write(recordmill.__file__)"
    )
    python = flink_cluster.RUN / "workers/bin/python"
    # As the cluster starts it: this checkout may be on the path.
    environment = {
        **os.environ,
        "PYTHONPATH": "",
    }
    done = subprocess.run(
        [python, "-c", script],
        cwd=flink_cluster.RUN,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"{flink_cluster.RUN}/workers/lib/")


def test_a_task_manager_that_is_killed(
    flink, bring_up, spawn, reference, collection, through, in_workers, wait_until, tmp_path
):
    output = tmp_path / "flink"
    flags = [*through("FlinkRunner"), *in_workers["EXTERNAL"], "--parallelism=2"]
    process = spawn(*flags_for(collection, output, *flags))
    wait_until(lambda: finished_shards(output) >= 2)
    job = newest_job()
    flink_cluster.PROCESSES.kill("task-manager-1", signal.SIGKILL)
    bring_up()  # as a supervisor would
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["status"] == "published"
    assert "Traceback" not in stderr
    # Flink did its part again; nobody had to start another run.
    assert newest_job()["jid"] == job["jid"]
    assert assert_same(output, reference)["run"]["shards_reused"] >= 2


def test_each_shard_has_one_note_and_one_report_though_an_image_is_huge_and_a_worker_dies(
    four_slots, spawn, convert, class_folders, picture, through, in_workers, wait_until, tmp_path
):
    source = class_folders(tmp_path / "photos", {"cat": 60, "dog": 60}, size=(900, 700))
    (source / "cat/huge.jpg").write_bytes(picture("huge", size=(7_000, 5_000)))
    (source / "dog/text.jpg").write_bytes(b"no picture")
    output = tmp_path / "flink"
    # What is finished stays in staging.
    strict = (
        "--set=max_rejected.count=0",
        "--set=max_rejected.share=0",
    )
    flags = [*through("FlinkRunner"), *in_workers["EXTERNAL"], "--parallelism=4", *strict]
    process = spawn(*flags_for(source, output, *flags))
    wait_until(lambda: finished_shards(output) >= 2)
    flink_cluster.PROCESSES.kill("task-manager-1", signal.SIGKILL)
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


def test_a_job_whose_workers_are_killed_fails_in_a_sentence_and_a_rerun_goes_on(
    flink,
    bring_up,
    spawn,
    run_to_its_end,
    reference,
    collection,
    through,
    in_workers,
    wait_until,
    tmp_path,
):
    output = tmp_path / "flink"
    flags = [*through("PortableRunner"), *in_workers["EXTERNAL"], "--parallelism=1"]
    process = spawn(*flags_for(collection, output, *flags))
    wait_until(lambda: finished_shards(output) >= 2)
    flink_cluster.PROCESSES.kill("workers", signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=600)
    assert (process.returncode, json.loads(stdout)["status"]) == (1, "failed")
    assert "Traceback" not in stderr
    assert len([line for line in stderr.splitlines() if line.startswith("error: ")]) == 1
    assert not (output / "recordmill.json").exists()
    survived = finished_shards(output)
    bring_up()
    code, _, stderr = run_to_its_end(collection, output, *flags)
    assert code == 0, stderr
    assert assert_same(output, reference)["run"]["shards_reused"] >= survived >= 2


def test_ctrl_c_cancels_the_job(
    flink, spawn, collection, through, in_workers, wait_until, tmp_path
):
    output = tmp_path / "flink"
    process = spawn(
        *flags_for(
            collection, output, *through("FlinkRunner"), *in_workers["EXTERNAL"], "--parallelism=1"
        )
    )
    wait_until(lambda: finished_shards(output) >= 1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    again = "run the same command again to continue from its finished shards"
    assert (
        json.loads(stdout)["sentence"]
        == f"interrupted: the job on FlinkRunner was canceled; {again}"
    )
    assert "Traceback" not in stderr
    wait_until(lambda: newest_job()["state"] == "CANCELED", 60)


def test_no_one_waits(
    flink, run_to_its_end, reference, collection, through, in_workers, wait_until, tmp_path
):
    summary = tmp_path / "outcome.json"
    flags = [*through("PortableRunner"), *in_workers["EXTERNAL"], "--parallelism=1", "--no_wait"]
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
    flink, spawn, reference, collection, through, in_workers, tmp_path, runner, workers
):
    output = tmp_path / "flink"
    flags = [each for each in flags_for(collection, output) if not each.startswith("--threads")]
    process = spawn(
        *flags, *through(runner), *in_workers[workers], "--parallelism=2", "--writer=beam"
    )
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr
    line = json.loads(stdout)
    assert (line["status"], line["ledger"]) == ("written", reference.line["ledger"])
    for split in ("train", "test"):
        ours, theirs = (
            sorted(
                bytes(record)
                for path in folder.glob(f"{split}-*")
                for record in read_records(str(path))
            )
            for folder in (reference.output, output)
        )
        assert theirs == ours
