"""One conversion: what the launcher prepares, and a runner carries out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recordmill.pipeline.configuration.config import Layout
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.recipe import Recipe
from recordmill.schemas.settings.source import Input
from recordmill.transforms.planning.earlier_dataset import EarlierDatasets, EarlierNames
from recordmill.transforms.planning.runs import RunSettings

if TYPE_CHECKING:
    import apache_beam as beam

    from recordmill.schemas.dataset.outcome import Outcome


@dataclass(frozen=True)
class Job:
    """One conversion.

    Attributes:
        settings: what the dataset is.
        inputs: the folders and files to read.
        recipe: the settings that decide the plan's id.
        run: where and how to run.
        layout: the recognized layout of the inputs, if any.
        earlier: the earlier datasets, or their names if they are opened later.
    """

    settings: DatasetSettings
    inputs: tuple[Input, ...]
    recipe: Recipe
    run: RunSettings
    layout: Layout | None = None
    earlier: EarlierDatasets | EarlierNames = field(default_factory=EarlierDatasets)


BuildPipeline = Callable[["beam.Pipeline", Job], "beam.PCollection[Outcome]"]
"""Builds the pipeline of a job, as `pipeline.run.build` does."""
