import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from engines import ENGINES, Engine
from forked_python import ForkServer
from hypothesis import settings
from installed_wheel import build_wheel, install_wheel
from run_python import run_python

# The same examples on every run and every machine, and no failure because a machine is slow.
# `make test-all` takes many; to search for new ones: pytest --hypothesis-profile=default
settings.register_profile("few", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("many", deadline=None, derandomize=True, max_examples=300)
settings.load_profile("few")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--on-runner", action="store_true", help="convert on Beam's DirectRunner in every test"
    )
    parser.addoption(
        "--update-goldens",
        action="store_true",
        help="write tests/golden/expected anew: see CONTRIBUTING.md",
    )


@pytest.fixture(scope="module")
def eager_pipeline(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs pipelines with an in-memory evaluator instead of a runner, which takes 0.6 s of a
    processor for each of them, and verifies without child processes.

    A module names it if it converts. Tests that are marked `runner`, and all tests with
    --on-runner, have Beam's DirectRunner and child processes nevertheless.
    """
    import eager_beam
    from eager_children import EagerChild

    from recordmill.pipeline import attempt, runners
    from recordmill.pipeline.configuration.options import IN_PROCESS_RUNNERS
    from recordmill.reading import verify_processes

    make_pipeline, child_process = runners._make_pipeline, verify_processes.ChildProcess
    eager_beam.on_runner[0] = request.config.getoption("--on-runner")

    def make(runner: str, arguments: list[str]) -> tuple[object, bool]:
        if eager_beam.on_runner[0] or runner not in IN_PROCESS_RUNNERS or arguments:
            return make_pipeline(runner, arguments)
        return eager_beam.new_pipeline(), True

    def start_child() -> object:
        return child_process() if eager_beam.on_runner[0] else EagerChild()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runners, "_make_pipeline", make)
        patch.setattr(verify_processes, "ChildProcess", start_child)
        patch.setattr(attempt, "default_processes", lambda: 1)
        yield


@pytest.fixture(scope="module")
def cheap_fsync() -> Iterator[None]:
    """Lets the disk keep files in its cache, since no test turns the machine off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_network() -> Iterator[None]:
    """Fails a test that asks for another machine: what it gets depends on where it runs, or it
    waits for minutes."""
    find = socket.getaddrinfo

    def find_here(host: str | bytes | None, *arguments: object, **more: object) -> object:
        if host not in (
            None,
            "",
            "localhost",
            "127.0.0.1",
            "0.0.0.0",
            "::1",
            "::",
            socket.gethostname(),
        ):
            if threading.current_thread() is not threading.main_thread():
                # The product asks stores in threads, and goes on if they do not answer.
                raise socket.gaierror(socket.EAI_NONAME, f"tests have no network: {host!r}")
            if host == "github.com":
                # DirectRunner looks for Prism there, and goes on without it.
                raise socket.gaierror(socket.EAI_NONAME, "tests have no network")
            pytest.fail(f"this test asks the network for {host!r}")
        return find(host, *arguments, **more)

    with pytest.MonkeyPatch.context() as patch:
        # Google's clients look for its cloud around this machine.
        patch.setenv("NO_GCE_CHECK", "true")
        # They also ask for a bucket's region, in a thread that outlives the test and draws from the
        # random numbers that Hypothesis watches.
        patch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        patch.setattr(socket, "getaddrinfo", find_here)
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c() -> None:
    """Lets tests interrupt what they start, also where a shell has started pytest in the
    background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def ended_launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ends with a test what `launch` leaves to the end of the process for other runners.

    A module names it if it starts them in this process.
    """
    with ExitStack() as left:
        exit_handlers = SimpleNamespace(register=left.callback)
        monkeypatch.setattr("recordmill.pipeline.launch.atexit", exit_handlers)
        yield


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Starts processes that need not import everything first."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def choose_runner() -> Callable[[bool], None]:
    """Says whether what follows in this test is converted on DirectRunner."""
    import eager_beam

    def choose(on_runner: bool) -> None:
        eager_beam.on_runner[0] = on_runner

    return choose


@pytest.fixture(autouse=True)
def _runner_where_asked(
    request: pytest.FixtureRequest, choose_runner: Callable[[bool], None]
) -> Iterator[None]:
    always = request.config.getoption("--on-runner")
    choose_runner(always or request.node.get_closest_marker("runner") is not None)
    yield
    choose_runner(always)


@pytest.fixture(scope="session")
def start_engine() -> Iterator[Callable[[str], Engine]]:
    """`start_engine("flink")`: an engine all of whose processes run until the end of the session,
    whatever a test before has killed."""
    started: dict[str, Engine] = {}

    def start(name: str) -> Engine:
        engine = ENGINES[name]
        if not engine.is_wanted:
            pytest.skip(f"needs {name}, which takes minutes: make test-{name}")
        started[name] = engine
        engine.up()
        return engine

    yield start
    for engine in started.values():
        engine.down()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real collections that lie beside the repository on some machines."""
    folder = Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("../shared/data is absent")
    return folder


ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def run_command() -> Callable[[str, Path], subprocess.CompletedProcess[str]]:
    """Runs one command of the documentation in a folder, with this interpreter and this checkout.

    What begins with `python` or `recordmill` runs in this process. Tests of the commands themselves
    start new ones.
    """

    def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        if words[0].endswith(("python", "recordmill")):
            return run_python([Path(words[0]).name, *words[1:]], folder)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
        return subprocess.run(
            words,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def run_page(run_command) -> Callable[[str, Path], list[subprocess.CompletedProcess[str]]]:
    """Does what a page of the documentation says, in a folder, block after block; each must
    succeed.

    A `sh` block is run command by command, a `python` block as a script. A block with a file name
    behind its language (`yaml own.yaml`) becomes that file. Blocks without a language, and
    `console`, are for the eyes only.
    """

    def run(page: str, folder: Path) -> list[subprocess.CompletedProcess[str]]:
        text = (ROOT / page).read_text(encoding="utf-8")
        results = []
        for language, name, block in re.findall(
            r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL
        ):
            if name:
                (folder / name).write_text(block, encoding="utf-8")
            elif language == "python":
                (folder / "block.py").write_text(block, encoding="utf-8")
                results.append(run_command("python block.py", folder))
            elif language == "sh":
                for command in re.sub(r"\\\n\s*", "", block).strip().splitlines():
                    if command and not command.startswith("#"):
                        results.append(run_command(command, folder))
            assert not results or results[-1].returncode == 0, f"{block}\n{results[-1].stderr}"
        return results

    return run


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `bin` of an environment in which the wheel is installed."""
    return install_wheel(wheel, tmp_path_factory.mktemp("installed") / "environment")


@pytest.fixture(scope="session")
def offline() -> str:
    """A script that runs another one without looking for Google's credentials first."""
    return str(ROOT / "tests" / "offline.py")


@dataclass(frozen=True)
class LocalStore:
    """An object store on this machine that holds an empty bucket `recordmill`.

    Attributes:
        address: of its interface.
        environment: in which commands find it.
        log: a line a request.
    """

    address: str
    environment: dict[str, str]
    log: Path

    def requests(self) -> list[tuple[str, str]]:
        """Method and path, with the query, of each request so far; the log may lag behind the
        answers."""
        size = -1
        while size != (size := self.log.stat().st_size):
            time.sleep(0.3)
        # Some are colored.
        return re.findall(r'"(?:\x1b\[\d+m)*([A-Z]+) (\S+) HTTP/', self.log.read_text())


@contextmanager
def serve(
    command: list[str], log: Path, variables: Callable[[str], dict[str, str]]
) -> Iterator[LocalStore]:
    """Runs an emulator's command, which takes `--port`, until the end of the block."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    words = [sys.executable, *command, f"--port={port}", "--host=localhost"]
    address = f"http://localhost:{port}"
    with log.open("w") as file, subprocess.Popen(words, stdout=file, stderr=file) as process:
        try:
            for attempt in range(300):
                with socket.socket() as probe:
                    if probe.connect_ex(("localhost", port)) == 0:
                        break
                assert process.poll() is None, log.read_text()
                assert attempt < 299, "the store does not answer"
                time.sleep(0.1)
            yield LocalStore(address, {**os.environ, **variables(address)}, log)
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def google_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """An emulator of Google Cloud Storage."""
    pytest.importorskip(
        "gcp_storage_emulator", reason="no gcp-storage-emulator here: make test-stores"
    )
    # It serves one connection at a time and would let five wait, the others for seconds.
    start = "from http.server import HTTPServer; HTTPServer.request_queue_size = 256; import sys"
    start += "; from gcp_storage_emulator.__main__ import main; main(sys.argv[1:])"
    command = ["-c", start, "start", "--in-memory", "--default-bucket=recordmill"]
    log = tmp_path_factory.mktemp("google") / "log"
    with serve(command, log, lambda address: {"STORAGE_EMULATOR_HOST": address}) as store:
        yield store


@pytest.fixture(scope="session")
def amazon_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """An emulator of Amazon S3."""
    pytest.importorskip("moto", reason="no moto here: make test-stores")
    import boto3

    access = {
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    log = tmp_path_factory.mktemp("amazon") / "log"
    with serve(
        ["-m", "moto.server"], log, lambda address: {"AWS_ENDPOINT_URL_S3": address, **access}
    ) as store:
        keys = {
            "aws_access_key_id": "any",
            "aws_secret_access_key": "any",
            "region_name": "us-east-1",
        }
        boto3.client("s3", endpoint_url=store.address, **keys).create_bucket(Bucket="recordmill")
        yield store


@pytest.fixture
def tree():
    """`tree(folder)`: the files below a folder, by path, with their bytes."""

    def read(folder) -> dict[str, bytes]:
        root = Path(folder)
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }

    return read
