"""The processes of a cluster: started once, known again, ended with all that they started;
nobody else's."""

import signal
import socket
import subprocess
import sys

import pytest

from scripts.local_processes import MissingError, Processes, find_program

SLEEP = "import time; time.sleep(600)"
FAMILY = (
    "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; "
    "time.sleep(600)']);"
    "sys.stdout.write(f'{child.pid}\\n'); sys.stdout.flush(); time.sleep(600)"
)


@pytest.fixture
def processes(tmp_path):
    """The processes of a folder; what is left running is ended."""
    started = Processes(tmp_path)
    yield started
    started.end()


def start_apart(processes, name, script):
    """As `up` does, in a process that ends, so that what it starts is nobody's child here."""
    code = (
        "import sys, pathlib; from scripts.local_processes import Processes;"
        "Processes(pathlib.Path(sys.argv[1])).start(sys.argv[2], [sys.executable, '-c', "
        "sys.argv[3]])"
    )
    quiet = [sys.executable, "-W", "ignore::ResourceWarning", "-c", code]
    subprocess.run([*quiet, processes.folder, name, script], check=True)
    return int((processes.folder / f"{name}.pid").read_text().split()[0])


def alive(pid):
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", f"{pid}"], capture_output=True, text=True, check=False
    )
    return bool(done.stdout.strip()) and not done.stdout.strip().startswith("Z")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_process_is_started_once_and_ended(processes):
    pid = start_apart(processes, "job-manager", SLEEP)
    assert processes.running() == ["job-manager"]
    assert start_apart(processes, "job-manager", SLEEP) == pid
    processes.end()
    assert not alive(pid)
    assert processes.running() == []
    assert not (processes.folder / "job-manager.pid").exists()
    processes.end()


def test_what_a_process_started_ends_with_it(processes):
    start_apart(processes, "workers", FAMILY)
    log = processes.folder / "workers.log"
    processes.wait_for(lambda: log.read_text().endswith("\n"), "the child")
    child = int(log.read_text())
    assert alive(child)
    processes.kill("workers", signal.SIGKILL)
    processes.wait_for(lambda: not alive(child), "the end of the child")


def test_another_process_with_the_same_number_is_left_alone(processes):
    stranger = subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True)
    try:
        file = processes.folder / "job-server.pid"
        file.write_text(f"{stranger.pid} Thu Jan  1 00:00:00 1970")
        assert processes.running() == []
        processes.end()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_that_ends_at_once_is_reported_with_its_log(processes):
    expected = r"the job-server ended with exit code 3: see .*job-server\.log"
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    with pytest.raises(MissingError, match=expected):
        processes.start("job-server", command, ports=[free_port()])


def test_a_port_of_another_process(processes):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        expected = f"port {port}, which the job-manager needs, is taken by another process"
        with pytest.raises(MissingError, match=expected):
            processes.start("job-manager", ["true"], ports=[port])


def test_a_program_that_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError) as raised:
        find_program("java", "a Java runtime, version 11 or 17,")
    assert str(raised.value) == (
        "a Java runtime, version 11 or 17, is needed and java is not on PATH: install it"
    )
