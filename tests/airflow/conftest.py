"""Airflow in an environment of its own, which `make test-airflow` makes, and Recordmill in `.venv`
beside it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
RECORDMILL = REPO / ".venv" / "bin" / "python"


@pytest.fixture(scope="session")
def run_airflow() -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_airflow(environment, "dags", "list")`: a command of Airflow in its home, and all that it
    prints."""

    def run(
        environment: dict[str, str], *words: str, within: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*within, sys.executable, "-m", "airflow", *words],
            env=environment,
            cwd=environment["AIRFLOW_HOME"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def airflow_home(run_airflow, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of an Airflow that knows our DAG: sqlite, no scheduler."""
    pytest.importorskip("airflow", reason="no apache-airflow here: make test-airflow")
    home = tmp_path_factory.mktemp("airflow")
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPO / "deploy" / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "RECORDMILL_PYTHON": str(RECORDMILL),
        "RECORDMILL_RETRY_SECONDS": "1",
    }
    done = run_airflow(environment, "db", "migrate")
    assert done.returncode == 0, done.stdout[-3000:]
    return environment


@pytest.fixture(scope="session")
def run_dag(
    run_airflow, airflow_home: dict[str, str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`airflow dags test` of our DAG on a date, where it may be without any network but this
    machine's own."""
    isolate = [
        "unshare",
        "--net",
        "--map-root-user",
        "sh",
        "-c",
        'ip link set lo up; exec "$@"',
        "sh",
    ]
    alone = (
        shutil.which("ip")
        and subprocess.run([*isolate, "true"], capture_output=True, check=False).returncode == 0
    )

    def run(date: str, params: dict, **variables: str) -> subprocess.CompletedProcess[str]:
        command = ("dags", "test", "recordmill", date, "--conf", json.dumps(params))
        environment = {**airflow_home, **variables}
        return run_airflow(environment, *command, within=isolate if alone else [])

    return run


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes, thirty images each; Airflow's environment has nothing to draw them with."""
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(30):
            pixels = bytes(
                (number * 7 + place * ord(label[0])) % 256 for place in range(400 * 300 * 3)
            )
            (tmp_path / "photos" / label / f"{number}.ppm").write_bytes(
                b"P6 400 300 255\n" + pixels
            )
    return tmp_path / "photos"
