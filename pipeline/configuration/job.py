"""The definition of a conversion."""

from dataclasses import dataclass

from recordmill.pipeline.configuration.recognise_layout import Layout
from recordmill.schemas.settings.listing import Input
from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.run_settings import RunSettings


@dataclass(frozen=True)
class Job:
    """One conversion.

    Attributes:
        settings: the description of the dataset.
        inputs: the inputs.
        run: where and how it runs.
        layout: the recognised layout of the inputs, if any.
    """

    settings: DatasetSettings
    inputs: tuple[Input, ...]
    run: RunSettings
    layout: Layout | None = None
