"""`TorchStream`: batches for PyTorch's `DataLoader` in an order that does not depend on its workers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from recordmill.reading.random_access.epoch_order import EpochOrder
from recordmill.reading.random_access.records import Records
from recordmill.schemas.errors import LoadError

try:
    import torch
    from torch.utils.data import IterableDataset, default_collate, get_worker_info
except ModuleNotFoundError:  # `TorchStream` says so
    torch, IterableDataset = None, object

_MOST_WORKERS = 1024


class TorchStream(IterableDataset):  # type: ignore[misc]
    """Yields whole batches: `DataLoader(stream, batch_size=None, num_workers=4)`.

    Workers share the batches. Any number of them gives the same batches in the same order.
    """

    def __init__(self, records: Records, order: EpochOrder, collate: Callable[[list[Any]], Any] | None = None) -> None:
        """Reads nothing yet.

        Args:
            records: what is read, from `recordmill.open`.
            order: the batches of this rank.
            collate: makes a batch of a list of elements; by default PyTorch's `default_collate`.

        Raises:
            LoadError: PyTorch is not installed, or the order is one of another number of records.
        """
        if torch is None:
            raise LoadError("TorchStream needs PyTorch, which is not installed: pip install '.[torch]' in a clone")
        if order.records != len(records):
            raise LoadError(
                f"the order has {order.records:,} records, and the split {len(records):,}: give this number"
            )
        self.records, self.order = records, order
        self._collate = collate or default_collate
        # Workers that persist see a new epoch only in shared memory.
        self._place = torch.zeros(3, dtype=torch.int64).share_memory_()
        self._skips = torch.zeros(_MOST_WORKERS, dtype=torch.int64).share_memory_()
        self._share()

    def _share(self) -> None:
        self._place[:] = torch.tensor([self.order.seed, self.order.epoch, self.order.start])

    @property
    def skipped(self) -> int:
        """The number of damaged records that all workers left out; see `damaged` of `recordmill.open`."""
        return int(self._skips.sum())

    def __len__(self) -> int:
        """The number of batches left in the epoch."""
        return len(self.order)

    def set_epoch(self, epoch: int) -> None:
        """As `EpochOrder.set_epoch`; call it before the `DataLoader` is iterated."""
        self.order.set_epoch(epoch)
        self._share()

    def position(self, batches: int) -> dict[str, int]:
        """As `EpochOrder.position`: after a number of batches of the `DataLoader`."""
        return self.order.position(batches)

    def resume(self, position: Mapping[str, int]) -> None:
        """As `EpochOrder.resume`; the next iteration of the `DataLoader` goes on from there."""
        self.order.resume(position)
        self._share()

    def __iter__(self) -> Iterator[Any]:
        """Yields this worker's batches, from the position to the end of the epoch.

        Raises:
            LoadError: a record is damaged, or all of a batch are.
        """
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        seed, epoch, start = self._place.tolist()
        shape: tuple[int, ...] = ()  # of the last image
        for numbers in replace(self.order, seed=seed, epoch=epoch, start=start).share(number, workers):
            room = _make_room((len(numbers), *shape), worker is not None) if shape else None
            rows = [] if room is None else list(room.numpy())
            elements = self.records.__getitems__(numbers, rows)
            self._skips[number % _MOST_WORKERS] += len(numbers) - len(elements)
            if not elements:
                raise LoadError(f"all {len(numbers):,} records of a batch are damaged: {self.records.skipped[-1]}")
            if room is not None and len(elements) == len(numbers) and all(map(_is_in, elements, rows)):
                yield [room, default_collate([label for _, label in elements])]
            else:
                yield self._collate(elements)
            if self._collate is default_collate and self.records.takes_rooms:
                shape = elements[0][0].shape


def _make_room(shape: tuple[int, ...], shared: bool) -> Any:
    """A tensor of bytes, in a worker in the shared memory in which batches go to the main process.

    Images are decoded there: an array of its own for each, and its copy, would cost a third of the decoding.
    """
    size = prod(shape)
    storage = torch.UntypedStorage._new_shared(size) if shared else torch.UntypedStorage(size)
    return torch.empty(0, dtype=torch.uint8).set_(storage).view(shape)


def _is_in(element: Any, row: Any) -> bool:
    return element[0] is row
