"""A whole conversion in and out of a store without folders, whose rename is a copy and a delete."""

import io
import json
import tarfile
import time
import zipfile
from typing import ClassVar

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem, MatchResult

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


class _Upload(io.BytesIO):
    """Becomes an object when it is closed, as on gs:// and s3://."""

    def __init__(self, store, path):
        super().__init__()
        self._store, self._path = store, path

    def close(self):
        if not self.closed:
            self._store.objects[self._path] = (self.getvalue(), time.time())
        super().close()


class Shelf(FileSystem):
    """Objects by URL, in memory; only what Beam's base class asks for."""

    objects: ClassVar[dict[str, tuple[bytes, float]]] = {}
    opened: ClassVar[list[str]] = []

    @classmethod
    def scheme(cls):
        return "shelf"

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *(path.strip("/") for path in paths)])

    def split(self, path):
        head, _, tail = path.rpartition("/")
        return head, tail

    def mkdirs(self, path):
        pass

    def has_dirs(self):
        return False

    def _list(self, dir_or_prefix):
        for path, (content, at) in sorted(self.objects.items()):
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(content), at)

    def match(self, patterns, limits=None):
        everything = list(self._list(""))
        return [MatchResult(each, list(self.match_files(everything, each))) for each in patterns]

    def create(self, path, mime_type=None, compression_type=None):
        return _Upload(self, path)

    def open(self, path, mime_type=None, compression_type=None):
        self.opened.append(path)
        if path not in self.objects:
            raise BeamIOError("no such object", {path: FileNotFoundError(path)})
        return io.BytesIO(self.objects[path][0])

    def copy(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            self.objects[target] = (self.objects[source][0], time.time())

    def rename(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            if source not in self.objects:
                raise BeamIOError("rename failed", {(source, target): FileNotFoundError(source)})
            self.objects[target] = (self.objects[source][0], time.time())
            del self.objects[source]

    def exists(self, path):
        return path in self.objects

    def size(self, path):
        return len(self.objects[path][0])

    def last_updated(self, path):
        return self.objects[path][1]

    def checksum(self, path):
        return None

    def metadata(self, path):
        return FileMetadata(path, *self.objects[path])

    def delete(self, paths):
        for path in paths:
            del self.objects[path]


@pytest.fixture
def shelf(monkeypatch, picture):
    monkeypatch.setattr(Shelf, "objects", {})
    monkeypatch.setattr(Shelf, "opened", [])
    for label in ("cat", "dog"):
        for number in range(12):
            Shelf.objects[f"shelf://in/photos/{label}/{number:02}.jpg"] = (
                picture((label, number)),
                1.0,
            )
    Shelf.objects["shelf://in/photos/cat/broken.png"] = (b"no image", 1.0)
    Shelf.objects["shelf://in/photos/.cache/a.jpg"] = (b"", 1.0)
    Shelf.objects["shelf://in/photographs-of-others/x.jpg"] = (b"", 1.0)
    return Shelf


@pytest.fixture
def picture():
    from PIL import Image

    def draw(seed):
        stream = io.BytesIO()
        Image.new("RGB", (40, 30), (ord(seed[0][0]), 20 * seed[1] % 256, 7)).save(
            stream, "JPEG", quality=90
        )
        return stream.getvalue()

    return draw


def convert(*flags):
    return launch(
        ["--input", "shelf://in/photos", "--output", "shelf://out/dataset", *flags], build
    )


def dataset(shelf):
    prefix = "shelf://out/dataset/"
    return {
        path.removeprefix(prefix): there[0]
        for path, there in shelf.objects.items()
        if path.startswith(prefix)
    }


def test_a_dataset_is_read_from_and_published_on_an_object_store(shelf, capsys):
    assert convert("--set", "shards.count=2") == 0
    line = json.loads(capsys.readouterr().out)
    ledger = {
        "listed": 26,
        "written": 24,
        "rejected": {"unknown_format": 1},
        "ignored": {"hidden": 1},
        "left_out": {},
    }
    assert line["ledger"] == ledger
    files = dataset(shelf)
    marker = orjson.loads(files["recordmill.json"])
    shards = [shard for split in marker["splits"].values() for shard in split["shards"]]
    expected = {"recordmill.json", "report.html", *marker["files"]}
    assert {
        "labels.txt",
        "config.yaml",
        "rejected.jsonl",
        "duplicates.jsonl",
        "README.md",
    } < expected
    assert set(files) == expected | {
        shard[kind] for shard in shards for kind in ("name", "sidecar")
    }
    assert [len(files[shard["name"]]) for shard in shards] == [shard["bytes"] for shard in shards]
    rejected = orjson.loads(files["rejected.jsonl"])
    assert (rejected["uri"], rejected["reason"]) == (
        "shelf://in/photos/cat/broken.png",
        "unknown_format",
    )


def test_each_image_is_opened_once(shelf):
    assert convert("--set", "shards.count=2") == 0  # no sample is read to estimate sizes
    images = [
        path
        for path in shelf.opened
        if path.startswith("shelf://in/photos/") and path.endswith(".jpg")
    ]
    folders = ("shelf://in/photos/cat/", "shelf://in/photos/dog/")
    assert sorted(images) == sorted(
        path for path in shelf.objects if path.startswith(folders) and path.endswith(".jpg")
    )
    assert shelf.opened.count("shelf://in/photos/cat/broken.png") == 1


def test_a_second_run_keeps_and_another_plan_is_refused_or_replaces(shelf, capsys):
    assert convert() == 0
    before = dataset(shelf)
    assert convert() == 0
    assert "already holds this dataset" in capsys.readouterr().err
    assert convert("--set", "seed=1") == 1
    assert "seed: 0 -> 1" in capsys.readouterr().err
    assert {
        name: there for name, there in dataset(shelf).items() if not name.startswith(".outcome")
    } == before
    assert convert("--set", "seed=1", "--overwrite", "--set", "shards.count=3") == 0
    files = dataset(shelf)
    names = {
        shard["name"]
        for split in orjson.loads(files["recordmill.json"])["splits"].values()
        for shard in split["shards"]
    }
    assert {name for name in files if name.endswith(".tfrecord")} == names


def test_a_missing_folder_is_reported(shelf, capsys):
    assert launch(["--input", "shelf://in/nothing", "--output", "shelf://out/dataset"], build) == 1
    assert (
        "shelf://in/nothing: the input cannot be read (nothing is there)" in capsys.readouterr().err
    )


def test_a_manifest_names_images_on_an_object_store(shelf, capsys):
    there = [f"shelf://in/photos/cat/{number:02}.jpg,cat" for number in range(12)]
    lines = [
        "uri,label",
        *there,
        "shelf://in/photos/gone.jpg,cat",
        "shelf://in/other/x.jpg,cat",
        "dog/00.jpg,dog",
    ]
    shelf.objects["shelf://in/lists/a.csv"] = ("\n".join(lines).encode(), 1.0)
    source = "{kind: manifest, root: 'shelf://in/photos', columns: {uri: uri, label: label}}"
    flags = [
        "--input",
        "shelf://in/lists/a.csv",
        "--output",
        "shelf://out/dataset",
        "--set",
        f"source={source}",
    ]
    assert launch(flags, build) == 0
    ledger = json.loads(capsys.readouterr().out)["ledger"]
    assert (ledger["written"], ledger["rejected"]) == (13, {"outside_root": 1, "vanished": 1})
    rejected = sorted(
        (row["stage"], row["key"], row["detail"])
        for row in map(orjson.loads, dataset(shelf)["rejected.jsonl"].splitlines())
    )
    outside = (
        "'shelf://in/other/x.jpg' is not below source.root, by default the manifest's own folder"
    )
    assert rejected == [
        ("list", "a.csv/000015", f"a.csv, row 15: column 'uri': {outside}"),
        ("read", "gone.jpg", "the file was listed, and was gone when it was read"),
    ]


def test_images_in_a_parquet_on_an_object_store(shelf, picture):
    stream = io.BytesIO()
    pictures = [picture(("cat", number)) for number in range(7)]
    pq.write_table(pa.table({"image": pictures, "label": ["cat"] * 7}), stream, row_group_size=3)
    shelf.objects["shelf://in/lists/a.parquet"] = (stream.getvalue(), 1.0)
    source = "source={kind: manifest, columns: {bytes: image, label: label}}"
    flags = ["--input", "shelf://in/lists", "--output", "shelf://out/dataset", "--set", source]
    assert launch(flags, build) == 0
    files = dataset(shelf)
    assert sum(content.count(data) for content in files.values() for data in pictures) == 7


def test_archives_and_records_are_read_in_place_on_an_object_store(shelf, picture):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for number in range(6):
            archive.writestr(f"{'ab'[number % 2]}/{number}.jpg", picture(("z", number)))
    shelf.objects["shelf://in/archives/a.zip"] = (stream.getvalue(), 1.0)
    for name, mode in (("b.tar", "w"), ("c.tar.gz", "w:gz")):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode=mode) as tar:
            for number in range(6):
                info = tarfile.TarInfo(f"{'ab'[number % 2]}/{number}.jpg")
                info.size = len(picture((name, number)))
                tar.addfile(info, io.BytesIO(picture((name, number))))
        shelf.objects[f"shelf://in/archives/{name}"] = (stream.getvalue(), 1.0)
    settings = ["--set", "source.kind=archives", "--set", "splits={fractions: {train: 1.0}}"]
    assert (
        launch(["--input=shelf://in/archives", "--output=shelf://out/first", *settings], build) == 0
    )
    settings[1] = "source.kind=tfrecords"
    assert (
        launch(["--input=shelf://out/first", "--output=shelf://out/second", *settings], build) == 0
    )
    first, second = (
        orjson.loads(shelf.objects[f"shelf://out/{name}/recordmill.json"][0])
        for name in ("first", "second")
    )
    assert first["ledger"]["written"] == second["ledger"]["written"] == 18
    assert first["labels"] == second["labels"] == {"a": 0, "b": 1}
