"""A real Flink cluster on this machine: one task manager of two slots, and a pool of worker
processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from scripts import flink_packages
from scripts.flink_cluster import PORTS
from scripts.worker_pool import ROOT

ENVIRONMENT = {**os.environ, "PYTHON": sys.executable}
JOB_SERVER = ("--runner=PortableRunner", f"--job_endpoint=localhost:{PORTS['job']}")
WORKER_POOL = (
    "--environment_type=EXTERNAL",
    f"--environment_config=localhost:{PORTS['workers']}",
    "--environment_cache_millis=60000",
)


def scripts_flink(*words: str) -> None:
    done = subprocess.run([ROOT / "scripts/flink", *words], env=ENVIRONMENT, check=False)
    assert done.returncode == 0


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    if not os.environ.get("RECORDMILL_FLINK"):
        pytest.skip("needs a Flink cluster, which takes minutes: make test-flink")
    scripts_flink("up")
    yield
    scripts_flink("down")


@pytest.fixture
def flink(cluster: None) -> None:
    """All of the cluster runs, whatever a test before has killed."""
    scripts_flink("up")


@pytest.fixture
def four_slots(cluster: None) -> Iterator[Callable[[], None]]:
    """Two task managers of two slots each; called, it starts those that do not run."""

    def start() -> None:
        scripts_flink("up", "--task-managers", "2")

    scripts_flink("down")
    start()
    yield start
    scripts_flink("down")


@pytest.fixture(scope="session")
def bring_up(cluster: None) -> Callable[[], None]:
    return lambda: scripts_flink("up")


@pytest.fixture(scope="session")
def through() -> Callable[[str], tuple[str, ...]]:
    """The flags that send a job to the cluster: through its job server, or one that the launcher
    starts."""
    own = (
        "--runner=FlinkRunner",
        f"--flink_master=localhost:{PORTS['rest']}",
        f"--flink_job_server_jar={flink_packages.JOB_SERVER_FOLDER / 'job-server-1.jar'}",
    )
    return {"PortableRunner": JOB_SERVER, "FlinkRunner": own}.__getitem__


@pytest.fixture(scope="session")
def in_workers() -> dict[str, tuple[str, ...]]:
    return {"LOOPBACK": ("--environment_type=LOOPBACK",), "EXTERNAL": WORKER_POOL}
