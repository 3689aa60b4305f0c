"""What describers are given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.shard_report import ShardReport
from transforms.dataset_settings import DatasetSettings
from transforms.marker import PublishedShard
from transforms.shard_files import read_rows, shard_path


@dataclass(frozen=True, slots=True)
class StagedDataset:
    """A dataset whose shards are finished and not yet published.

    Attributes:
        marker: what `recordmill.json` will say, without its `run` part; `files` still lacks those that describe.
        settings: what the dataset is.
        config_text: the same as YAML: the content of `config.yaml`.
        shards: the shards under their final names, in the order of their splits' names.
        reports: of all shards, also of those without records, whose sidecars list rejected images alone.
        folder: where they lie until they are published; see `path_of`.
    """

    marker: Mapping[str, Any]
    settings: DatasetSettings
    config_text: str
    shards: Sequence[PublishedShard]
    reports: Sequence[ShardReport]
    folder: str

    def path_of(self, report: ShardReport, kind: str) -> str:
        """Where a shard's file lies now; `kind` is `tfrecord` or `jsonl` (its sidecar)."""
        return shard_path(self.folder, report.split, report.index, kind)

    def rows_of(self, report: ShardReport) -> Iterator[dict[str, Any]]:
        """The rows of a shard's sidecar, one after the other."""
        return read_rows(self.path_of(report, "jsonl"))
