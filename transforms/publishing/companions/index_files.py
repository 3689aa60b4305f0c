"""Index files: where each record is, for readers that seek: DALI (`tfrecord2idx`) and PyTorch's `tfrecord` package.

One line per record, `<offset> <length>`, in bytes; the length counts the 16 bytes of framing. They are in `sidecars/`,
because a reader that globs for shards (`train-*`) must not find them.
"""

from collections.abc import Iterable, Iterator

from recordmill.schemas.dataset.file_names import index_name
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.sidecar_row import SidecarRow
from recordmill.storage.record_reader import FRAMING_BYTES
from recordmill.transforms.publishing.companions.staged_dataset import StagedDataset

_PIECE_LINES = 10_000


def describe_index(dataset: StagedDataset) -> Iterator[tuple[str, Iterable[bytes]]]:
    """`sidecars/<shard>.idx` for each shard, where the settings ask for it."""
    if dataset.settings.index_files:
        for shard in dataset.shards:
            yield index_name(shard.name), _index_lines(dataset, shard.report)


def _index_lines(dataset: StagedDataset, report: ShardReport) -> Iterator[bytes]:
    lines: list[str] = []
    for row in dataset.rows_of(report):
        if isinstance(row, SidecarRow):
            lines.append(f"{row.offset} {row.length + FRAMING_BYTES}\n")
        if len(lines) == _PIECE_LINES:
            yield "".join(lines).encode()
            lines.clear()
    yield "".join(lines).encode()
