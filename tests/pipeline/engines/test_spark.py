"""The main job on a standalone Spark cluster."""

import json
import signal

import pytest
from cluster_runs import assert_same, finished_shards, flags_for

from scripts import spark_cluster

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("ended_launches")]


@pytest.mark.parametrize("workers", ["LOOPBACK", "EXTERNAL"])
def test_the_bytes_of_direct_runner(
    spark, run_to_its_end, reference, collection, tmp_path, workers
):
    output = tmp_path / "spark"
    code, line, stderr = run_to_its_end(collection, output, *spark.flags(workers))
    assert (code, line["status"]) == (0, "published"), stderr
    assert assert_same(output, reference)["run"]["runner"] == "PortableRunner"


def test_ctrl_c_cancels_the_job(spark, spawn, collection, wait_until, tmp_path):
    output = tmp_path / "spark"
    process = spawn(*flags_for(collection, output, *spark.flags("EXTERNAL")))
    wait_until(lambda: finished_shards(output) >= 1)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    # The job server of Spark ends the job; PortableRunner does not tell the launcher so.
    assert json.loads(stdout)["message"] == (
        "interrupted: the job on PortableRunner may go on: look there, and stop it if it runs"
    )
    log = spark.folder / "job-server.log"
    wait_until(lambda: "Canceling job invocation" in log.read_text(encoding="utf-8"), 60)
    wait_until(lambda: spark_cluster.cores_in_use() == 0, 60)
    assert not (output / "recordmill.json").exists()
