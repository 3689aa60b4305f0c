"""All files that describe a dataset, made while it is published.

A describer takes the dataset, complete in staging, and yields `(file name, content)` for each file that it has to say:
none where it has nothing to say of this dataset. The content comes in pieces, so that a file about every record needs
no more memory than one about none. The same dataset gives the same bytes: place, time and run are not in them.
"""

from collections.abc import Callable, Iterable, Iterator

from recordmill.transforms.publishing.companions.croissant import describe_croissant
from recordmill.transforms.publishing.companions.data_card import describe_card
from recordmill.transforms.publishing.companions.index_files import describe_index
from recordmill.transforms.publishing.companions.label_map_text import describe_label_map
from recordmill.transforms.publishing.companions.report_data import describe_report_data
from recordmill.transforms.publishing.companions.schema_text import describe_schema
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset
from recordmill.transforms.publishing.companions.tfds_files import describe_tfds

Describer = Callable[[StagedDataset], Iterable[tuple[str, Iterable[bytes]]]]

DESCRIBERS: tuple[Describer, ...] = (
    describe_card,
    describe_label_map,
    describe_tfds,
    describe_schema,
    describe_croissant,
    describe_report_data,
    describe_index,
)
"""All of them, in the order in which the marker lists their files."""


def describe_dataset(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """The name below the output folder and the content of every file that describes a dataset.

    Each content is to be used up before the next file is asked for.
    """
    for describe in DESCRIBERS:
        yield from describe(dataset)
