"""Plans a run as the command does, in this process and without Beam."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from recordmill.pipeline.configuration.config import load_settings
from recordmill.pipeline.configuration.recognize_layout import fill_in
from recordmill.pipeline.configuration.resolve_settings import make_recipe, resolve_settings
from recordmill.schemas.errors import UsageError
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.source import Input
from recordmill.transforms.list_images import list_images
from recordmill.transforms.plan_shards import plan_dataset
from recordmill.transforms.planning.runs import RunSettings
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary


@dataclass(frozen=True)
class Planned:
    """What a run would do.

    Attributes:
        exit_code: that of the run.
        message: why it would stop.
        summary: what was listed; None if the run would stop before.
        notes: for the user.
        plan_id: the plan's id.
        recognized: the line that says what was recognized; empty if nothing was.
    """

    exit_code: int
    message: str = ""
    summary: Summary | None = None
    notes: tuple[str, ...] = ()
    plan_id: str = ""
    recognized: str = ""


def plan(folder: str | Path, *overrides: str) -> Planned:
    """Plans the conversion of a folder, with values of `--set`."""
    inputs = (Input(str(folder)),)
    said: list[str] = []
    try:
        loaded = load_settings(None, overrides, partial(fill_in, inputs, said.append))
        settings = resolve_settings(loaded.settings, inputs, "out", lambda _: None)
    except UsageError as error:
        return Planned(error.exit_code, str(error))
    summary = Summary()
    splitter = ImageSplitter(settings.seed, settings.splits, SplitCutoffs())
    listing = replace(settings.listing, left_by_user=loaded.left_by_user)
    summary.add(ReferenceBatch.of(list_images(inputs[0], settings.source, listing)), splitter)
    options = RunSettings(
        run_id="",
        output="out",
        outcome_file="",
        is_recognized=loaded.is_recognized,
        names_convention=loaded.names_convention,
        left_by_user=loaded.left_by_user,
    )
    made = plan_dataset(summary, SplitCutoffs(), settings, make_recipe(settings), options)
    decision, dataset = made.decision, made.dataset
    code = decision.exit_code if decision.action == "fail" else 0
    notes = (*dataset.notes,)
    return Planned(code, decision.sentence, dataset.summary, notes, dataset.plan_id, *said)


def content_of(planned: Planned) -> tuple[Any, ...]:
    """What a dataset would contain."""
    summary = planned.summary
    assert summary is not None
    boxes = summary.annotations["boxes"].total
    return summary.references, boxes, sorted(summary.labels), dict(summary.rejected)
