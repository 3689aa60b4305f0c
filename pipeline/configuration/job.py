"""The definition of a conversion."""

from dataclasses import dataclass

from recordmill.pipeline.configuration.recognise_layout import Layout
from recordmill.schemas.settings.dataset import DatasetSettings, Recipe
from recordmill.schemas.settings.source import Input
from recordmill.transforms.planning.run_settings import RunSettings


@dataclass(frozen=True)
class Job:
    """One conversion.

    Attributes:
        settings: what the dataset is.
        inputs: the folders and files to read.
        recipe: the settings that decide the plan's id.
        run: where and how to run.
        layout: the recognised layout of the inputs, if any.
    """

    settings: DatasetSettings
    inputs: tuple[Input, ...]
    recipe: Recipe
    run: RunSettings
    layout: Layout | None = None
