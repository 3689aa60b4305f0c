"""A real Spark cluster on this machine: one worker of two cores, and a pool of worker processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from scripts.spark_cluster import PORTS
from scripts.worker_pool import ROOT


def scripts_spark(*words: str) -> None:
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run([ROOT / "scripts/spark", *words], env=environment, check=False)
    assert done.returncode == 0


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    if not os.environ.get("RECORDMILL_SPARK"):
        pytest.skip("needs a Spark cluster, which takes minutes: make test-spark")
    scripts_spark("up")
    yield
    scripts_spark("down")


@pytest.fixture
def spark(cluster: None) -> None:
    """All of the cluster runs, whatever a test before has killed."""
    scripts_spark("up")


@pytest.fixture(scope="session")
def bring_up(cluster: None) -> Callable[[], None]:
    return lambda: scripts_spark("up")


@pytest.fixture(scope="session")
def in_workers() -> dict[str, tuple[str, ...]]:
    """The flags that send a job to the cluster, by where its work is done."""
    server = ("--runner=PortableRunner", f"--job_endpoint=localhost:{PORTS['job']}")
    pool = (
        "--environment_type=EXTERNAL",
        f"--environment_config=localhost:{PORTS['workers']}",
        "--environment_cache_millis=60000",
    )
    return {"LOOPBACK": (*server, "--environment_type=LOOPBACK"), "EXTERNAL": (*server, *pool)}
