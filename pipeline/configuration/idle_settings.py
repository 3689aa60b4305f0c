"""Finds the settings that have no effect under the others, in one pass.

The rules stand at the fields (`schemas/idle_settings.py`). A source names its own idle settings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from recordmill.annotations.kinds import ID_FIELDS
from recordmill.schemas.idle_settings import IdleIf, Situation, marks_of, why_no_group
from recordmill.schemas.settings.dataset import DatasetSettings, ExampleLayout
from recordmill.schemas.settings.recipe import judge_changed_settings
from recordmill.transforms.inputs.sources.source import NamesClasses


@dataclass(frozen=True, slots=True)
class IdleSetting:
    """A setting that differs from its default, and has no effect.

    Attributes:
        path: its YAML key, with the keys above it.
        reason: why, as the end of a sentence.
        is_refused: whether the run must not start; otherwise it is only a note.
    """

    path: str
    reason: str
    is_refused: bool = True

    def __str__(self) -> str:
        if self.is_refused:
            return f"{self.path} has no effect, since {self.reason}: remove it"
        return f"{self.path} is not used, since {self.reason}"


def find_idle(settings: DatasetSettings, beam_writes: bool = False) -> list[IdleSetting]:
    """Finds the settings that have no effect because of others.

    Args:
        settings: what the dataset is, with a source that `settle` has completed.
        beam_writes: whether the files are those of `--writer=beam`.
    """
    now = describe_situation(settings, beam_writes)
    found = judge_changed_settings(settings, partial(_explain_idle, now))
    by_rules = [IdleSetting(path, reason) for path, reason in found]
    return [*by_rules, *_find_in_source(settings, now)]


def describe_situation(settings: DatasetSettings, beam_writes: bool = False) -> Situation:
    """Returns the facts that decide whether a setting has an effect."""
    layout, source, splits = ExampleLayout(settings), settings.source, settings.splits
    annotations = set(source.annotations())
    if settings.masks == "none":
        annotations.discard("masks")
    split: Literal["given", "one", "drawn"] = "drawn"
    if splits.given:
        split = "given"
    elif list(splits.fractions.values()) == [1]:
        split = "one"
    return Situation(
        holds_images=settings.holds_images,
        holds_rows=source.contents == "rows",
        gives_pixels=source.gives_pixels,
        may_give_pixels=source.may_give_pixels,
        gives_labels=source.gives_labels,
        annotations=frozenset(annotations),
        needs_pixels=layout.needs_pixels,
        unit=settings.unit,
        convention=layout.convention.title,
        stores_ids=not layout.fields.isdisjoint(ID_FIELDS),
        split=split,
        analyzes=settings.analyze,
        beam_writes=beam_writes,
    )


def _explain_idle(now: Situation, section: Any, name: str) -> str | None:
    """Returns why a field has no effect by the first of its rules that says so."""
    kind: Any = type(section)
    rules = marks_of(kind, IdleIf)[name]
    return next(filter(None, (mark.rule(section, now) for mark in rules)), None)


def _find_in_source(settings: DatasetSettings, now: Situation) -> Iterator[IdleSetting]:
    source = settings.source
    idle = dict(source.idle_settings())
    if not source.gives_labels and isinstance(source, NamesClasses):
        idle.setdefault("class_names", "the source gives no labels")
    why = why_no_group(now)
    if source.group_setting and why:
        idle[source.group_setting] = why
    for name, reason in idle.items():
        if settings.differs(f"source.{name}"):
            yield IdleSetting(f"source.{name}", reason)
    if settings.splits.from_source:
        return
    for name in source.split_settings:
        if settings.differs(f"source.{name}"):
            yield IdleSetting(f"source.{name}", "splits.from_source is not set", is_refused=False)
