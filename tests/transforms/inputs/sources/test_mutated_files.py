"""Whatever a file of data or annotations holds, a source rejects it or reads it: no error that
would end a run."""

import gzip
import io
import json
import os
import struct
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from crc32c import crc32c
from golden_inputs import folder_names, read_folder
from PIL import Image

from recordmill.pipeline.configuration.config import load_settings
from recordmill.schemas.conventions import load_convention
from recordmill.schemas.features import encode_example
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.storage.tfrecord_file import masked
from recordmill.transforms.inputs.patterns import compile_globs
from recordmill.transforms.inputs.sources.archives import Archives
from recordmill.transforms.inputs.sources.arrays import Arrays
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.inputs.sources.fixed_records import FixedRecords
from recordmill.transforms.inputs.sources.idx import Idx
from recordmill.transforms.inputs.sources.imagefolder import ImageFolder
from recordmill.transforms.inputs.sources.labelme import LabelMe
from recordmill.transforms.inputs.sources.manifest import Manifest
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.sources.table import Table
from recordmill.transforms.inputs.sources.tfrecords import Tfrecords
from recordmill.transforms.inputs.sources.voc import Voc
from recordmill.transforms.inputs.sources.yolo import Yolo

CONFIGS = Path(__file__).parents[4] / "configs"
MUTANTS = int(os.environ.get("RECORDMILL_MUTANTS", "400")) // 8
TOKENS = [
    *(
        b"",
        b"0",
        b"-1",
        b"1e999",
        b"NaN",
        b"Infinity",
        b"99999999999999999999",
        b"1.5",
        b"null",
        b"true",
        b'"',
        b"'",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b"[]",
        b"{}",
        b",",
        b":",
        b"\n",
        b"\t",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
    ),
    *(
        b"<",
        b"&a;",
        b"- ",
        b"*a",
        b"&a ",
        b"!!python/object:x ",
        b"../",
        b"\\u0000",
        b"\\ud800",
        b"[" * 2_000,
    ),
]


def picture():
    stream = io.BytesIO()
    Image.new("RGB", (8, 8), (200, 30, 30)).save(stream, "PNG")
    return stream.getvalue()


def frame(record):
    length = struct.pack("<Q", len(record))
    return b"".join(part + struct.pack("<I", masked(crc32c(part))) for part in (length, record))


def tarred(members, mode="w"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def zipped(members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def saved(write, *values, **options):
    stream = io.BytesIO()
    write(stream, *values, **options)
    return stream.getvalue()


def parquet(**columns):
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


MEMBERS = {"cat/1.png": picture(), "dog/2.png": picture()}
SAMPLES = {"1.png": picture(), "1.cls": b"3", "2.png": picture(), "2.cls": b"4"}
BOX = {
    "id": 1,
    "image_id": 1,
    "category_id": 1,
    "bbox": [1, 2, 3, 4],
    "area": 12,
    "iscrowd": 0,
    "segmentation": [],
}
COCO = {"images": [{"id": 1, "file_name": "1.png", "width": 8, "height": 8}], "annotations": [BOX]}
SHAPE = {"label": "cat", "shape_type": "rectangle", "points": [[1, 2], [3, 4]], "group_id": None}
VOC = (
    b"<annotation><filename>1.png</filename>"
    b"<size><width>8</width><height>8</height><depth>3</depth></size>\n"
    b"<object><name>cat</name><difficult>0</difficult>"
    b"<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>\n"
    b"</object></annotation>"
)
EXAMPLE = encode_example(
    load_convention("default").example_features, {"encoded": picture(), "label": 1, "text": b"cat"}
)

# What is mutated, where it lies, its source, and the file that the source is given where that is
# another one.
FILES = {
    "coco": (
        "instances_train.json",
        json.dumps({**COCO, "categories": [{"id": 1, "name": "cat"}]}).encode(),
        Coco(),
    ),
    "labelme": (
        "1.json",
        json.dumps({"imagePath": "1.png", "shapes": [SHAPE]}).encode(),
        LabelMe(),
    ),
    "voc": ("Annotations/1.xml", VOC, Voc()),
    "yolo's boxes": (
        "labels/1.txt",
        b"0 0.5 0.5 0.2 0.2\n1 0.1 0.1 0.3 0.1 0.3 0.3\n",
        Yolo(),
        "images/1.png",
    ),
    "yolo's names": (
        "data.yaml",
        b"train: images\nnc: 2\nnames:\n  0: cat\n  1: dog\n",
        Yolo(),
        "images/1.png",
    ),
    "csv": ("list.csv", b"uri,label\n1.png,cat\n'2.png',\"dog\"\n", Manifest()),
    "jsonl": (
        "list.jsonl",
        b'{"uri": "1.png", "label": "cat"}\n{"uri": "1.png", "label": "dog"}\n',
        Manifest(),
    ),
    "parquet": ("list.parquet", parquet(uri=["1.png", "2.png"], label=["cat", None]), Manifest()),
    "table": ("rows.csv", b"a,b,c\n1,2.5,x\n,17031832200.0,y\n", Table()),
    "table in json": (
        "rows.jsonl",
        b'{"a": 1, "b": [1, 2], "c": null}\n{"a": 2.5, "b": [], "c": "x"}\n',
        Table(),
    ),
    "table in parquet": (
        "rows.parquet",
        parquet(a=[1, None], b=[[1.5], []], c=["x", "y"]),
        Table(),
    ),
    "metadata": ("metadata.csv", b"file_name,text\n1.png,a cat\n", ImageFolder()),
    "tar": ("a.tar", tarred(MEMBERS), Archives()),
    "tar.gz": ("a.tar.gz", tarred(MEMBERS, "w:gz"), Archives()),
    "webdataset": ("a.tar", tarred(SAMPLES), Archives(labels="beside")),
    "zip": ("a.zip", zipped(MEMBERS), Archives()),
    "npy": ("x_train.npy", saved(np.save, np.zeros((3, 4, 4, 3), np.uint8)), Arrays()),
    "npz": (
        "a.npz",
        saved(np.savez, x_train=np.zeros((2, 4, 4), np.uint8), y_train=np.arange(2)),
        Arrays(),
    ),
    "packed npz": (
        "a.npz",
        saved(np.savez_compressed, x_train=np.zeros((2, 4, 4), np.uint8), y_train=[0, 1]),
        Arrays(),
    ),
    "idx": (
        "train-images-idx3-ubyte",
        struct.pack(">4B3I", 0, 0, 8, 3, 2, 4, 4) + bytes(32),
        Idx(),
    ),
    "idx's labels": (
        "train-labels-idx1-ubyte",
        struct.pack(">4BI", 0, 0, 8, 1, 2) + b"\0\1",
        Idx(),
        "train-images-idx3-ubyte",
    ),
    "cifar": (
        "data_batch_1.bin",
        (b"\1" + bytes(3_072)) * 2,
        FixedRecords().settle(iter(()), [].append),
    ),
    "tfrecords": ("train.tfrecord", frame(EXAMPLE) * 2, Tfrecords()),
    "packed tfrecords": ("train.tfrecord.gz", gzip.compress(frame(EXAMPLE) * 2), Tfrecords()),
}


def mutate(data, random):
    """Bits, bytes, stretches and tokens changed, doubled, moved or taken away."""
    mutated = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 3, 6])):
        at = random.randint(0, len(mutated))
        match random.choice(["flip", "bytes", "token", "token", "cut", "splice", "end"]):
            case "flip" if at < len(mutated):
                mutated[at] ^= 1 << random.randint(0, 7)
            case "bytes":
                mutated[at : at + random.randint(0, 8)] = random.randbytes(random.randint(0, 8))
            case "token":
                mutated[at : at + random.randint(0, 3)] = random.choice(TOKENS)
            case "cut":
                del mutated[at : at + random.randint(1, 40)]
            case "splice":
                start = random.randint(0, len(mutated))
                mutated[at:at] = mutated[start : start + random.randint(0, 60)]
            case "end" if random.random() < 0.2:
                del mutated[at:]
    return bytes(mutated)


