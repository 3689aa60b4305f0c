"""The processes of scripts/flink: started once, known again, ended with all that they started;
nobody else's."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from scripts import flink_cluster
from scripts.flink_packages import MissingError

SLEEP = "import time; time.sleep(600)"
FAMILY = (
    "import subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', 'import time; "
    "time.sleep(600)']);"
    "sys.stdout.write(f'{child.pid}\\n'); sys.stdout.flush(); time.sleep(600)"
)


@pytest.fixture
def place(monkeypatch, tmp_path):
    """Its folder; what is left running in it is ended."""
    monkeypatch.setattr(flink_cluster, "RUN", tmp_path)
    yield tmp_path
    flink_cluster.down()


def start_apart(name, script):
    """As `up` does, in a process that ends, so that what it starts is nobody's child here."""
    code = (
        "import sys, pathlib; from scripts import flink_cluster as c;"
        "c.RUN = pathlib.Path(sys.argv[1]); c._start(sys.argv[2], [sys.executable, '-c', "
        "sys.argv[3]])"
    )
    words = [
        sys.executable,
        "-W",
        "ignore::ResourceWarning",
        "-c",
        code,
        flink_cluster.RUN,
        name,
        script,
    ]
    subprocess.run(words, check=True)
    return int((flink_cluster.RUN / f"{name}.pid").read_text().split()[0])


def alive(pid):
    done = subprocess.run(
        ["ps", "-o", "stat=", "-p", f"{pid}"], capture_output=True, text=True, check=False
    )
    return bool(done.stdout.strip()) and not done.stdout.strip().startswith("Z")


def test_a_process_is_started_once_and_ended(place):
    pid = start_apart("job-manager", SLEEP)
    assert flink_cluster.running() == ["job-manager"]
    assert start_apart("job-manager", SLEEP) == pid
    flink_cluster.down()
    assert not alive(pid)
    assert flink_cluster.running() == []
    assert not (place / "job-manager.pid").exists()
    flink_cluster.down()


def test_what_a_process_started_ends_with_it(place):
    start_apart("workers", FAMILY)
    flink_cluster.wait_for(lambda: (place / "workers.log").read_text().endswith("\n"), "the child")
    child = int((place / "workers.log").read_text())
    assert alive(child)
    flink_cluster.kill("workers", signal.SIGKILL)
    flink_cluster.wait_for(lambda: not alive(child), "the end of the child")


def test_another_process_with_the_same_number_is_left_alone(place):
    stranger = subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True)
    try:
        (place / "job-server.pid").write_text(f"{stranger.pid} Thu Jan  1 00:00:00 1970")
        assert flink_cluster.running() == []
        flink_cluster.down()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_that_ends_at_once_is_reported_with_its_log(place, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setitem(flink_cluster.PORTS, "job", server.getsockname()[1])
    with pytest.raises(
        MissingError, match=r"the job-server ended with exit code 3: see .*job-server\.log"
    ):
        flink_cluster._start(
            "job-server", [sys.executable, "-c", "raise SystemExit(3)"], ports=("job",)
        )


def test_a_port_of_another_process(place, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setitem(flink_cluster.PORTS, "rest", server.getsockname()[1])
        with pytest.raises(
            MissingError, match="which the job-manager needs, is taken by another process"
        ):
            flink_cluster._start("job-manager", ["true"], ports=("rest",))


def test_another_layout_is_refused_while_task_managers_run(place):
    start_apart("task-manager-2", SLEEP)
    (place / "slots").write_text("1")
    flink_cluster._check_layout({"task-manager-1", "task-manager-2"}, 1)
    for wanted, slots in (({"task-manager-1"}, 1), ({"task-manager-1", "task-manager-2"}, 2)):
        with pytest.raises(MissingError, match="run scripts/flink down first"):
            flink_cluster._check_layout(wanted, slots)


def test_flink_is_asked(monkeypatch):
    class Flink(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"path": self.path}).encode())

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Flink) as server:
        monkeypatch.setitem(flink_cluster.PORTS, "rest", server.server_port)
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        assert flink_cluster.ask("jobs/overview") == {"path": "/jobs/overview"}
        thread.join()


def test_the_cache_is_where_the_user_says(tmp_path):
    words = [sys.executable, "-c", "from scripts.flink_packages import CACHE; print(CACHE)"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(tmp_path / "recordmill")
