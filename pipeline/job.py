"""What a conversion is built from."""

from dataclasses import dataclass

from recordmill.transforms.dataset_settings import DatasetSettings
from recordmill.transforms.list_images import Input
from recordmill.transforms.run_settings import RunSettings


@dataclass(frozen=True)
class Job:
    """One conversion.

    Attributes:
        settings: what the dataset is.
        inputs: what is read.
        run: where and how it works.
    """

    settings: DatasetSettings
    inputs: tuple[Input, ...]
    run: RunSettings
