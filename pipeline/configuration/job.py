"""The definition of a conversion."""

from dataclasses import dataclass

from recordmill.pipeline.configuration.recognise_layout import Layout
from recordmill.schemas.settings.dataset import DatasetSettings, Recipe
from recordmill.schemas.settings.listing import Input
from recordmill.transforms.planning.run_settings import RunSettings


@dataclass(frozen=True)
class Job:
    """One conversion.

    Attributes:
        settings: what the dataset is.
        inputs: what is read.
        recipe: what the plan's id stands for.
        run: where and how it works.
        layout: what was recognised in the inputs, if anything was.
    """

    settings: DatasetSettings
    inputs: tuple[Input, ...]
    recipe: Recipe
    run: RunSettings
    layout: Layout | None = None
