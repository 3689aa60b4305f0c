import pytest

from recordmill.transforms.shards import resources
from recordmill.transforms.shards.resources import available_processors, default_processes

GB = 10**9


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """`machine(processors, group, {path: text})`: a machine with the files of its control
    groups."""

    def make(count, group, files, memory=100 * GB):
        for path, text in {
            "proc/self/cgroup": group,
            "proc/meminfo": f"MemAvailable: {memory // 1024} kB",
            **files,
        }.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        monkeypatch.setattr(resources, "SYSTEM", tmp_path / "proc")
        monkeypatch.setattr(resources, "CGROUPS", tmp_path / "cgroup")
        monkeypatch.setattr(resources.os, "sched_getaffinity", lambda _: set(range(count)))

    return make


def test_without_limits_it_is_one_for_each_processor(machine):
    machine(16, "", {})
    assert (available_processors(), default_processes()) == (16, 16)
    machine(1, "", {})
    assert (available_processors(), default_processes()) == (1, 1)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [("max 100000", 16), ("400000 100000", 4), ("150000 100000", 2), ("20000 100000", 1)],
)
def test_the_quota_of_a_group_of_version_2(machine, limit, expected):
    machine(16, "0::/\n", {"cgroup/cpu.max": limit})
    assert (available_processors(), default_processes()) == (expected, expected)


def test_the_least_quota_of_the_groups_around_it(machine):
    files = {"cgroup/jobs/cpu.max": "300000 100000", "cgroup/jobs/one/cpu.max": "max 100000"}
    machine(16, "0::/jobs/one\n", files)
    assert available_processors() == 3


def test_the_quota_of_a_group_of_version_1(machine):
    folder = "cgroup/cpu/docker/1"  # a link to cpu,cpuacct
    files = {f"{folder}/cpu.cfs_quota_us": "250000", f"{folder}/cpu.cfs_period_us": "100000"}
    machine(16, "5:cpu,cpuacct:/docker/1\n0::/\n", files)
    assert available_processors() == 3
    files[f"{folder}/cpu.cfs_quota_us"] = "-1"
    machine(16, "5:cpu,cpuacct:/docker/1\n0::/\n", files)
    assert available_processors() == 16


@pytest.mark.parametrize(
    ("group", "path"),
    [("0::/\n", "cgroup/memory.max"), ("4:memory:/a\n", "cgroup/memory/a/memory.limit_in_bytes")],
)
def test_each_further_process_needs_memory(machine, group, path):
    machine(16, group, {path: f"{GB}"})
    assert (available_processors(), default_processes()) == (16, 4)
    machine(16, group, {path: "max"})
    assert default_processes() == 16
    machine(16, group, {path: "max"}, memory=GB // 5)
    assert default_processes() == 1
