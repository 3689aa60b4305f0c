"""Dataflow's runner against a local object store; `make test-dataflow` makes the environment that
has both."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]

FLAGS = [
    "--runner=DataflowRunner",
    "--project=my-project",
    "--region=europe-west1",
    "--temp_location=gs://recordmill/temp",
    f"--setup_file={REPO / 'setup.py'}",
]


@pytest.fixture(scope="session")
def dataflow_flags() -> list[str]:
    """What every job on Dataflow is given."""
    pytest.importorskip(
        "google.cloud.dataflow_v1beta3", reason="no apache-beam[gcp] here: make test-dataflow"
    )
    return FLAGS


@pytest.fixture(scope="session")
def store(google_store) -> dict[str, str]:
    """An empty bucket `gs://recordmill` on this machine; gives the environment in which it is
    found."""
    return google_store.environment


@pytest.fixture
def bucket(google_store):
    """The bucket, by Google's own client."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    options = {"api_endpoint": google_store.address}
    return storage.Client("my-project", AnonymousCredentials(), client_options=options).bucket(
        "recordmill"
    )


@pytest.fixture
def launch_offline(
    store: dict[str, str], offline, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script of the checkout that calls `pipeline.run.main()`, from a folder elsewhere,
    without credentials."""

    def run(
        script: str, *flags: str, python: str = sys.executable
    ) -> subprocess.CompletedProcess[str]:
        command = [python, offline, str(REPO / script) if script else "", *flags]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=store,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run
