"""Times one shuffled epoch of a reader in PyTorch with two workers, without imports.

It needs `make test-interop`.

python -m benchmarks.feed_torch ours DATASET TARS INDEXES
"""

import argparse
import gc
import json
import os
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read on import

BATCH, WORKERS, SHUFFLED = 32, 2, 1000


def ours(folder: Path, tars: Path, indexes: Path) -> Any:
    """All records in a random order."""
    from torch.utils.data import DataLoader

    import recordmill

    train = recordmill.open(str(folder))["train"]
    order = recordmill.EpochOrder(records=len(train), batch_size=BATCH, seed=1)
    return DataLoader(recordmill.TorchStream(train, order), batch_size=None, num_workers=WORKERS)


def load(folder: Path, tars: Path, indexes: Path) -> Any:
    """`recordmill.load` of the same images, with TensorFlow's threads in place of workers."""
    import recordmill

    return recordmill.load(
        str(folder), batch_size=BATCH, shuffle=SHUFFLED, seed=1, deterministic=False
    )


def webdataset(folder: Path, tars: Path, indexes: Path) -> Any:
    """The package webdataset with its own decoder (Pillow), from tar files of the same images."""
    import webdataset as wds

    paths = sorted(map(str, tars.glob("*.tar")))
    dataset = wds.WebDataset(paths, shardshuffle=len(paths), nodesplitter=None).shuffle(SHUFFLED)
    pairs = dataset.decode("rgb8").to_tuple("jpg", "cls").batched(BATCH)
    return wds.WebLoader(pairs, batch_size=None, num_workers=WORKERS)


def tfrecord(folder: Path, tars: Path, indexes: Path) -> Any:
    """The package tfrecord with its indexes; images are decoded by our own library, simplejpeg."""
    import simplejpeg
    from tfrecord.torch.dataset import TFRecordDataset
    from torch.utils.data import ChainDataset, DataLoader

    def decode(values: dict[str, Any]) -> tuple[Any, Any]:
        return simplejpeg.decode_jpeg(bytes(values["image/encoded"]), "RGB"), values[
            "image/class/label"
        ][0]

    description = {"image/encoded": "byte", "image/class/label": "int"}
    shards = [
        TFRecordDataset(
            str(path), str(indexes / f"{path.name}.idx"), description, SHUFFLED // 8, decode
        )
        for path in sorted(folder.glob("train-*"))
    ]
    return DataLoader(ChainDataset(shards), batch_size=BATCH, num_workers=WORKERS)


READERS: dict[str, Callable[[Path, Path, Path], Any]] = {
    "ours": ours,
    "load": load,
    "webdataset": webdataset,
    "tfrecord": tfrecord,
}


def processor_seconds() -> float:
    """User and system time of this process and of the workers that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def count(batches: Iterator[Any]) -> int:
    """The number of images in all batches."""
    return sum(len(labels) for _, labels in batches)


def main() -> None:
    """Prints what was measured as one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader", choices=sorted(READERS))
    parser.add_argument(
        "folder", type=Path, help="a dataset with one split, train, of images of one size"
    )
    parser.add_argument("tars", type=Path, help="tar files of the same images")
    parser.add_argument("indexes", type=Path, help="the index files of the dataset's shards")
    arguments = parser.parse_args()
    loader = READERS[arguments.reader](arguments.folder, arguments.tars, arguments.indexes)
    wall, processor = time.perf_counter(), processor_seconds()
    records = count(iter(loader))
    gc.collect()  # workers have ended
    result = {
        "seconds_working": time.perf_counter() - wall,
        "cpu_seconds_working": processor_seconds() - processor,
    }
    print(json.dumps({"records": records, **result}), flush=True)


if __name__ == "__main__":
    main()
