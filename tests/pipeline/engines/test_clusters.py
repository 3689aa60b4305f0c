"""What happens on a cluster when something dies."""

import json
import signal

from cluster_runs import assert_same, finished_shards, flags_for


def test_a_process_of_the_cluster_that_is_killed(
    cluster, spawn, reference, collection, wait_until, tmp_path
):
    output = tmp_path / "dataset"
    process = spawn(*flags_for(collection, output, *cluster.flags("EXTERNAL")))
    wait_until(lambda: finished_shards(output) >= 2)
    cluster.processes.kill(cluster.executor, signal.SIGKILL)
    cluster.up()  # as a supervisor would
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["status"] == "published"
    assert "Traceback" not in stderr
    assert assert_same(output, reference)["run"]["shards_reused"] >= 2


def test_a_job_whose_workers_are_killed_fails_in_a_sentence_and_a_rerun_goes_on(
    cluster, spawn, run_to_its_end, reference, collection, wait_until, tmp_path
):
    output = tmp_path / "dataset"
    flags = cluster.flags("EXTERNAL")
    process = spawn(*flags_for(collection, output, *flags))
    wait_until(lambda: finished_shards(output) >= 2)
    cluster.processes.kill("workers", signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=600)
    assert (process.returncode, json.loads(stdout)["status"]) == (1, "failed")
    assert "Traceback" not in stderr
    assert len([line for line in stderr.splitlines() if line.startswith("error: ")]) == 1
    assert not (output / "recordmill.json").exists()
    survived = finished_shards(output)
    cluster.up()
    code, _, stderr = run_to_its_end(collection, output, *flags)
    assert code == 0, stderr
    assert assert_same(output, reference)["run"]["shards_reused"] >= survived >= 2
