"""The runners that are programs of their own: Prism, and clusters of Flink and Spark on this
machine. `make test-prism`, `test-flink` and `test-spark` ask for one of them."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Protocol

import pytest

from scripts import flink_cluster, flink_packages, spark_cluster
from scripts.local_processes import Processes

ROOT = Path(__file__).parents[2]


class Engine(Protocol):
    """A runner that is a program of its own."""

    @property
    def name(self) -> str:
        """Its name in marks and make targets."""

    @property
    def is_wanted(self) -> bool:
        """Whether the environment asks for it."""

    def flags(self, workers: str = "LOOPBACK") -> tuple[str, ...]:
        """Returns Beam's flags that send a job to it.

        Args:
            workers: `LOOPBACK`: the process that launches the job does its work. `EXTERNAL`: a
                pool of processes does, which only clusters have.
        """

    def up(self) -> None:
        """Starts what is not running, whatever a test before has killed."""

    def down(self) -> None:
        """Ends what `up` started."""


class PrismEngine:
    """Prism, which each pipeline starts anew; `RECORDMILL_PRISM` names its binary."""

    name = "prism"

    @property
    def is_wanted(self) -> bool:
        return "RECORDMILL_PRISM" in os.environ

    def flags(self, workers: str = "LOOPBACK") -> tuple[str, ...]:
        assert workers == "LOOPBACK"
        binary = os.environ["RECORDMILL_PRISM"]
        return "--runner=PrismRunner", f"--prism_location={binary}", "--environment_type=LOOPBACK"

    def up(self) -> None:
        pass

    def down(self) -> None:
        pass


@dataclass(frozen=True)
class Cluster:
    """A cluster that `scripts/NAME` starts.

    Attributes:
        name: of the cluster, and of its script.
        module: of its script.
        executor: the process that does the parts of a job, and may be killed.
    """

    name: str
    module: ModuleType
    executor: str

    @property
    def is_wanted(self) -> bool:
        return f"RECORDMILL_{self.name.upper()}" in os.environ

    @property
    def folder(self) -> Path:
        """The logs of its processes."""
        return self.module.RUN

    @property
    def processes(self) -> Processes:
        return self.module.PROCESSES

    def flags(self, workers: str = "LOOPBACK") -> tuple[str, ...]:
        endpoint = f"--job_endpoint=localhost:{self.module.PORTS['job']}"
        return "--runner=PortableRunner", endpoint, *self.worker_flags(workers)

    def worker_flags(self, workers: str) -> tuple[str, ...]:
        if workers == "LOOPBACK":
            return ("--environment_type=LOOPBACK",)
        return (
            "--environment_type=EXTERNAL",
            f"--environment_config=localhost:{self.module.PORTS['workers']}",
            "--environment_cache_millis=60000",
        )

    def up(self, *words: str) -> None:
        self._run("up", *words)

    def down(self) -> None:
        self._run("down")

    def _run(self, *words: str) -> None:
        environment = {**os.environ, "PYTHON": sys.executable}
        subprocess.run([ROOT / "scripts" / self.name, *words], env=environment, check=True)


PRISM = PrismEngine()
FLINK = Cluster("flink", flink_cluster, "task-manager-1")
SPARK = Cluster("spark", spark_cluster, "worker")
ENGINES: dict[str, Engine] = {each.name: each for each in (PRISM, FLINK, SPARK)}


def marks_of(name: str) -> list[pytest.MarkDecorator]:
    """Returns the marks of tests on an engine whose work this process may do.

    Clusters end a job by closing the connection, of which a thread of Beam's worker complains.
    """
    complaint = "ignore::pytest.PytestUnhandledThreadExceptionWarning"
    return [getattr(pytest.mark, name), pytest.mark.filterwarnings(complaint)]


def flink_runner_flags(workers: str) -> tuple[str, ...]:
    """Returns the flags of FlinkRunner, which starts a job server of its own."""
    return (
        "--runner=FlinkRunner",
        f"--flink_master=localhost:{flink_cluster.PORTS['rest']}",
        f"--flink_job_server_jar={flink_packages.job_server_jar()}",
        *FLINK.worker_flags(workers),
    )
