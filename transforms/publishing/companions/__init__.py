"""What a dataset says of itself to other tools and to people: the files next to its shards. One module per format."""

from recordmill.transforms.publishing.companions.describe_dataset import describe_dataset
from recordmill.transforms.publishing.companions.remarks import find_remarks
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset

__all__ = ["StagedDataset", "describe_dataset", "find_remarks"]
