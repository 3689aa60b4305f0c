"""`examples_as_numpy`: any TFRecord file's Examples as dicts of numpy arrays, without TensorFlow."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recordmill.reading.dataset import Shard, open_dataset
from recordmill.reading.example import DamagedExampleError, ParsedExample
from recordmill.schemas.errors import LoadError
from recordmill.storage.record_bytes import StoredFile
from recordmill.storage.record_reader import Damage, RecordFile

DTYPES = {None: object, "bytes": object, "float": np.float32, "int64": np.int64}


def examples_as_numpy(path: str, split: str | Sequence[str] | None = None) -> Iterator[dict[str, NDArray[Any]]]:
    """Yields each Example of TFRecord files as a dict of numpy arrays by key, in the files' order.

    Both checksums of every record are checked while reading. Gzip files are recognised by their bytes.

    Args:
        path: a file, a pattern such as `flowers/*.tfrecord`, or a folder: a Recordmill dataset, or any files.
        split: only this split, or these, as a sequence or joined by `+`; for files without metadata, those whose names
            contain it.

    Returns:
        An iterator of one dict per Example, with an array of shape (n,) for each key: int64, float32, or object for
        bytes (numpy's own bytes type would drop zeros at the end). A key without values gives n = 0.

    Raises:
        LoadError: no file is found, or a file is damaged or has no Examples; the message names the file and the record.
    """
    dataset = open_dataset(str(path))
    shards = dataset.shards if split is None else dataset.shards_of(split)
    return _examples(shards)


def _examples(shards: Iterable[Shard]) -> Iterator[dict[str, NDArray[Any]]]:
    for shard in shards:
        with StoredFile(shard.path) as stored:
            for number, (offset, data) in enumerate(RecordFile(stored)):
                if isinstance(data, Damage):
                    raise LoadError(f"{shard.path} is damaged: record {number} at byte {offset}: {data.detail}")
                try:
                    yield example_as_numpy(data)
                except DamagedExampleError:
                    raise LoadError(f"{shard.path}: record {number} is not a tf.train.Example") from None


def example_as_numpy(record: bytes | memoryview) -> dict[str, NDArray[Any]]:
    """A serialised Example as a dict of arrays by key; see `examples_as_numpy`."""
    return {key: as_array(kind, values) for key, kind, values in ParsedExample(record).items()}


def as_array(kind: str | None, values: Sequence[Any]) -> NDArray[Any]:
    """The values of one feature as an array of shape (n,)."""
    array = np.empty(len(values), DTYPES[kind])
    array[:] = values
    return array
