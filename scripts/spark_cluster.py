"""A standalone Spark cluster on this machine.

    scripts/spark up        # one worker of two cores
    scripts/spark status    # the running processes
    scripts/spark down

The cluster consists of a master, a worker, Beam's job server and a pool of Python workers. `up`
starts what is not running, so it can be repeated, and restarts a worker that was killed. `down`
ends only what `up` started. Downloads and the cluster's logs are in $XDG_CACHE_HOME/recordmill.
"""

import shutil
from typing import Any

from scripts import cached_jars, worker_pool
from scripts.cached_jars import BEAM_JOB_SERVER, CACHE, JobServer
from scripts.cluster_command import ask_json, cluster_parser, run_command, show_processes
from scripts.local_processes import Processes, find_program

SPARK = "3.5.9"
SCALA = "2.12"

JOB_SERVER = JobServer(
    artifacts=(
        f"org.apache.beam:beam-runners-spark-3:{BEAM_JOB_SERVER}",
        f"org.apache.spark:spark-core_{SCALA}:{SPARK}",
        f"org.apache.spark:spark-sql_{SCALA}:{SPARK}",
        f"org.apache.spark:spark-streaming_{SCALA}:{SPARK}",
        # Maven would choose the 1.7 that Beam names, for which Spark has no logger.
        "org.slf4j:slf4j-api:2.0.7",
    ),
    main="org.apache.beam.runners.spark.SparkJobServerDriver",
    digest="bde309db5ca1b5edb7e67ed6643730ee41cf0c7ad21f1cf6a3a84cc96be71d8a",
)
"""The job server, and Spark itself, which runs with the same jars."""

JARS = CACHE / f"beam-spark-job-server-{BEAM_JOB_SERVER}-spark-{SPARK}"
RUN = CACHE / "spark-run"
"""Logs, and one file per process."""

PORTS = {
    "master": 7077,
    "master page": 8180,
    "worker page": 8181,
    "job": 8199,
    "artifact": 8198,
    "expansion": 8197,
    "workers": 50001,
}
"""All of them on this machine's loopback, and none of scripts/flink's."""

JOB_SERVER_PORTS = ("job", "artifact", "expansion")

CORES = 2

OPENED = (
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "sun.nio.ch",
    "sun.nio.cs",
    "sun.security.action",
    "sun.util.calendar",
)
"""The packages that Spark's own start scripts open to it."""

PROCESSES = Processes(RUN)


def up() -> None:
    """Starts what is not running yet.

    Raises:
        MissingError: something needed is missing, a port is taken, or a process ended at once.
    """
    if not JARS.is_dir():
        cached_jars.say("fetching Spark and Beam's job server for it from Maven Central")
    JOB_SERVER.fetch(JARS)
    if not PROCESSES.running():
        shutil.rmtree(RUN / "work", ignore_errors=True)  # with logs of an earlier cluster's jobs
    home = RUN / "home"
    home.mkdir(parents=True, exist_ok=True)
    jars = home / "jars"
    jars.unlink(missing_ok=True)
    jars.symlink_to(JARS / "lib")
    java = find_program("java", "a Java runtime, version 11 or 17,")
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    spark = [java, *opened, "-cp", f"{JARS / 'lib'}/*"]
    # With these, the worker finds the jars for the processes that run a job.
    environment = {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": SCALA,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }

    def start(name: str, command: list[str], ports: tuple[str, ...]) -> None:
        numbers = [PORTS[port] for port in ports]
        PROCESSES.start(name, [*spark, *command], ports=numbers, environment=environment)

    deploy, here = "org.apache.spark.deploy", ["--host", "localhost"]
    master = ["-Xmx512m", f"{deploy}.master.Master", *here, "--port", f"{PORTS['master']}"]
    page = ["--webui-port", f"{PORTS['master page']}"]
    start("master", [*master, *page], ("master", "master page"))
    worker = ["-Xmx512m", f"{deploy}.worker.Worker", *here, "--cores", f"{CORES}"]
    worker += ["--memory", "1g", "--work-dir", str(RUN / "work")]
    page = ["--webui-port", f"{PORTS['worker page']}"]
    address = f"spark://localhost:{PORTS['master']}"
    start("worker", [*worker, *page, address], ("worker page",))
    server = ["-Xmx1g", JOB_SERVER.main, f"--spark-master-url={address}", "--job-host=localhost"]
    server += [f"--{name}-port={PORTS[name]}" for name in JOB_SERVER_PORTS]
    server += [f"--artifacts-dir={RUN / 'artifacts'}"]
    start("job-server", server, JOB_SERVER_PORTS)
    worker_pool.start_pool(PROCESSES, PORTS["workers"])
    PROCESSES.wait_for(lambda: _ask_master()["cores"] == CORES, "the worker")


def down() -> None:
    """Ends what `up` started."""
    PROCESSES.end()
    shutil.rmtree(RUN / "artifacts", ignore_errors=True)


def cores_in_use() -> int:
    """Returns how many cores the jobs on the cluster have."""
    return int(_ask_master()["coresused"])


def _ask_master() -> Any:
    """Returns what the master's page in JSON says."""
    return ask_json(PORTS["master page"], "json/")


def _say_free() -> str:
    cores = _ask_master()["cores"]
    return f"{cores - cores_in_use()} of {cores} cores are free"


def main() -> None:
    """Runs the command; exits with 1 and one sentence if it fails."""
    run_command(
        cluster_parser("scripts/spark", __doc__),
        {
            "up": lambda _: up(),
            "status": lambda _: show_processes(PROCESSES, "master", _say_free),
            "down": lambda _: down(),
        },
    )


if __name__ == "__main__":
    main()