def take(folder, path, source):
    """All that a run does with a file: it settles the source, refers to what is there and reads
    it."""
    file = folder / path
    ref = ImageRef(path, str(file), file.stat().st_size, "1")
    with suppress(ValueError):  # a sentence for the user, at launch
        source = source.settle(iter([ref]), lambda note: None)
    found = list(list_file(source, path, ref))
    assert found, "a file is never passed over"
    for one in found:
        if not one.status:
            with suppress(Rejected):
                source.read(one, 2**20)


@pytest.mark.parametrize("name", FILES)
def test_a_mutated_file_is_read_or_rejected(tmp_path, name):
    path, sound, source, *given = FILES[name]
    for kept in ("1.png", "images/1.png", "JPEGImages/1.png", "train/1.png"):
        (tmp_path / kept).parent.mkdir(exist_ok=True)
        (tmp_path / kept).write_bytes(picture())
    for other_path, data, *_ in FILES.values():
        (tmp_path / other_path).parent.mkdir(exist_ok=True)
        (tmp_path / other_path).write_bytes(data)
    (tmp_path / path).write_bytes(sound)
    take(tmp_path, *(given or [path]), source)
    for seed in range(MUTANTS):
        (tmp_path / path).write_bytes(mutate(sound, Random(seed)))
        take(tmp_path, *(given or [path]), source)


@pytest.mark.parametrize("name", folder_names())
def test_a_mutated_file_of_a_golden_input_is_read_or_rejected(tmp_path, name):
    """Each folder of tests/golden/inputs, with the files that its source reads."""
    files = read_folder(name)
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    source = load_settings(str(CONFIGS / f"{name}.yaml"), []).settings.source
    read = sorted(filter(compile_globs(source.files).match_file, files))
    assert read
    for path in read:
        take(tmp_path, path, source)
    for seed in range(MUTANTS):
        path = read[seed % len(read)]
        (tmp_path / path).write_bytes(mutate(files[path], Random(seed)))
        take(tmp_path, path, source)
        (tmp_path / path).write_bytes(files[path])


def test_a_mutated_example_in_a_sound_record_is_read_or_rejected(tmp_path):
    for seed in range(MUTANTS):
        (tmp_path / "train.tfrecord").write_bytes(frame(mutate(EXAMPLE, Random(seed))))
        take(tmp_path, "train.tfrecord", Tfrecords())
