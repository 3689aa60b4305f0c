"""Dataflow's runner against a local object store; `make test-dataflow` makes the environment that has both."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
LAUNCHER = Path(__file__).with_name("offline.py")

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
    pytest.importorskip("google.cloud.dataflow_v1beta3", reason="no apache-beam[gcp] here: make test-dataflow")
    return FLAGS


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An empty bucket `gs://recordmill` on this machine; gives the environment in which it is found."""
    pytest.importorskip("gcp_storage_emulator", reason="no gcp-storage-emulator here: make test-dataflow")
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("gcp-storage-emulator")), "start", f"--port={port}", "--in-memory"]
    log = tmp_path_factory.mktemp("store") / "log"
    with log.open("w") as file, subprocess.Popen([*command, "--host=localhost"], stdout=file, stderr=file) as process:
        address = f"http://localhost:{port}"
        client = storage.Client("my-project", AnonymousCredentials(), client_options={"api_endpoint": address})
        try:
            for attempt in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("localhost", port)) == 0:
                        break
                assert process.poll() is None, log.read_text()
                assert attempt < 99, "the store does not answer"
                time.sleep(0.1)
            client.create_bucket("recordmill")
            yield {**os.environ, "STORAGE_EMULATOR_HOST": address}
        finally:
            process.terminate()


@pytest.fixture
def bucket(store: dict[str, str]):
    """The bucket, by Google's own client."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    options = {"api_endpoint": store["STORAGE_EMULATOR_HOST"]}
    return storage.Client("my-project", AnonymousCredentials(), client_options=options).bucket("recordmill")


@pytest.fixture
def launch_offline(store: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script of the checkout that calls `pipeline.run.main()`, from a folder elsewhere, without credentials."""

    def run(script: str, *flags: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        command = [python, str(LAUNCHER), str(REPO / script) if script else "", *flags]
        return subprocess.run(
            command, cwd=tmp_path, env=store, capture_output=True, text=True, timeout=300, check=False
        )

    return run
