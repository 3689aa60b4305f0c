"""FindEarlier: opens the earlier datasets that a run names, once it runs."""

from dataclasses import dataclass, replace

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PBegin

from recordmill import storage
from recordmill.schemas.errors import RecordmillError
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.recipe import Recipe
from recordmill.transforms.planning.earlier_dataset import (
    EarlierDatasets,
    EarlierNames,
    open_earlier_datasets,
)
from recordmill.transforms.planning.plan import describe_before_listing
from recordmill.transforms.records.earlier_datasets import find_reusable

for _type in (EarlierNames, EarlierDatasets):
    coders.registry.register_coder(_type, coders.PickleCoder)


def find_fitting(
    earlier: EarlierDatasets, settings: DatasetSettings, recipe: Recipe
) -> EarlierDatasets:
    """Finds the datasets that fit the settings, with a note on each of the others."""
    reusable, notes = find_reusable(earlier.reuse, describe_before_listing(settings, recipe))
    return replace(earlier, reusable=reusable, notes=notes)


def find_earlier(names: EarlierNames, settings: DatasetSettings, recipe: Recipe) -> EarlierDatasets:
    """Opens the datasets that a run names; if one cannot be used, the result has the problem."""
    try:
        earlier = open_earlier_datasets(names, settings.unit, settings.seed)
    except RecordmillError as error:
        return EarlierDatasets(problem=str(error))
    except OSError as error:
        folder = names.against or names.updated or names.reuse[0]
        return EarlierDatasets(problem=storage.describe_output_error(error, folder))
    return find_fitting(earlier, settings, recipe)


@dataclass
class FindEarlier(beam.PTransform):
    """Opens the earlier datasets of a run.

    Attributes:
        names: their folders.
        settings: what the new dataset is.
        recipe: everything that the new plan's id stands for.
    """

    names: EarlierNames
    settings: DatasetSettings
    recipe: Recipe

    def expand(self, begin: PBegin) -> beam.PCollection[EarlierDatasets]:
        """Gives a PCollection of exactly one element."""
        find = beam.Map(find_earlier, self.settings, self.recipe)
        return begin.pipeline | beam.Create([self.names]) | "Open" >> find
