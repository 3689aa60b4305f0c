"""What scripts/flink does beside starting processes."""

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from scripts import flink_cluster
from scripts.local_processes import MissingError, Processes, _start_time


def test_another_layout_is_refused_while_task_managers_run(monkeypatch, tmp_path):
    monkeypatch.setattr(flink_cluster, "RUN", tmp_path)
    monkeypatch.setattr(flink_cluster, "PROCESSES", Processes(tmp_path))
    # This process stands for a task manager.
    (tmp_path / "task-manager-2.pid").write_text(f"{os.getpid()} {_start_time(os.getpid())}")
    (tmp_path / "slots").write_text("1")
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
