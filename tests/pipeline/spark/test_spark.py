"""The main job on a standalone Spark cluster: the bytes of DirectRunner's, and what happens when
something dies."""

import json
import os
import shutil
import signal

import pytest
from cluster_runs import SETTINGS, assert_same, finished_shards, flags_for

from scripts import spark_cluster
from tests.pipeline.conftest import OWN_CODE


@pytest.mark.parametrize("workers", ["LOOPBACK", "EXTERNAL"])
def test_the_bytes_of_direct_runner(
    spark, run_to_its_end, reference, collection, in_workers, tmp_path, workers
):
    output = tmp_path / "spark"
    code, line, stderr = run_to_its_end(collection, output, *in_workers[workers])
    assert (code, line["status"]) == (0, "published"), stderr
    assert assert_same(output, reference)["run"]["runner"] == "PortableRunner"


@pytest.mark.parametrize("workers", ["LOOPBACK", "EXTERNAL"])
def test_an_update(
    spark, run_to_its_end, convert, reference, collection, picture, in_workers, tmp_path, workers
):
    root = shutil.copytree(collection, tmp_path / "photos")
    output = shutil.copytree(reference.output, tmp_path / "old")
    (root / "cat" / "new.jpg").write_bytes(picture("new"))
    os.utime(root / "cat" / "new.jpg", (1_700_000_000, 1_700_000_000))
    rebuilt = convert(root, settings=SETTINGS, output=tmp_path / "rebuilt")
    code, line, stderr = run_to_its_end(root, output, *in_workers[workers], "--update")
    assert (code, line["status"]) == (0, "published"), stderr
    marker = assert_same(output, rebuilt)
    assert marker["run"]["images_reused"] == marker["ledger"]["written"] - 1


def test_look_alikes_and_functions(
    spark, convert, convert_in_child, look_alikes, in_workers, tmp_path
):
    one = convert(look_alikes, settings=OWN_CODE, output=tmp_path / "direct")
    flags = in_workers["LOOPBACK"]
    other = convert_in_child(look_alikes, *flags, settings=OWN_CODE, output=tmp_path / "spark")
    assert (one.code, other.code, other.errors) == (0, 0, [])
    assert_same(tmp_path / "spark", one)


def test_a_worker_that_is_killed(
    spark, bring_up, spawn, reference, collection, in_workers, wait_until, tmp_path
):
    output = tmp_path / "spark"
    process = spawn(*flags_for(collection, output, *in_workers["EXTERNAL"]))
    wait_until(lambda: finished_shards(output) >= 2)
    spark_cluster.PROCESSES.kill("worker", signal.SIGKILL)
    bring_up()  # as a supervisor would
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["status"] == "published"
    assert "Traceback" not in stderr
    assert assert_same(output, reference)["run"]["shards_reused"] >= 2


def test_a_job_whose_workers_are_killed_fails_in_a_sentence_and_a_rerun_goes_on(
    spark, bring_up, spawn, run_to_its_end, reference, collection, in_workers, wait_until, tmp_path
):
    output = tmp_path / "spark"
    process = spawn(*flags_for(collection, output, *in_workers["EXTERNAL"]))
    wait_until(lambda: finished_shards(output) >= 2)
    spark_cluster.PROCESSES.kill("workers", signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=600)
    assert (process.returncode, json.loads(stdout)["status"]) == (1, "failed")
    assert "Traceback" not in stderr
    assert len([line for line in stderr.splitlines() if line.startswith("error: ")]) == 1
    assert not (output / "recordmill.json").exists()
    survived = finished_shards(output)
    bring_up()
    code, _, stderr = run_to_its_end(collection, output, *in_workers["EXTERNAL"])
    assert code == 0, stderr
    assert assert_same(output, reference)["run"]["shards_reused"] >= survived >= 2


def test_ctrl_c_cancels_the_job(spark, spawn, collection, in_workers, wait_until, tmp_path):
    output = tmp_path / "spark"
    process = spawn(*flags_for(collection, output, *in_workers["EXTERNAL"]))
    wait_until(lambda: finished_shards(output) >= 1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    # The job server of Spark ends the job; PortableRunner does not tell the launcher so.
    assert json.loads(stdout)["sentence"] == (
        "interrupted: the job on PortableRunner may go on: look there, and stop it if it runs"
    )
    log = spark_cluster.RUN / "job-server.log"
    wait_until(lambda: "Canceling job invocation" in log.read_text(encoding="utf-8"), 60)
    wait_until(lambda: spark_cluster.cores_in_use() == 0, 60)
    assert not (output / "recordmill.json").exists()
