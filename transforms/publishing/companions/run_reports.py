"""Makes the report of a run: of the dataset in place, or of what a failed run has converted."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from recordmill import storage
from recordmill.schemas.dataset.file_names import REPORT, SAMPLES
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.dataset.outcome import DatasetNumbers, FailedNumbers, Outcome
from recordmill.storage import dataset_files
from recordmill.transforms.planning.run_plan import RunPlan
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.publishing.companions.unpublished_dataset import describe_unpublished
from recordmill.transforms.publishing.staged_dataset import StagedDataset, move_shards

WriteReport = Callable[[str, Marker | None], str]
"""Writes the report of the dataset in a folder, whose marker may have been read already."""

DrawSamples = Callable[[str, Marker, Mapping[str, str]], bytes | None]
"""Draws images of the dataset in a folder, given its marker and the names that its files have there
by their names in the marker; returns None if none can be shown."""


@dataclass(frozen=True, slots=True)
class Reporters:
    """What makes pages and pictures of a dataset.

    Attributes:
        write_report: writes the report of the dataset in a folder.
        draw_samples: draws images of a dataset for its card.
    """

    write_report: WriteReport
    draw_samples: DrawSamples


def draw_card(dataset: StagedDataset, draw_samples: DrawSamples) -> tuple[bytes | None, list[str]]:
    """Draws the pictures of a dataset's card, if the settings ask for a report.

    Returns:
        The content of `samples.svg`, or None without pictures, and notes. A failure becomes a note.
    """
    if not dataset.settings.report or not dataset.settings.holds_images:
        return None, []
    stored_as = {name: staged for staged, name in move_shards(dataset)}
    try:
        return draw_samples(dataset.folder, dataset.marker, stored_as), []
    except Exception as error:  # noqa: BLE001  # the dataset is complete without it
        why = " ".join(str(error).split()) or type(error).__name__
        return None, [f"{SAMPLES} was not made ({why}): the data card has no pictures"]


def add_report(
    outcome: Outcome,
    numbers: DatasetNumbers,
    folder: str,
    marker: Marker | None,
    write_report: WriteReport,
) -> Outcome:
    """Makes the report of the dataset in place if that is new or has none.

    A failure becomes a note.
    """
    try:
        if outcome.status == "published" or not dataset_files.holds_report(folder):
            write_report(folder, marker)
    except Exception as error:  # noqa: BLE001  # the dataset is complete without it
        return _note_missing_report(outcome, folder, error, _make_again(folder))
    return replace(outcome, numbers=replace(numbers, report=REPORT))


def show_failure(
    outcome: Outcome,
    describe: Callable[[], StagedDataset],
    plan: RunPlan,
    run: RunSettings,
    write_report: WriteReport,
) -> Outcome:
    """Makes a report of what was converted and not published, and names it in the message.

    If it cannot be made, a note says so.

    Args:
        outcome: the failure.
        describe: describes what was converted; if it fails, the run still ends with its own
            failure.
        plan: the plan.
        run: the run.
        write_report: writes the report.
    """
    numbers, folder = outcome.numbers, plan.decision.staging
    if not isinstance(numbers, FailedNumbers):
        return outcome
    remedy = f"recordmill view {shlex.quote(folder)} shows what was converted"
    try:
        describe_unpublished(describe(), plan, run)
        remedy = _make_again(folder)
        path = write_report(folder, None)
    except Exception as error:  # noqa: BLE001  # the message says what failed the run
        return _note_missing_report(outcome, folder, error, remedy)
    message = f"{outcome.message}\n{path} shows what was converted"
    return replace(outcome, message=message, numbers=replace(numbers, report=path))


def _make_again(folder: str) -> str:
    return f"recordmill inspect {shlex.quote(folder)} --report makes it"


def _note_missing_report(outcome: Outcome, folder: str, error: Exception, remedy: str) -> Outcome:
    """Notes why the report of the dataset in a folder was not made, and what to do."""
    problem = str(error)
    if isinstance(error, OSError):
        problem = storage.explain_output_error(error, folder)
    why = " ".join(problem.split()) or type(error).__name__
    note = f"{REPORT} was not made ({why}): {remedy}"
    return replace(outcome, notes=(*outcome.notes, note))
