"""What describers are given."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from recordmill.schemas.dataset.marker import LABEL_FIELDS, Marker
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.side_files import Remark
from recordmill.schemas.dataset.totals import ImageTotals
from recordmill.schemas.features import Feature
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.schemas.settings.example_layout import ExampleLayout
from recordmill.storage.dataset_files import shard_path
from recordmill.transforms.publishing.marker import PublishedShard
from recordmill.transforms.shards.record_columns import Column, read_column


@dataclass(frozen=True, slots=True)
class StagedDataset:
    """A dataset whose shards are finished and not yet published.

    Attributes:
        marker: what `recordmill.json` will say, without its `run` part; `files` still lacks those that describe.
        settings: what the dataset is.
        config_text: the same as YAML: the content of `config.yaml`.
        shards: the shards under their final names, in the order of their splits' names.
        reports: of all shards, also of those without records, whose sidecars list rejected images alone.
        folder: where they are until they are published; see `path_of`.
        images: what is worth knowing of all images.
        remarks: what is worth a look.
    """

    marker: Marker
    settings: DatasetSettings
    config_text: str
    shards: Sequence[PublishedShard]
    reports: Sequence[ShardReport]
    folder: str
    images: ImageTotals = field(default_factory=ImageTotals)
    remarks: Sequence[Remark] = ()

    @property
    def layout(self) -> ExampleLayout:
        """What its Examples and files look like."""
        return ExampleLayout(self.settings)

    @property
    def sure_features(self) -> tuple[Feature, ...]:
        """The features that every Example has: all but those that some Example lacks, such as a label."""
        unlabelled = any("" in split.classes for split in self.marker.splits.values())
        features = self.layout.features
        missing = {key for report in self.reports for key in report.missing}
        return tuple(
            each for each in features if each.key not in missing and not (unlabelled and each.field in LABEL_FIELDS)
        )

    def path_of(self, report: ShardReport, kind: str) -> str:
        """Where a shard's file is now; `kind` is `tfrecord` or `jsonl` (its sidecar)."""
        return shard_path(self.folder, report.split, report.index, kind)

    def read_column(self, report: ShardReport, column: Column) -> bytes:
        """Numbers of the records of a shard."""
        return read_column(self.folder, report.split, report.index, report.records, column)
