"""A standalone Flink cluster on this machine.

    scripts/flink up        # one task manager of two slots
    scripts/flink status    # the running processes
    scripts/flink jar       # the path of the job server's jar, for --flink_job_server_jar
    scripts/flink down

The cluster consists of a job manager, task managers, Beam's job server and a pool of Python
workers. `up` starts what is not running, so it can be repeated, and restarts a task manager that
was killed. `down` ends only what `up` started. Downloads and the cluster's logs are in
$XDG_CACHE_HOME/recordmill.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from scripts import flink_packages
from scripts.flink_packages import CACHE, MissingError

RUN = CACHE / "flink-run"
"""Configuration, logs, and one file per process."""

PORTS = {
    "rest": 8081,
    "rpc": 6123,
    "job": 8099,
    "artifact": 8098,
    "expansion": 8097,
    "workers": 50000,
}
"""All of them on this machine's loopback."""

CONFIGURATION = {
    "jobmanager.rpc.address": "localhost",
    "jobmanager.rpc.port": PORTS["rpc"],
    "jobmanager.bind-host": "localhost",
    "jobmanager.memory.process.size": "1600m",
    "taskmanager.host": "localhost",
    "taskmanager.bind-host": "localhost",
    "taskmanager.cpu.cores": 2,
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.task.heap.size": "512m",
    "taskmanager.memory.task.off-heap.size": "0m",
    "taskmanager.memory.managed.size": "512m",
    "taskmanager.memory.network.min": "128m",
    "taskmanager.memory.network.max": "128m",
    # Of 32 KB, for each of a dozen exchanges at once.
    "taskmanager.network.sort-shuffle.min-buffers": 64,
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "192m",
    "taskmanager.memory.jvm-overhead.max": "192m",
    "rest.address": "localhost",
    "rest.bind-address": "localhost",
    "rest.port": PORTS["rest"],
    "parallelism.default": 1,
    # Without compression, Flink measures the bytes that were sent.
    "taskmanager.network.batch-shuffle.compression.enabled": "false",
    # A lost task manager is noticed within seconds, and another one repeats its work. With a
    # timeout of 10 s, one that merely got no processor time on a busy machine was given up, too.
    "heartbeat.interval": 2_000,
    "heartbeat.timeout": 20_000,
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 3,
    "restart-strategy.fixed-delay.delay": "1 s",
}

LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.name = console
appender.console.type = CONSOLE
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss,SSS} %-5p %c{1} %m%n
"""

OPENED = (
    "java.lang",
    "java.util",
    "java.net",
    "java.io",
    "java.nio",
    "java.lang.reflect",
    "java.text",
    "java.time",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
)
"""The packages that Flink's own start scripts open to it."""

WORKER_POOL = """
from apache_beam.runners.worker import worker_pool_main as pool


def stop_worker(self, request, _):
    return pool.beam_fn_api_pb2.StopWorkerResponse()


pool.BeamFnExternalWorkerPoolServicer.StopWorker = stop_worker
pool.main()
"""
"""A worker pool of Beam whose workers end when their task manager closes the connection.

Each task manager numbers its workers from 1-1. If two share a pool, the original stops a worker of
the wrong one.
"""

SECONDS_TO_START = 60.0
SECONDS_TO_END = 10.0


def up(task_managers: int = 1, slots: int = 2) -> None:
    """Starts what is not running yet.

    Raises:
        MissingError: something needed is missing, a port is taken, or a process ended at once.
    """
    jobs, flink = flink_packages.job_server_jar(), flink_packages.flink_jars()
    wanted = {f"task-manager-{number + 1}" for number in range(task_managers)}
    _check_layout(wanted, slots)
    conf = RUN / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    lines = [f"{key}: {value}" for key, value in CONFIGURATION.items()]
    (conf / "config.yaml").write_text(
        "\n".join([*lines, f"io.tmp.dirs: {RUN / 'tmp'}", ""]), encoding="utf-8"
    )
    (conf / "log4j.properties").write_text(LOGGING, encoding="utf-8")
    (RUN / "tmp").mkdir(exist_ok=True)
    (RUN / "slots").write_text(f"{slots}", encoding="utf-8")
    java = flink_packages.find_program("java", "a Java runtime, version 11 or 17,")
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    logging = f"-Dlog4j.configurationFile={conf / 'log4j.properties'}"
    flinks = [java, *opened, logging, "-cp", f"{flink}/*"]
    runtime = "org.apache.flink.runtime"
    configured = ["--configDir", str(conf)]
    master = [
        *flinks,
        "-Xmx1g",
        f"{runtime}.entrypoint.StandaloneSessionClusterEntrypoint",
        *configured,
    ]
    _start("job-manager", master, ports=("rest", "rpc"))
    worker = [
        *flinks,
        "-Xmx640m",
        "-XX:MaxDirectMemorySize=256m",
        f"{runtime}.taskexecutor.TaskManagerRunner",
    ]
    for name in sorted(wanted):
        own = [f"taskmanager.numberOfTaskSlots={slots}", f"taskmanager.resource-id={name}"]
        _start(name, [*worker, *configured, *(word for each in own for word in ("-D", each))])
    ports = [f"--{name}-port={PORTS[name]}" for name in ("job", "artifact", "expansion")]
    server = [java, "-jar", str(jobs), f"--flink-master=localhost:{PORTS['rest']}", *ports]
    _start(
        "job-server",
        [*server, f"--artifacts-dir={RUN / 'artifacts'}"],
        ports=("job", "artifact", "expansion"),
    )
    if not is_running("workers"):
        path = flink_packages.worker_environment(RUN)
        pool = ["-c", WORKER_POOL, f"--service_port={PORTS['workers']}"]
        # The pool starts the first `python` on PATH, in a folder without our sources.
        search = {"PATH": f"{path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": ""}
        _start("workers", [str(path / "python"), *pool], ports=("workers",), environment=search)
    wait_for(lambda: ask("overview")["slots-total"] == task_managers * slots, "the task managers")


