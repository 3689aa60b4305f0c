"""The order in which ranks and workers read a split; training can resume within an epoch."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recordmill.schemas.errors import LoadError

_FORMAT = 2
"""The format of positions: of one before, the numbers mean other records."""


@dataclass(slots=True, kw_only=True)
class EpochOrder:
    """Batches of record numbers for one rank, from an order of all records that changes each epoch.

    Each step takes the next `batch_size * ranks` records of the order, and each rank every
    `ranks`-th of them. What the ranks have read together is therefore always the beginning of the
    order, from where any number of ranks can resume. It is a `batch_sampler` for PyTorch's
    `DataLoader`.

    Example:
        order = recordmill.EpochOrder(records=1000, batch_size=32, seed=1)
        for numbers in order:
            print(numbers)

    Attributes:
        records: the number of records.
        batch_size: records per batch of one rank.
        shuffle: False keeps the records' own order.
        seed: selects the order.
        rank: the number of this reader, from 0.
        ranks: the number of readers.
        drop_last: leaves out a last step that is not full, so that all ranks take the same number
            of steps.
        epoch: the current epoch, from 0.
        start: the number of the epoch's records that all ranks together have read already.
    """

    records: int
    batch_size: int = 1
    shuffle: bool = True
    seed: int = 0
    rank: int = 0
    ranks: int = 1
    drop_last: bool = False
    epoch: int = 0
    start: int = 0

    def __post_init__(self) -> None:
        """Raises LoadError if no order has these values."""
        if self.batch_size < 1:
            raise LoadError(f"batch_size is {self.batch_size}: it must be at least 1")
        for name, most in (
            ("rank", self.ranks - 1),
            ("seed", 2**63 - 1),
            ("epoch", 2**63 - 1),
            ("start", self.records),
        ):
            value = getattr(self, name)
            if not 0 <= value <= most:
                raise LoadError(f"{name} is {value}: it must be from 0 to {most}")

    def __iter__(self) -> Iterator[list[int]]:
        """Yields the numbers of each batch, from `start` to the end of the epoch."""
        return self.share(0, 1)

    def share(self, worker: int, workers: int) -> Iterator[list[int]]:
        """Yields this worker's batches: every `workers`-th from number `worker`."""
        step = self.batch_size * self.ranks
        if self.shuffle:
            order = shuffle(self.records, self.seed, self.epoch)
        else:
            order = np.arange(self.records)
        for begin in range(self.start, self.records, step)[worker::workers]:
            numbers = order[begin + self.rank : begin + step : self.ranks]
            if not len(numbers) or (self.drop_last and begin + step > self.records):
                return
            yield numbers.tolist()

    def __len__(self) -> int:
        """Returns the number of batches from `start` to the end of the epoch."""
        full, rest = divmod(self.records - self.start, self.batch_size * self.ranks)
        return full + (rest > self.rank and not self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Begins an epoch; setting the current one again keeps `start`.

        Raises:
            LoadError: it is negative.
        """
        if epoch != self.epoch:
            replace(self, epoch=epoch, start=0)  # validates it
            self.epoch, self.start = epoch, 0

    def position(self, batches: int) -> dict[str, int]:
        """Returns the position after this rank has taken a number of batches since `start`.

        It is the same for all ranks.
        """
        done = self.start + batches * self.batch_size * self.ranks
        over = done >= self.records or (
            self.drop_last and done + self.batch_size * self.ranks > self.records
        )
        if over:
            state = {"epoch": self.epoch + 1, "start": 0}
        else:
            state = {"epoch": self.epoch, "start": done}
        return {
            "format": _FORMAT,
            "records": self.records,
            "shuffle": int(self.shuffle),
            "seed": self.seed,
            **state,
        }

    def resume(self, position: Mapping[str, int]) -> None:
        """Resumes from a result of `position`, with any number of ranks and any `batch_size`.

        Raises:
            LoadError: it is a position in another split, or not a position; the order is unchanged.
        """
        numbers = {key: each for key, each in position.items() if type(each) is int}
        if (
            {*numbers} != {*self.position(0)}
            or numbers["records"] != self.records
            or numbers["format"] != _FORMAT
        ):
            what = f"{dict(position)} is not a position in this split of {self.records:,} records"
            raise LoadError(
                f"{what}, or it is one of another version of Recordmill: begin the epoch again"
            )
        seed, epoch, start = (numbers[key] for key in ("seed", "epoch", "start"))
        resumed = replace(
            self, shuffle=bool(numbers["shuffle"]), seed=seed, epoch=epoch, start=start
        )
        self.shuffle, self.seed = resumed.shuffle, resumed.seed
        self.epoch, self.start = resumed.epoch, resumed.start


def shuffle(records: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Returns all record numbers in the order of an epoch, the same in every version of numpy."""
    digest = hashlib.sha256(f"{seed}\0epoch\0{epoch}".encode()).digest()
    frozen = np.random.RandomState(np.frombuffer(digest, "<u4"))  # newer generators may change
    return frozen.permutation(records)
