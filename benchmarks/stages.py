"""Runs the pipeline once from this process, and measures its costs by stage.

These are CPU, memory, and bytes read, written and passed on.

    python -m benchmarks.stages --input photos --output dataset

It takes the flags of `recordmill run` and works on Beam's in-process runner. A thread looks
at the pipeline's progress, and Beam itself counts what flows between its steps; for that alone
batches are measured exactly, where the pipeline tells Beam a rough size. The last line of standard
output is the costs as JSON, after the pipeline's own.
"""

import json
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import psutil
from apache_beam import coders
from apache_beam.metrics import monitoring_infos

from recordmill.pipeline.job import Job
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.dataset.outcome import Outcome
from recordmill.schemas.reference_batch import (
    ReferenceBatch,
    ReferenceBatchCoder,
    ShardBatch,
    ShardBatchCoder,
)
from recordmill.transforms.planning.progress import Progress

LOOK_EVERY = 0.005  # seconds
STAGES = ("starting", "listing", "shuffling", "converting", "publishing")
"""Until the pipeline runs; until the plan is made, and so with the summary; until the first image
is done; until every shard is finished; until the dataset is there."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stage took of this process and its descendants.

    Attributes:
        seconds: by the clock.
        cpu: seconds of user and system time.
        read: bytes that were asked of the system, whether or not a disk had to give them.
        written: bytes that were given to it.
        peak_rss: the most resident bytes that were seen of this process alone.
    """

    seconds: float = 0.0
    cpu: float = 0.0
    read: int = 0
    written: int = 0
    peak_rss: int = 0


def cost_until_now(process: psutil.Process) -> Cost:
    """Returns what a process and its descendants have taken since its start.

    Bytes are counted only where the system counts them (Linux).
    """
    cpu, read, written = 0.0, 0, 0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # what it took is its parent's by then
            times = each.cpu_times()
            cpu += times.user + times.system + times.children_user + times.children_system
            if hasattr(each, "io_counters"):
                counters = each.io_counters()
                read, written = read + counters.read_chars, written + counters.write_chars
    return Cost(time.time() - process.create_time(), cpu, read, written)


class Watch(threading.Thread):
    """Sees when the pipeline enters its stages, and what the process has cost until then."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._process = psutil.Process()
        self._ended = threading.Event()
        self._began: dict[str, Cost] = {"starting": Cost()}
        self._peaks = dict.fromkeys(STAGES, 0)
        self.progress: Progress | None = None

    def run(self) -> None:
        """Looks until it is stopped."""
        while not self._ended.wait(LOOK_EVERY):
            stage = self._stage_now()
            self._peaks[stage] = max(self._peaks[stage], self._process.memory_info().rss)
            if stage not in self._began:
                self._began[stage] = cost_until_now(self._process)

    def stop(self) -> dict[str, Cost]:
        """Each stage's cost, in their order; a stage too short to be seen has none."""
        self._ended.set()
        self.join()
        ends = [*list(self._began.values())[1:], cost_until_now(self._process)]
        return {
            stage: Cost(
                end.seconds - began.seconds,
                end.cpu - began.cpu,
                end.read - began.read,
                end.written - began.written,
                self._peaks[stage],
            )
            for (stage, began), end in zip(self._began.items(), ends, strict=True)
        }

    def _stage_now(self) -> str:
        progress = self.progress
        if progress is None or not progress.entered:
            return "starting"
        if progress.stage == "converting":
            return "converting" if progress.done else "shuffling"
        return progress.stage if progress.stage in STAGES else "publishing"


@dataclass(frozen=True, slots=True)
class Flow:
    """What a step passed on.

    Attributes:
        elements: how many.
        bytes: encoded, of all together: Beam's mean of those that it looked at, times their number.
    """

    elements: int
    bytes: int


def flows(infos: Iterable[Any], outputs: Mapping[str, str]) -> dict[str, Flow]:
    """What Beam counted, by the name of the step that gave it.

    Args:
        infos: of a finished run: Beam's monitoring infos.
        outputs: steps by the id of what they give.
    """
    elements: dict[str, int] = {}
    means: dict[str, float] = {}
    for info in infos:
        step = outputs.get(info.labels.get("PCOLLECTION", ""))
        if step is None:
            continue
        if info.urn == monitoring_infos.ELEMENT_COUNT_URN:
            elements[step] = monitoring_infos.extract_counter_value(info)
        elif info.urn == monitoring_infos.SAMPLED_BYTE_SIZE_URN:
            count, total, *_ = monitoring_infos.extract_distribution(info)
            means[step] = total / count if count else 0.0
    return {
        step: Flow(count, round(count * means.get(step, 0.0))) for step, count in elements.items()
    }


def steps_by_output(root: beam.Pipeline) -> dict[str, str]:
    """Returns the names of a pipeline's steps by the id of what they give.

    Composite steps give what those in them give.
    """
    found = {}
    for step in root.to_runner_api().components.transforms.values():
        made = set(step.outputs.values()) - set(step.inputs.values())
        if not step.subtransforms:
            found.update(dict.fromkeys(made, step.unique_name))
    return found


def _build(
    found: dict[str, Any], watch: Watch, root: beam.Pipeline, job: Job
) -> beam.PCollection[Outcome]:
    watch.progress = job.run.progress
    outcome = build(root, job)
    run = root.run

    def run_and_keep(*args: Any, **named: Any) -> Any:
        found["result"] = run(*args, **named)
        return found["result"]

    root.run = run_and_keep  # type: ignore[method-assign]  # the launcher keeps the result to itself
    found["steps"] = steps_by_output(root)
    return outcome


def _exact_size(self: coders.Coder, value: ReferenceBatch | ShardBatch) -> int:
    return len(self.encode(value))


def main() -> None:
    """Runs the pipeline once."""
    for coder in (ReferenceBatchCoder, ShardBatchCoder):  # asked for some batches only
        coder.estimate_size = _exact_size  # type: ignore[method-assign]
    found: dict[str, Any] = {}
    watch = Watch()
    watch.start()
    code = launch(sys.argv[1:], partial(_build, found, watch))
    costs = watch.stop()
    if not code:
        flow = flows(found["result"].monitoring_infos(), found["steps"])
        line = {
            "stages": {stage: asdict(cost) for stage, cost in costs.items()},
            "flows": {step: asdict(each) for step, each in flow.items()},
        }
        print(json.dumps(line), flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