def down() -> None:
    """Ends what `up` started."""
    for name in running():
        kill(name)
    for folder in ("tmp", "artifacts"):
        shutil.rmtree(RUN / folder, ignore_errors=True)


def running() -> list[str]:
    """The names of the processes that `up` started and that are still running."""
    return [path.stem for path in sorted(RUN.glob("*.pid")) if is_running(path.stem)]


def is_running(name: str) -> bool:
    """Whether the process of that name is running, and is the one that `up` started."""
    return _group_of(name) is not None


def kill(name: str, how: signal.Signals = signal.SIGTERM) -> None:
    """Ends one process and all that it started; kills what does not end on its own."""
    group = _group_of(name)
    if group is not None:
        os.killpg(group, how)
        deadline = time.monotonic() + SECONDS_TO_END
        while is_running(name) and time.monotonic() < deadline:
            time.sleep(0.1)
        with suppress(ProcessLookupError):  # no process is left
            os.killpg(group, signal.SIGKILL)
    (RUN / f"{name}.pid").unlink(missing_ok=True)


def ask(path: str) -> Any:
    """What Flink's REST interface answers."""
    with urllib.request.urlopen(f"http://localhost:{PORTS['rest']}/{path}", timeout=10) as answer:
        return json.load(answer)


def wait_for(ready: Callable[[], bool], what: str) -> None:
    """Waits until something is ready.

    Raises:
        MissingError: it takes more than a minute.
    """
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            if ready():
                return
        except (OSError, KeyError):  # nothing answers yet, or the answer is incomplete
            pass
        if time.monotonic() > deadline:
            raise MissingError(
                f"{what} did not start within {SECONDS_TO_START:.0f} s: see the logs in {RUN}"
            )
        time.sleep(0.1)


def _check_layout(wanted: set[str], slots: int) -> None:
    there = {name for name in running() if name.startswith("task-manager-")}
    saved = RUN / "slots"
    if there - wanted or (there and saved.read_text(encoding="utf-8") != f"{slots}"):
        raise MissingError("another cluster is up: run scripts/flink down first")


def _start(
    name: str, command: list[str], ports: tuple[str, ...] = (), environment: Mapping[str, str] = {}
) -> None:
    """Starts a process in a group of its own unless it is running, and waits until it listens."""
    if is_running(name):
        return
    for port in ports:
        if _listens(PORTS[port]):
            raise MissingError(
                f"port {PORTS[port]}, which the {name} needs, is taken by another process: end "
                "that one"
            )
    with open(RUN / f"{name}.log", "wb") as log:
        process = subprocess.Popen(
            command,
            cwd=RUN,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    (RUN / f"{name}.pid").write_text(f"{process.pid} {_start_time(process.pid)}", encoding="utf-8")

    def listens() -> bool:
        if process.poll() is not None:
            raise MissingError(
                f"the {name} ended with exit code {process.returncode}: see {RUN / name}.log"
            )
        return all(_listens(PORTS[port]) for port in ports)

    wait_for(listens, f"the {name}")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _group_of(name: str) -> int | None:
    """The process group; None if the process is gone, even if another one has its number by now."""
    try:
        pid, _, began = (RUN / f"{name}.pid").read_text(encoding="utf-8").partition(" ")
    except FileNotFoundError:
        return None
    return int(pid) if began and began == _start_time(int(pid)) else None


def _start_time(pid: int) -> str:
    """The start time of a process; empty if there is none."""
    done = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", f"{pid}"], capture_output=True, text=True, check=False
    )
    state, _, began = done.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else began.strip()


def _status() -> None:
    names = running()
    for name in names:
        sys.stdout.write(f"{name}\n")
    if "job-manager" in names:
        overview = ask("overview")
        sys.stderr.write(
            f"{overview['slots-available']} of {overview['slots-total']} slots are free\n"
        )


def main() -> None:
    """Runs the command; exits with 1 and one sentence if it fails."""
    parser = argparse.ArgumentParser(
        "scripts/flink", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("up", "status", "jar", "down"))
    parser.add_argument(
        "--task-managers", type=int, default=1, metavar="N", help="processes (%(default)s)"
    )
    parser.add_argument(
        "--slots", type=int, default=2, metavar="N", help="slots of each (%(default)s)"
    )
    arguments = parser.parse_args()
    try:
        if arguments.command == "up":
            up(arguments.task_managers, arguments.slots)
        elif arguments.command == "down":
            down()
        elif arguments.command == "jar":
            sys.stdout.write(f"{flink_packages.job_server_jar()}\n")
        else:
            _status()
    except (MissingError, OSError) as error:
        sys.exit(f"scripts/flink: {error}")


if __name__ == "__main__":
    main()
