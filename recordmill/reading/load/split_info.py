"""Describes one split before any record is read: its files, features, class names, counts and weights."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from recordmill import storage
from recordmill.reading.dataset import Dataset, Shard, open_dataset
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.features import Feature
from recordmill.storage.dataset_files import parse_rows

_PEEK_BYTES = 2**18


@dataclass(frozen=True)
class SplitInfo:
    """One split of a dataset, or several read as one, as the marker describes it.

    Attributes:
        folder: the dataset's folder.
        split: the split's name; several joined by `+`.
        features: the features of an Example, sorted by key.
        labels: class ids by name, as they are stored.
        class_counts: records by class name, for the classes in the split; if records have boxes or several labels, the
            number of these.
        shards: the files, in the marker's order.
        compression: `gzip` or `none`.
        raw: whether images are stored as uint8 pixels, height by width by channels, instead of encoded.
    """

    folder: str
    split: str
    features: tuple[Feature, ...]
    labels: Mapping[str, int]
    class_counts: Mapping[str, int]
    shards: tuple[Shard, ...]
    compression: str
    raw: bool

    @property
    def num_examples(self) -> int:
        """The number of records in the split."""
        return sum(shard.records or 0 for shard in self.shards)

    @property
    def num_classes(self) -> int:
        """The number of classes of the dataset, including those that are not in this split."""
        return len(self.labels)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The class names in the order of their ids."""
        return tuple(self.labels_to_names.values())

    @property
    def labels_to_names(self) -> dict[int, str]:
        """Class names by id, in the order of the ids."""
        return dict(sorted((label_id, name) for name, label_id in self.labels.items()))

    @property
    def label_depth(self) -> int:
        """The largest id plus one: the length of a one-hot label, and the number of outputs that a classifier needs."""
        return max(self.labels.values(), default=-1) + 1

    @property
    def class_weights(self) -> dict[int, float]:
        """Weights by id that balance the classes, for Keras's `class_weight`; their mean over records is 1.

        A class's weight is n / (k * n_class), for n labels in the k classes of the split; other classes have none.
        """
        total = sum(self.class_counts.values())
        return {
            self.labels[name]: total / (len(self.class_counts) * count)
            for name, count in sorted(self.class_counts.items(), key=lambda item: self.labels[item[0]])
        }

    @property
    def items_to_descriptions(self) -> dict[str, str]:
        """What each feature means, by its key."""
        return {feature.key: feature.meaning for feature in self.features}

    def key_of(self, field: str) -> str | None:
        """The key of the feature that a field fills (`encoded`, `label`, ...); None if there is none."""
        return next((feature.key for feature in self.features if feature.field == field), None)

    @cached_property
    def image_size(self) -> tuple[int, int] | None:
        """The height and width of all images, judging by the first rows of the first sidecar; None if they differ.

        Only its first 256 KiB are read, so later images may have other sizes.
        """
        if not self.shards:
            return None
        try:
            block = storage.read_range(self.shards[0].sidecar, 0, _PEEK_BYTES)
        except FileNotFoundError:  # files that were copied without their sidecars can still be read
            return None
        sizes = set()
        for row in parse_rows(block[: block.rfind(b"\n") + 1].splitlines()):
            if isinstance(row, SidecarRow) and row.height is not None and row.width is not None:
                sizes.add((row.height, row.width))
        return sizes.pop() if len(sizes) == 1 else None


def describe_split(path: str, split: str | Sequence[str] = "train") -> SplitInfo:
    """Opens a dataset's folder and describes one of its splits, or several as one; needs no TensorFlow.

    Args:
        path: the folder that holds `recordmill.json`, on any of Beam's file systems.
        split: the split's name; several as a sequence, or joined by `+`.

    Raises:
        LoadError: there is no dataset, or no such split, or the dataset is of another version of Recordmill.
    """
    return describe_dataset(open_dataset(str(path)), split)


def describe_dataset(dataset: Dataset, split: str | Sequence[str]) -> SplitInfo:
    """Like `describe_split`, for a dataset that is already open."""
    marker, names = dataset.require_marker(), dataset.split_names(split)
    recipe = marker.plan.settings
    counts = sum((Counter(marker.splits[name].class_counts) for name in names), Counter[str]())
    return SplitInfo(
        folder=dataset.folder,
        split="+".join(names),
        features=dataset.features,
        labels=dataset.labels,
        class_counts={name: count for name, count in sorted(counts.items()) if name and count},
        shards=dataset.shards_of(names),
        compression=recipe.compression,
        raw=recipe.is_raw,
    )
