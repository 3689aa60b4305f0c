"""`analyze: true`: the launcher analyses the finished dataset in a separate process.

TensorFlow stays out of the launcher and the workers: it would cost each of them seconds and half a gigabyte, and a
process that ran TensorFlow Transform needs care at its end.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from recordmill.pipeline.configuration.job import Job
from recordmill.pipeline.terminal.terminal import Terminal
from recordmill.reading.analyze.analyze_dataset import check_tensorflow
from recordmill.schemas.dataset.file_names import TRANSFORM_FN
from recordmill.schemas.errors import RecordmillError, UsageError
from recordmill.schemas.outcome import FAILED, Outcome
from recordmill.storage.dataset_files import read_marker
from recordmill.storage.transform_fn import fits, read_note
from recordmill.storage.versions import current_folder

COMMAND = "recordmill analyze"


def check_analysis_is_possible(job: Job, here: bool) -> None:
    """Fails before any work if an analysis would be impossible.

    Args:
        job: the job.
        here: whether this process waits for the dataset and can analyse it.

    Raises:
        UsageError: TensorFlow Transform is not installed.
    """
    if job.settings.analyze and here and not job.run.preview:
        try:
            check_tensorflow()
        except RecordmillError as error:
            raise UsageError(f"analyze: true: {error}") from None


def analyze_output(outcome: Outcome, job: Job, terminal: Terminal) -> Outcome:
    """Analyses the dataset of an outcome if its settings request it; the outcome then includes the result."""
    if not job.settings.analyze or outcome.exit_code:
        return outcome
    output = job.run.output
    if outcome.status in ("submitted", "built"):
        return replace(outcome, notes=(*outcome.notes, f"once the dataset exists, run {COMMAND} {output}"))
    if outcome.status not in ("published", "kept"):
        return outcome
    output = current_folder(output)
    if fits(read_note(output), read_marker(output)):
        return replace(outcome, numbers={**outcome.numbers, "analysis": "kept"})
    terminal.say(f"{outcome.sentence}; now TensorFlow Transform analyses them")
    line = _run_analysis(output, terminal.muted)
    numbers = {**outcome.numbers, "analysis": line["status"]}
    if line["exit_code"]:
        sentence = f"{outcome.sentence}; the analysis failed: {line['sentence']}"
        return replace(outcome, exit_code=FAILED, sentence=sentence, numbers=numbers)
    return replace(outcome, sentence=f"{outcome.sentence}; {TRANSFORM_FN}/ has been made", numbers=numbers)


def _run_analysis(output: str, muted: bool) -> Mapping[str, Any]:
    """The last line of the analysis; if it ends without one, a substitute."""
    here = str(Path(__file__).parents[2])  # the package's folder, wherever this process was started
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))}
    command = [sys.executable, "-P", "-m", "recordmill.pipeline.analyze", "--", output]
    stderr = subprocess.DEVNULL if muted else None
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=stderr, check=False)
    try:
        line: dict[str, Any] = orjson.loads(ended.stdout)
    except orjson.JSONDecodeError:
        sentence = f"{COMMAND} {output} ended with exit code {ended.returncode}"
        return {"status": "failed", "exit_code": FAILED, "sentence": sentence}
    return {**line, "exit_code": line["exit_code"] or ended.returncode}
