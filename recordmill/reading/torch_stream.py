"""`TorchStream`: batches for PyTorch's `DataLoader`, in an order independent of its workers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any
from weakref import finalize

from recordmill.reading.epoch_order import EpochOrder
from recordmill.reading.records import Records
from recordmill.schemas.errors import LoadError

try:
    import torch
    from torch import Tensor
    from torch.utils.data import IterableDataset, default_collate, get_worker_info
except ModuleNotFoundError:  # `TorchStream` says so
    torch, IterableDataset, Tensor = None, object, object

_MOST_WORKERS = 1024
_MOST_BUFFERS = 8  # workers are two batches ahead, unless `prefetch_factor` says otherwise


class TorchStream(IterableDataset):  # type: ignore[misc]
    """Yields whole batches: `DataLoader(stream, batch_size=None, num_workers=4)`.

    The workers share the batches. Any number of workers yields the same batches in the same order.

    Example:
        train = recordmill.open("dataset")["train"]
        order = recordmill.EpochOrder(records=len(train), batch_size=32)
        stream = recordmill.TorchStream(train, order)
        loader = torch.utils.data.DataLoader(stream, batch_size=None, num_workers=4)
    """

    def __init__(
        self, records: Records, order: EpochOrder, collate: Callable[[list[Any]], Any] | None = None
    ) -> None:
        """Reads nothing yet.

        Args:
            records: the records to read, from `recordmill.open`.
            order: the batches of this rank.
            collate: makes a batch from a list of elements; by default PyTorch's `default_collate`.

        Raises:
            LoadError: PyTorch is not installed, or the order is for another number of records.
        """
        if torch is None:
            raise LoadError(
                "TorchStream needs PyTorch, which is not installed: pip install '.[torch]' in a "
                "clone"
            )
        if order.records != len(records):
            raise LoadError(
                f"the order has {order.records:,} records, and the split {len(records):,}: give "
                "this number"
            )
        self.records, self.order = records, order
        self._collate = collate or default_collate
        # Persistent workers see a new epoch only through shared memory.
        self._shared_position = torch.zeros(3, dtype=torch.int64).share_memory_()
        self._skip_counts = torch.zeros(_MOST_WORKERS, dtype=torch.int64).share_memory_()
        self._share_position()

    def _share_position(self) -> None:
        self._shared_position[:] = torch.tensor(
            [self.order.seed, self.order.epoch, self.order.start]
        )

    @property
    def skipped(self) -> int:
        """Returns the number of damaged records that the workers have left out.

        See `damaged` of `recordmill.open`.
        """
        return int(self._skip_counts.sum())

    def __len__(self) -> int:
        """Returns the number of batches left in the epoch."""
        return len(self.order)

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch; call it before the `DataLoader` is iterated."""
        self.order.set_epoch(epoch)
        self._share_position()

    def position(self, batches: int) -> dict[str, int]:
        """Returns the position after a number of the `DataLoader`'s batches."""
        return self.order.position(batches)

    def resume(self, position: Mapping[str, int]) -> None:
        """Resumes from a position: the next iteration of the `DataLoader` starts there."""
        self.order.resume(position)
        self._share_position()

    def __iter__(self) -> Iterator[Any]:
        """Yields this worker's batches, from the position to the end of the epoch.

        Raises:
            LoadError: a record is damaged, or a whole batch if they are skipped.
        """
        worker = get_worker_info()
        if worker:
            number, workers = worker.id, worker.num_workers
        else:
            number, workers = 0, 1
        seed, epoch, start = self._shared_position.tolist()
        buffers: list[Any] = []
        shape: tuple[int, ...] = ()  # of the last image
        for numbers in replace(self.order, seed=seed, epoch=epoch, start=start).share(
            number, workers
        ):
            if shape:
                images = _take_buffer(buffers, (len(numbers), *shape), worker is not None)
            else:
                images = None
            rows = [] if images is None else list(images.numpy())
            elements = self.records.__getitems__(numbers, rows)
            self._skip_counts[number % _MOST_WORKERS] += len(numbers) - len(elements)
            if not elements:
                raise LoadError(
                    f"all {len(numbers):,} records of a batch are damaged: "
                    f"{self.records.skipped[-1]}"
                )
            are_in_rows = (element[0] is row for element, row in zip(elements, rows, strict=True))
            if images is not None and len(elements) == len(numbers) and all(are_in_rows):
                if worker is not None:
                    images.buffer[-1] = 1
                yield [images, default_collate([label for _, label in elements])]
            else:
                yield self._collate(elements)
            if self._collate is default_collate and self.records.takes_buffers:
                shape = elements[0][0].shape


class _SharedImages(Tensor):  # type: ignore[misc]
    """Images in a worker's shared memory.

    The worker reuses the memory once the main process has released the images.

    Attributes:
        buffer: the memory: the images, then a byte that is 1 until the main process has released
            them.
    """

    buffer: Any

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        """Computes as for any tensor: results are ordinary tensors."""
        return Tensor.__torch_function__(function, (), arguments, named)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _receive, (self.buffer, self.shape)


def _take_buffer(buffers: list[Any], shape: tuple[int, ...], shared: bool) -> Any:
    """Returns a free tensor of bytes to decode images into.

    In a worker, it is `_SharedImages` over one of the buffers or a new one.

    Decoding each image into its own array, and copying it, would cost a third of the decoding time.
    New memory for each batch would cost as much, since the kernel has to clear it.
    """
    if not shared:
        return torch.empty(shape, dtype=torch.uint8)
    size = prod(shape) + 1
    buffer = next((each for each in buffers if len(each) == size and not each[-1]), None)
    if buffer is None:
        buffer = torch.zeros(size, dtype=torch.uint8).share_memory_()
        buffers[:] = [*buffers, buffer][-_MOST_BUFFERS:]
    images = buffer[:-1].view(shape).as_subclass(_SharedImages)
    images.buffer = buffer
    return images


def _receive(buffer: Any, shape: tuple[int, ...]) -> Any:
    """Returns the images in the main process.

    A tensor over an array whose deletion frees the buffer.
    """
    images = buffer[:-1].numpy().reshape(shape)
    finalize(images, buffer.__setitem__, -1, 0).atexit = False
    return torch.from_numpy(images)
