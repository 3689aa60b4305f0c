"""Other DAGs run when there is a new version: the training DAG of docs/airflow.md, run by a
scheduler."""

import json
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
SECONDS_TO_WAIT = 300.0


@pytest.fixture
def environment(airflow_home, tmp_path):
    """An Airflow with our DAG and the training DAG, whose tasks a scheduler of this machine can
    run."""
    home = tmp_path / "airflow"
    shutil.copytree(REPO / "deploy" / "airflow", home / "dags")
    page = (REPO / "docs" / "airflow.md").read_text(encoding="utf-8")
    training = re.search(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    (home / "dags" / "training_dag.py").write_text(training, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return {
        **airflow_home,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API__PORT": f"{port}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        # The first request takes half a minute on a busy machine.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "120",
        "AIRFLOW__API_AUTH__JWT_SECRET": "only-this-test-signs-with-it" * 3,
    }


@pytest.fixture
def airflow(run_airflow, environment):
    """`airflow("db", "migrate")`: a command that must succeed."""

    def run(*words):
        done = run_airflow(environment, *words)
        assert done.returncode == 0, done.stdout[-3000:]

    return run


@contextmanager
def service(environment, name):
    """A service of Airflow, while the block runs."""
    home = Path(environment["AIRFLOW_HOME"])
    with open(home / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "airflow", name],
            env=environment,
            cwd=home,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


def wait_until(condition):
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while not condition():
        assert time.monotonic() < deadline, "timed out before reaching the step"
        time.sleep(0.5)


def listens(environment):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", int(environment["AIRFLOW__API__PORT"]))) == 0


def select(environment, query):
    with closing(sqlite3.connect(Path(environment["AIRFLOW_HOME"], "airflow.db"))) as database:
        return database.execute(query).fetchall()


def states_of_training(environment):
    rows = select(environment, "SELECT state FROM dag_run WHERE dag_id = 'training'")
    return [state for (state,) in rows]


@pytest.mark.slow
def test_a_training_dag_runs_once_for_two_runs_on_the_same_input(
    environment, airflow, photos, tmp_path
):
    params = json.dumps({"input": str(photos), "output": str(tmp_path / "dataset")})

    def convert(date):
        airflow("dags", "test", "recordmill", date, "--conf", params)
        return json.loads((tmp_path / f"dataset.{date}.outcome.json").read_bytes())

    airflow("db", "migrate")
    airflow("dags", "reserialize")
    airflow("dags", "unpause", "--yes", "training")
    first = convert("2026-03-04")
    assert first["status"] == "published"
    with service(environment, "api-server"):
        wait_until(lambda: listens(environment))
        with service(environment, "scheduler"):
            wait_until(lambda: states_of_training(environment) in (["success"], ["failed"]))
    version = json.loads((tmp_path / "dataset/recordmill.json").read_bytes())["current"]
    logs = Path(environment["AIRFLOW_HOME"], "logs").glob("dag_id=training/**/*.log")
    said = "".join(path.read_text(encoding="utf-8") for path in logs)
    trained = re.findall(r"training on [^\"]*", said)
    assert trained == [
        f"training on file://{tmp_path}/dataset, version {version}, plan {first['plan_id']}"
    ]
    assert convert("2026-03-05")["status"] == "kept"
    assert states_of_training(environment) == ["success"]
    assert select(environment, "SELECT count(*) FROM asset_event") == [(1,)]
    assert select(environment, "SELECT * FROM asset_dag_run_queue") == []
