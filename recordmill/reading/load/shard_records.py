"""The serialised records of shards as a tf.data dataset, whose errors name the shard."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from recordmill.reading.load.split_info import SplitInfo
from recordmill.reading.shard import Shard
from recordmill.schemas.errors import LoadError
from recordmill.storage.stores.store import in_parallel
from recordmill.storage.tfrecord_file import DamagedFileError, read_back

if TYPE_CHECKING:
    import tensorflow as tf

CYCLE = 16
"""Number of shards that are interleaved. Fixed, so that the order does not depend on the number of processors."""

_READ_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """The order of records.

    Attributes:
        shuffle: whether shards and records are shuffled, differently in each epoch.
        buffer: size of the shuffle buffer, in records.
        seed: makes the shuffling reproducible; None for a random order.
        repeat: number of epochs; -1 repeats forever.
        deterministic: whether the order must not depend on which shard answers first.
    """

    shuffle: bool
    buffer: int
    seed: int | None
    repeat: int
    deterministic: bool


def check_shards(shards: Sequence[Shard]) -> None:
    """Checks that all files exist and have the marker's sizes, without reading them.

    Raises:
        LoadError: one is missing, cannot be opened, or has another size; the message names it.
    """
    if problems := [*filter(None, in_parallel(lambda shard: _find_fault(shard.path, shard.bytes), shards))]:
        raise LoadError(problems[0])


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
    """The serialised Examples of one replica's share of a split, and their number per epoch.

    Replicas share the shards; if there are fewer shards than replicas, each reads all shards and keeps every
    `num_replicas`-th record. If a shard is missing or has fewer intact records than the marker says, reading stops
    with an error that names it.
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
    """The records of one file and, if their number is not `count`, the error that says why.

    TensorFlow's own errors do not name the file, and it does not notice a file truncated between two records.
    `ignore_errors` ends the file at the first damage, but retries a file that cannot be opened: hence the check before.
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
    """Finds out why a file ended early: reads it again, without TensorFlow, up to the damage."""
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
