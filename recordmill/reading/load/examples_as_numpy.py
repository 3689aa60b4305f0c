"""`examples_as_numpy`: any TFRecord file's Examples as dicts of numpy arrays, without TensorFlow."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from recordmill.reading.dataset import open_dataset
from recordmill.schemas.errors import LoadError
from recordmill.schemas.example_proto import Example
from recordmill.storage.tfrecord_file import DamagedFileError, read_records

_DTYPES = {"bytes_list": object, "float_list": np.float32, "int64_list": np.int64}


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
    return _examples([shard.path for shard in shards])


def _examples(files: Iterable[str]) -> Iterator[dict[str, NDArray[Any]]]:
    for name in files:
        try:
            for index, record in enumerate(read_records(name)):
                try:
                    example = Example.FromString(bytes(record))
                except DecodeError:
                    raise LoadError(f"{name}: record {index} is not a tf.train.Example") from None
                yield {key: _as_array(value) for key, value in sorted(example.features.feature.items())}
        except DamagedFileError as error:
            raise LoadError(f"{name} is damaged: {error}") from None


def _as_array(feature: Any) -> NDArray[Any]:
    kind = feature.WhichOneof("kind")
    if kind is None:
        return np.empty(0, object)
    values = getattr(feature, kind).value
    array = np.empty(len(values), _DTYPES[kind])
    array[:] = values
    return array
