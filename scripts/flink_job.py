"""Reads from Flink's REST interface how much a finished job's steps sent, and when they ended."""

from collections.abc import Callable, Mapping
from typing import Any

from scripts import flink_cluster

Job = Mapping[str, Any]


def newest_job(ask: Callable[[str], Any] = flink_cluster.ask) -> Job:
    """The job that began last, as `/jobs/<id>` answers."""
    jobs = ask("jobs/overview")["jobs"]
    return ask(f"jobs/{max(jobs, key=lambda job: job['start-time'])['jid']}")


def sent_bytes(job: Job) -> int:
    """Bytes that all steps of a job wrote for others to read."""
    return sum(vertex["metrics"]["write-bytes"] for vertex in job["vertices"])


def shuffled_bytes(job: Job, grouping: str) -> int:
    """Bytes that one grouping's elements took on their way to their keys.

    Raises:
        ValueError: the job has no step of that name that groups, or several.
    """
    vertices = {vertex["id"]: vertex for vertex in job["vertices"]}
    nodes = job["plan"]["nodes"]
    groups = [
        node
        for node in nodes
        if node["operator"] == "GroupReduce" and grouping in node["description"]
    ]
    if len(groups) != 1:
        raise ValueError(f"the job has {len(groups)} steps that group at {grouping}")
    return sum(vertices[edge["id"]]["metrics"]["write-bytes"] for edge in groups[0]["inputs"])


def seconds_between(job: Job, one: str, other: str) -> float:
    """Returns the seconds from the end of one step to the end of another.

    A step ends when the worker that took longest ends.

    Raises:
        ValueError: the job has no such step, or several.
    """
    return (_end_of(job, other) - _end_of(job, one)) / 1000


def _end_of(job: Job, step: str) -> int:
    found = [vertex for vertex in job["vertices"] if step in vertex["name"]]
    if len(found) != 1:
        raise ValueError(f"the job has {len(found)} steps named {step}")
    return int(found[0]["end-time"])
