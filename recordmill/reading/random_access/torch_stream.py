"""`TorchStream`: batches for PyTorch's `DataLoader` in an order that does not depend on its workers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any
from weakref import finalize

from recordmill.reading.random_access.epoch_order import EpochOrder
from recordmill.reading.random_access.records import Records
from recordmill.schemas.errors import LoadError

try:
    import torch
    from torch import Tensor
    from torch._C import _disabled_torch_function_impl
    from torch.utils.data import IterableDataset, default_collate, get_worker_info
except ModuleNotFoundError:  # `TorchStream` says so
    torch, IterableDataset, Tensor, _disabled_torch_function_impl = None, object, object, None

_MOST_WORKERS = 1024
_MOST_ROOMS = 8  # workers are two batches ahead, unless `prefetch_factor` says otherwise


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
        rooms: list[Any] = []
        shape: tuple[int, ...] = ()  # of the last image
        for numbers in replace(self.order, seed=seed, epoch=epoch, start=start).share(number, workers):
            images = _find_room(rooms, (len(numbers), *shape), worker is not None) if shape else None
            rows = [] if images is None else list(images.numpy())
            elements = self.records.__getitems__(numbers, rows)
            self._skips[number % _MOST_WORKERS] += len(numbers) - len(elements)
            if not elements:
                raise LoadError(f"all {len(numbers):,} records of a batch are damaged: {self.records.skipped[-1]}")
            are_in_rows = (element[0] is row for element, row in zip(elements, rows, strict=True))
            if images is not None and len(elements) == len(numbers) and all(are_in_rows):
                if worker is not None:
                    images.room[-1] = 1
                yield [images, default_collate([label for _, label in elements])]
            else:
                yield self._collate(elements)
            if self._collate is default_collate and self.records.takes_rooms:
                shape = elements[0][0].shape


class _Lent(Tensor):  # type: ignore[misc]
    """Images in a worker's shared memory, which the worker uses again when the main process has let go of them.

    Attributes:
        room: the memory: the images, and a byte that is 1 until the main process has let go.
    """

    __torch_function__ = _disabled_torch_function_impl  # what is computed from it is an ordinary tensor
    room: Any

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _receive, (self.room, self.shape)


def _find_room(rooms: list[Any], shape: tuple[int, ...], shared: bool) -> Any:
    """A tensor of bytes that is not in use, in a worker a `_Lent`; rooms that are made are added to the list.

    Images are decoded there: an array of its own for each, and its copy, would cost a third of the decoding. New memory
    for each batch would cost as much, since the kernel has to clear it.
    """
    if not shared:
        return torch.empty(shape, dtype=torch.uint8)
    size = prod(shape) + 1
    room = next((room for room in rooms if len(room) == size and not room[-1]), None)
    if room is None:
        room = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared(size))
        rooms[:] = [*rooms, room][-_MOST_ROOMS:]
    images = room[:-1].view(shape).as_subclass(_Lent)
    images.room = room
    return images


def _receive(room: Any, shape: tuple[int, ...]) -> Any:
    """The images in the main process: a tensor over an array, whose end frees the room."""
    images = room[:-1].numpy().reshape(shape)
    finalize(images, room.__setitem__, -1, 0).atexit = False
    return torch.from_numpy(images)
