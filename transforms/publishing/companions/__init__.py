"""What a dataset says of itself to other tools and to people: the files next to its shards. One module per format."""

from recordmill.transforms.publishing.companions.describe_dataset import describe_dataset
from recordmill.transforms.publishing.companions.remarks import find_remarks
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset
from recordmill.transforms.publishing.companions.thumbnails import choose_samples

__all__ = ["StagedDataset", "choose_samples", "describe_dataset", "find_remarks"]
