"""What a dataset says of itself to other tools and to people: the files beside its shards. One file a format."""

from transforms.describing.describe_dataset import describe_dataset
from transforms.describing.staged_dataset import StagedDataset

__all__ = ["StagedDataset", "describe_dataset"]
