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

import shutil
import sys
from pathlib import Path
from typing import Any

from scripts import flink_packages, worker_pool
from scripts.cached_jars import CACHE
from scripts.cluster_command import ask_json, cluster_parser, run_command, show_processes
from scripts.local_processes import MissingError, Processes, find_program

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

JOB_SERVER_PORTS = ("job", "artifact", "expansion")

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

PROCESSES = Processes(RUN)


def up(task_managers: int = 1, slots: int = 2) -> None:
    """Starts what is not running yet.

    Raises:
        MissingError: something needed is missing, a port is taken, or a process ended at once.
    """
    jobs, flink = flink_packages.job_server_jar(), flink_packages.flink_jars()
    wanted = {f"task-manager-{number + 1}" for number in range(task_managers)}
    _check_layout(wanted, slots)
    conf = RUN / "conf"
    _configure(conf)
    (RUN / "slots").write_text(f"{slots}", encoding="utf-8")
    java = find_program("java", "a Java runtime, version 11 or 17,")
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    logging = f"-Dlog4j.configurationFile={conf / 'log4j.properties'}"
    flinks = [java, *opened, logging, "-cp", f"{flink}/*"]
    runtime = "org.apache.flink.runtime"
    configured = ["--configDir", str(conf)]
    master = f"{runtime}.entrypoint.StandaloneSessionClusterEntrypoint"
    PROCESSES.start(
        "job-manager",
        [*flinks, "-Xmx1g", master, *configured],
        ports=[PORTS["rest"], PORTS["rpc"]],
    )
    memory = ["-Xmx640m", "-XX:MaxDirectMemorySize=256m"]
    worker = [*flinks, *memory, f"{runtime}.taskexecutor.TaskManagerRunner", *configured]
    for name in sorted(wanted):
        own = [f"taskmanager.numberOfTaskSlots={slots}", f"taskmanager.resource-id={name}"]
        PROCESSES.start(name, [*worker, *(word for each in own for word in ("-D", each))])
    server = [java, "-jar", str(jobs), f"--flink-master=localhost:{PORTS['rest']}"]
    own_ports = [f"--{name}-port={PORTS[name]}" for name in JOB_SERVER_PORTS]
    PROCESSES.start(
        "job-server",
        [*server, *own_ports, f"--artifacts-dir={RUN / 'artifacts'}"],
        ports=[PORTS[name] for name in JOB_SERVER_PORTS],
    )
    worker_pool.start_pool(PROCESSES, PORTS["workers"])
    PROCESSES.wait_for(
        lambda: ask("overview")["slots-total"] == task_managers * slots, "the task managers"
    )


def down() -> None:
    """Ends what `up` started."""
    PROCESSES.end()
    for folder in ("tmp", "artifacts"):
        shutil.rmtree(RUN / folder, ignore_errors=True)


def ask(path: str) -> Any:
    """Returns what Flink's REST interface answers."""
    return ask_json(PORTS["rest"], path)


def _configure(conf: Path) -> None:
    conf.mkdir(parents=True, exist_ok=True)
    lines = [f"{key}: {value}" for key, value in CONFIGURATION.items()]
    (conf / "config.yaml").write_text(
        "\n".join([*lines, f"io.tmp.dirs: {RUN / 'tmp'}", ""]), encoding="utf-8"
    )
    (conf / "log4j.properties").write_text(LOGGING, encoding="utf-8")
    (RUN / "tmp").mkdir(exist_ok=True)


def _check_layout(wanted: set[str], slots: int) -> None:
    there = {name for name in PROCESSES.running() if name.startswith("task-manager-")}
    saved = RUN / "slots"
    if there - wanted or (there and saved.read_text(encoding="utf-8") != f"{slots}"):
        raise MissingError("another cluster is up: run scripts/flink down first")


def _say_free() -> str:
    overview = ask("overview")
    return f"{overview['slots-available']} of {overview['slots-total']} slots are free"


def _print_jar() -> None:
    sys.stdout.write(f"{flink_packages.job_server_jar()}\n")


def main() -> None:
    """Runs the command; exits with 1 and one sentence if it fails."""
    parser = cluster_parser("scripts/flink", __doc__)
    parser.add_argument(
        "--task-managers", type=int, default=1, metavar="N", help="processes (%(default)s)"
    )
    parser.add_argument(
        "--slots", type=int, default=2, metavar="N", help="slots of each (%(default)s)"
    )
    run_command(
        parser,
        {
            "up": lambda flags: up(flags.task_managers, flags.slots),
            "status": lambda _: show_processes(PROCESSES, "job-manager", _say_free),
            "jar": lambda _: _print_jar(),
            "down": lambda _: down(),
        },
    )


if __name__ == "__main__":
    main()
