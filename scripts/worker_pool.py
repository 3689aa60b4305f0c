"""A pool of Python workers for a cluster on this machine, with this checkout's built archive."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from scripts import cached_jars
from scripts.local_processes import Processes

ROOT = Path(__file__).resolve().parent.parent

WORKER_POOL = """
from apache_beam.runners.worker import worker_pool_main as pool


def stop_worker(self, request, _):
    return pool.beam_fn_api_pb2.StopWorkerResponse()


pool.BeamFnExternalWorkerPoolServicer.StopWorker = stop_worker
pool.main()
"""
"""A worker pool of Beam whose workers end when the process that uses them closes the connection.

Each task manager of Flink numbers its workers from 1-1. If two share a pool, the original stops a
worker of the wrong one.
"""


def start_pool(processes: Processes, port: int) -> None:
    """Starts a pool unless it is running."""
    if processes.is_running("workers"):
        return
    path = _make_environment(processes.folder)
    # The pool starts the first `python` on PATH, in a folder without our sources.
    search = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}
    command = [str(path / "python"), "-c", WORKER_POOL, f"--service_port={port}"]
    processes.start("workers", command, ports=[port], environment=search)


def _make_environment(folder: Path) -> Path:
    """Makes an environment with Recordmill as `--setup_file` ships it; returns its `bin` folder.

    It is built each time from the current checkout. The lock file only constrains versions: the
    archive decides what is installed.
    """
    environment, shipped = folder / "workers", folder / "shipped"
    for each in (environment, shipped):
        shutil.rmtree(each, ignore_errors=True)
    cached_jars.say("installing the workers' environment")
    with tempfile.TemporaryDirectory() as temporary:
        # From a copy: building leaves an egg-info, and one left by an earlier build adds files that
        # are gone.
        copy = Path(temporary, "copy")
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "out")
        )
        # The command by which Beam builds what --setup_file names.
        build = [sys.executable, "-m", "build", "--no-isolation", "--sdist"]
        cached_jars.run(*build, "--outdir", str(shipped), cwd=copy)
    (archive,) = shipped.glob("*.tar.gz")
    uv = [str(Path(sys.executable).with_name("uv")), "--quiet"]
    cached_jars.run(*uv, "venv", "--python", sys.executable, str(environment), cwd=folder)
    constraints = folder / "constraints.txt"
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pinned = [line.removesuffix("\\").strip() for line in lines if line and line[0] not in " #"]
    constraints.write_text("\n".join(pinned) + "\n", encoding="utf-8")
    install = [*uv, "pip", "install", "--python", str(environment / "bin/python")]
    cached_jars.run(*install, "--constraint", str(constraints), str(archive), cwd=folder)
    return environment / "bin"
