"""Writes the indexes that NVIDIA DALI and PyTorch's package `tfrecord` read, for a dataset that has none."""

from recordmill import storage
from recordmill.reading.dataset import Dataset
from recordmill.reading.random_access.split_index import read_index
from recordmill.schemas.errors import LoadError
from recordmill.storage.record_reader import FRAMING_BYTES


def write_indexes(dataset: Dataset, folder: str) -> list[str]:
    """Writes a line per record, `<offset> <length of the frame>`, for each shard, and gives the paths.

    They are as `index_files: true` makes them, in a folder outside the dataset, which stays as it is.

    Args:
        dataset: of any kind, not compressed.
        folder: where `<shard>.idx` is written for each shard.

    Raises:
        LoadError: a file is compressed or damaged, or another file has the name.
        OSError: an index cannot be written.
    """
    contents = {}
    for shard in dataset.shards:
        index = read_index(dataset, (shard,))
        if index.damaged:
            raise LoadError(f"{shard.path} is damaged, and has no index: recordmill verify lists the damage")
        rows = index.entries[:, :2].tolist()
        lines = "".join(f"{offset} {length + FRAMING_BYTES}\n" for offset, length in rows).encode()
        path = storage.join(folder, f"{shard.name}.idx")
        if storage.size_of(path) is not None and storage.read_range(path) != lines:
            raise LoadError(f"{path} is there already, and is not this index: rename it")
        contents[path] = lines
    for path, lines in contents.items():
        storage.write_file(path, lines)
    return [*contents]
