"""The serialised records of shards as a tf.data dataset that names the shard which it cannot read."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recordmill.reading.load.split_info import SplitInfo
from recordmill.reading.load_error import LoadError
from recordmill.reading.shard import Shard
from recordmill.storage.tfrecord_file import DamagedFileError, read_back

if TYPE_CHECKING:
    import tensorflow as tf

CYCLE = 16
"""Shards that are read in turn. Fixed, so that the order is the same on machines with more processors and fewer."""

_READ_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """In what order records come.

    Attributes:
        shuffle: whether shards and records are shuffled, anew in each epoch.
        buffer: records among which the next one is drawn.
        seed: makes the shuffling the same each time; None for another each time.
        repeat: epochs; -1 for ever.
        deterministic: whether the order may not depend on which shard answers first.
    """

    shuffle: bool
    buffer: int
    seed: int | None
    repeat: int
    deterministic: bool


def check_shards(shards: Sequence[Shard]) -> None:
    """Looks whether all files are there, and as long as the marker says; reads none of them.

    Raises:
        LoadError: one is missing, cannot be opened, or has another size; the message names it.
    """
    with ThreadPoolExecutor(32) as pool:
        for problem in pool.map(lambda shard: _find_fault(shard.path, shard.bytes), shards):
            if problem:
                raise LoadError(problem)


def _find_fault(path: str, size: int) -> str:
    import tensorflow as tf

    try:
        found = tf.io.gfile.stat(path).length
        with tf.io.gfile.GFile(path, "rb") as file:
            file.read(1)
    except tf.errors.NotFoundError:
        return f"the shard {path} is missing: restore it, or convert the dataset again"
    except tf.errors.OpError as error:
        return f"the shard {path} cannot be read: {error.message}"
    return "" if found == size else f"the shard {path} has {found:,} bytes where {size:,} were written: restore it"


def read_shards(info: SplitInfo, order: ReadingOrder, num_replicas: int, index: int) -> "tuple[tf.data.Dataset, int]":
    """The serialised Examples of one replica's share of a split, and how many they are in an epoch.

    Replicas divide the shards among them; where there are fewer shards than replicas each reads all shards and takes
    every `num_replicas`-th record. Reading stops with an error that names the shard where one is missing, or holds
    fewer sound records than the marker says.
    """
    import tensorflow as tf

    shards, by_record = info.shards[index::num_replicas], len(info.shards) < num_replicas
    if by_record:
        shards = info.shards
    check_shards(shards)
    files = tf.data.Dataset.from_tensor_slices(
        (
            tf.constant([shard.path for shard in shards], tf.string),
            tf.constant([shard.records for shard in shards], tf.int64),
            tf.constant([shard.bytes for shard in shards], tf.int64),
        )
    )
    if order.shuffle and not by_record:
        files = files.shuffle(max(len(shards), 1), seed=order.seed)
    compression = "GZIP" if info.compression == "gzip" else ""
    records = files.interleave(
        lambda path, count, size: _read_shard(path, count, size, compression),
        cycle_length=CYCLE,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=order.deterministic or by_record,
    )
    count = sum(shard.records or 0 for shard in shards)
    if by_record:
        records = records.shard(num_replicas, index)
        count = len(range(index, count, num_replicas))
    if order.shuffle:
        records = records.shuffle(max(min(order.buffer, count), 1), seed=order.seed)
    if order.repeat != 1:
        records = records.repeat(order.repeat)
    return records, count


def _read_shard(path: "tf.Tensor", count: "tf.Tensor", size: "tf.Tensor", compression: str) -> "tf.data.Dataset":
    """The records of one file, and behind them, if they are not `count`, the error that says why.

    TensorFlow's own errors name no file, and a cut between two records is none to it. `ignore_errors` ends the file at
    the first damage and keeps opening one that cannot be opened: hence the look at it before.
    """
    import tensorflow as tf

    fault = tf.numpy_function(_fault_before, [path, size], tf.string, stateful=True)
    fault.set_shape([])
    readable = tf.boolean_mask([path], [tf.equal(fault, "")])
    records = tf.data.TFRecordDataset(readable, compression, _READ_BYTES).ignore_errors()

    def stop(path: "tf.Tensor", fault: "tf.Tensor") -> "tf.Tensor":
        reason = tf.numpy_function(_fault_behind, [path, fault, compression, count], tf.string, stateful=True)
        with tf.control_dependencies([tf.debugging.Assert(False, [reason], summarize=1)]):
            return tf.identity(path)

    return records.concatenate(tf.data.Dataset.from_tensors((path, fault)).map(stop)).take(count)


def _fault_before(path: bytes, size: Any) -> bytes:
    return _find_fault(path.decode(), int(size)).encode()


def _fault_behind(path: bytes, fault: bytes, compression: bytes, count: Any) -> bytes:
    """Why a file ended early: reads it again, without TensorFlow, up to the damage."""
    if fault:
        return fault
    name = path.decode()
    try:
        found = read_back(name, compression.decode().lower() or "none").records
    except DamagedFileError as error:
        return f"the shard {name} is damaged, {error}: restore it, or convert the dataset again".encode()
    except OSError as error:
        return f"the shard {name} cannot be read: {error}".encode()
    if found == count:
        return f"the shard {name} could not be read to its end, and is sound: try again".encode()
    return f"the shard {name} holds {found:,} records, fewer than were written: restore it".encode()
