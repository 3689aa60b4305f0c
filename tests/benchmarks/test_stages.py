import json
import subprocess
import sys

import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from benchmarks import measure, photographs, stages


def run(*words):
    command = [sys.executable, "-m", "benchmarks.stages", *map(str, words)]
    return subprocess.run(command, cwd=measure.ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_run_tells_its_stages_and_flows(tmp_path):
    images = photographs.make(60, tmp_path / "work", size=(64, 48), classes=3)
    done = run("--input", images, "--output", tmp_path / "out", "--set", "shards.count=2")
    assert done.returncode == 0, done.stderr
    outcome, costs = map(json.loads, done.stdout.splitlines())
    assert outcome["ledger"]["written"] == 60
    found = costs["stages"]
    assert list(found) == [stage for stage in stages.STAGES if stage in found]
    assert {"starting", "listing", "publishing"} <= set(found)
    assert all(
        stage["cpu"] >= 0 and stage["seconds"] > 0 and stage["peak_rss"] > 0
        for stage in found.values()
    )
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    written = sum(path.stat().st_size for path in files if path.suffix in (".tfrecord", ".jsonl"))
    assert sum(stage["written"] for stage in found.values()) >= written
    flows = costs["flows"]
    elements = {step: flow["elements"] for step, flow in flows.items()}
    assert elements["Convert/ListReferences/FindImages"] == 1
    assert (
        elements["Convert/PlanShards/Map(plan_dataset)"]
        == elements["Convert/PublishDataset/GatherReports/InjectDefault"]
        == 1
    )
    assert (
        elements["Convert/ShuffleReferences/GroupByShard"]
        == elements["Convert/ConvertShards/ParDo(_ConvertShard)"]
        == 4
    )
    assert 60 * 100 < flows["Convert/ShuffleReferences/GroupByShard"]["bytes"] < 60 * 500


@pytest.mark.slow
def test_a_run_that_fails_tells_nothing_but_that(tmp_path):
    (tmp_path / "empty").mkdir()
    done = run("--input", tmp_path / "empty", "--output", tmp_path / "out")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 1


def test_bytes_are_those_of_the_step_that_gave_them():
    root = beam.Pipeline(runner=FnApiRunner())
    texts = root | "Start" >> beam.Create(["abc", "de", "f"], reshuffle=False)
    texts | "Double" >> beam.Map(lambda text: text + text).with_output_types(str)
    steps = stages.steps_by_output(root)
    result = root.run()
    result.wait_until_finish()
    found = stages.flows(result.monitoring_infos(), steps)
    assert found["Double"].elements == 3
    # The texts, their lengths, and what Beam says of each element.
    assert found["Double"].bytes == 12 + 3 * (1 + 12)
