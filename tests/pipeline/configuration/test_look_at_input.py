import gzip
import io
import os
import tarfile
import zipfile
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recordmill.pipeline.configuration import look_at_input as module
from recordmill.pipeline.configuration.look_at_input import MOST_MEMBERS, look_at_input
from recordmill.schemas.settings.source import ListingSettings
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Names
from recordmill.transforms.inputs.patterns import why_ignored
from recordmill.transforms.inputs.tables.read_table import TABLE_ENDINGS


@pytest.fixture
def look(tmp_path):
    def write_and_look(files, name="", **settings):
        for path, data in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(data if isinstance(data, bytes) else data.encode())
        return look_at_input(
            str(tmp_path / name), partial(why_ignored, ListingSettings(**settings))
        )

    return write_and_look


def test_two_levels_of_names_and_folders_of_annotations_below_them(look):
    files = ("1.jpg", ".DS_Store", "train/images/1.jpg", "train/labels/1.txt", "a/b/c/2.jpg")
    sketch = look({**dict.fromkeys((*files, "VOC/ImageSets/Main/val.txt"), ""), ".git/x": ""})
    assert sketch.names == {
        "": Names(("1.jpg",), ("VOC", "a", "train")),
        "VOC": Names((), ("ImageSets",)),
        "VOC/ImageSets": Names((), ("Main",)),
        "VOC/ImageSets/Main": Names(("val.txt",)),
        "a": Names((), ("b",)),
        "train": Names((), ("images", "labels")),
        "train/labels": Names(("1.txt",)),
    }


def test_what_the_user_leaves_alone_is_not_seen(look):
    sketch = look(
        {"cat/1.jpg": "", "cat/1.xml": "", "old/2.jpg": ""}, include=("*.jpg",), ignore=("old/",)
    )
    assert sketch.names == {"": Names((), ("cat",)), "cat": Names(("1.jpg",))}


def test_a_few_files_are_read_a_little(look):
    texts = {f"labels/{number:02}.txt": "0 " * 999 for number in range(99)}
    packed = gzip.compress(b"uri,label\n1.jpg,cat\n")
    columns = {
        "image": {"bytes": b"x", "path": "1.jpg"},
        "raw": b"x",
        "label": 3,
        "text": 'a, "b"',
        "several": [b"x"],
    }
    boxes = {
        "objects": {"bbox": [[1.0, 2.0, 3.0, 4.0]], "category": [0]},
        "parts": [{"bbox": [1.0], "category": 0}],
    }
    table = pa.table({name: [value] for name, value in (columns | boxes).items()})
    table = table.append_column("large", pa.array([b"x"], pa.large_binary())).append_column(
        "label", [["twice"]]
    )
    pq.write_table(table, stream := io.BytesIO())
    sketch = look(
        {
            **texts,
            "a.json": "{}",
            "b.csv.gz": packed,
            "c.parquet": stream.getvalue(),
            "1.jpg": "jpeg",
        }
    )
    assert sketch.heads == {
        "a.json": b"{}",
        "b.csv.gz": b"uri,label\n1.jpg,cat\n",
        "c.parquet": (
            b"image,raw,label,text,several,objects,parts,large,label\r\n"
            b'<other bytes>,<other bytes>,twice,"a, ""b""",<list of bytes>,<objects>,<objects>,'
            b"<other bytes>,twice\r\n"
        ),
        "labels/00.txt": ("0 " * 999)[:1024].encode(),
        "labels/01.txt": ("0 " * 999)[:1024].encode(),
        "labels/02.txt": ("0 " * 999)[:1024].encode(),
    }


@pytest.mark.parametrize("ending", TABLE_ENDINGS)
def test_every_file_that_is_a_table_by_its_name_is_looked_into(ending, look):
    assert list(look({f"a{ending}": "uri\n", "1.jpg": "jpeg"}).heads) == [f"a{ending}"]


def test_a_table_with_long_rows_is_read_further(look):
    header = ",".join(f"column_of_numbers_{number}" for number in range(900))
    texts = {name: f"{header}\n{'1,' * 899}1\n{'2,' * 30_000}" for name in ("a.csv", "a.txt")}
    packed = gzip.compress(texts["a.csv"].encode(), compresslevel=0)
    heads = look({**texts, "b.csv.gz": packed}).heads
    assert heads["a.csv"] == texts["a.csv"][: 2**16].encode()
    assert heads["a.txt"] == texts["a.txt"][:1024].encode()
    assert heads["b.csv.gz"] == heads["a.csv"][: len(heads["b.csv.gz"])]
    assert len(heads["b.csv.gz"]) > 60_000


def test_no_more_than_ten_files_are_read(look, monkeypatch):
    read = []
    monkeypatch.setattr(module, "_read_head", lambda uri: read.append(uri) or b"")
    look(
        {
            f"{folder:02}/{name}": ""
            for folder in range(40)
            for name in ("1.json", "1.xml", "1.txt", "1.csv")
        }
    )
    assert len(read) == 10


def test_files_named_after_an_image_are_read_before_others(look):
    sketch = look({"a.txt": "a", "b.txt": "b", "c.txt": "c", "z.txt": "z", "z.jpg": ""})
    assert sketch.heads == {"z.txt": b"z", "a.txt": b"a", "b.txt": b"b"}


def test_an_input_that_is_a_file(look, tmp_path):
    assert look({"a.npy": "", "1.jpg": ""}, "a.npy") == FolderSketch(
        {"": Names(("a.npy",))}, {"a.npy": b""}, only="a.npy", root=str(tmp_path)
    )
    sketch = look({"list.csv": "uri\n", "other.csv": "", "more/2.jpg": ""}, "list.csv")
    assert sketch.names == {"": Names(("1.jpg", "list.csv"), ("more",)), "more": Names(("2.jpg",))}
    assert (sketch.heads, sketch.only) == ({"list.csv": b"uri\n"}, "list.csv")
    for name in ("a.json", "a.xml"):
        sketch = look({name: "x"}, name)
        assert (sketch.names[""].files, sketch.heads) == (("1.jpg", name), {name: b"x"})


def test_an_input_that_is_not_there_has_no_names(tmp_path):
    assert look_at_input(str(tmp_path / "no"), partial(why_ignored, ListingSettings())).names == {
        "": Names()
    }


def test_names_that_are_not_utf_8_are_passed_over(look, tmp_path):
    with open(os.fsencode(tmp_path) + b"/caf\xe9.jpg", "wb"):
        pass
    assert look({"1.jpg": ""}).top == Names(("1.jpg",))


def tar(names, mode):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:
        for name, data in names.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz"])
def test_the_members_of_an_archive(look, ending):
    names = {
        "shards/000.jpg": b"jpeg",
        "shards/000.cls": b"7\n",
        "__MACOSX/x": b"",
        "shards/001.cls": b"8",
    }
    if ending == "zip":
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for name, data in names.items():
                archive.writestr(name, data)
        data = stream.getvalue()
    else:
        data = tar(names, {"tar": "w", "tar.gz": "w:gz"}[ending])
    sketch = look({f"a.{ending}": data})
    assert sketch.archives == {
        f"a.{ending}": FolderSketch.of(["shards/000.jpg", "shards/000.cls", "shards/001.cls"])
    }
    assert sketch.heads == {f"a.{ending}/.cls": b"7\n", f"a.{ending}/.json": b""}


def test_an_archive_next_to_images_or_a_damaged_one_is_not_a_layout(look):
    assert look({"a.zip": "no zip"}).archives == {"a.zip": FolderSketch.of([])}
    assert look({"a.zip": "no zip", "cat/1.jpg": ""}).archives == {}


class Bucket:
    """A store that counts what it is asked for."""

    def __init__(self, files):
        self.files, self.asked = files, []

    def names(self, prefix):
        self.asked.append(prefix)
        below = [
            path[len(prefix) :].partition("/")
            for path in sorted(self.files)
            if path.startswith(prefix)
        ]
        yield from dict.fromkeys(name + slash for name, slash, _ in below)

    def read(self, uri, offset, length):
        self.asked.append(uri)
        return self.files[uri][offset : offset + length]

    def describe(self, uri):
        self.asked.append(uri)


def test_a_store_is_asked_for_each_folder_and_each_head_once(monkeypatch):
    files = {f"gs://pets/in/train/images/{number:04}.jpg": b"" for number in range(3000)}
    files |= {
        "gs://pets/in/train/labels/0000.txt": b"0 .5 .5 1 1",
        "gs://pets/in/data.yaml": b"names: [cat]",
    }
    bucket = Bucket(files)
    monkeypatch.setattr(module.storage, "_find_store", lambda _: bucket)
    sketch = look_at_input("gs://pets/in", partial(why_ignored, ListingSettings()))
    assert sketch.names == {
        "": Names(("data.yaml",), ("train",)),
        "train": Names((), ("images", "labels")),
        "train/labels": Names(("0000.txt",)),
    }
    assert sketch.heads == {"data.yaml": b"names: [cat]", "train/labels/0000.txt": b"0 .5 .5 1 1"}
    assert sorted(bucket.asked) == [
        "gs://pets/in/", "gs://pets/in/data.yaml", "gs://pets/in/train/", "gs://pets/in/train/labels/",
        "gs://pets/in/train/labels/0000.txt",
    ]  # fmt: skip


def test_of_a_stores_large_folder_the_first_names_and_telling_ones_are_seen(monkeypatch):
    files = {f"gs://pets/in/{number:05}.jpg": b"" for number in range(3000)} | {
        "gs://pets/in/metadata.csv": b"file_name"
    }
    bucket = Bucket(files)
    monkeypatch.setattr(module.storage, "_find_store", lambda _: bucket)
    sketch = look_at_input("gs://pets/in", partial(why_ignored, ListingSettings()))
    assert (len(sketch.top.images), sketch.heads) == (1000, {"metadata.csv": b"file_name"})
    listed = [asked for asked in bucket.asked if not asked.endswith(".csv")]
    assert sorted(listed) == sorted(
        ["gs://pets/in/", *(f"gs://pets/in/{each}" for each in module.REVEALING_PREFIXES)]
    )


def test_folders_that_come_late_in_a_large_archive_are_seen(tmp_path):
    late = ["test/cat/1.jpg", "train/cat/1.jpg", "train/dog/1.jpg"]
    names = [f"test/cat/{number}.jpg" for number in range(MOST_MEMBERS + 2)] + late
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for name in dict.fromkeys(names):
            packed.writestr(name, b"")
    with tarfile.open(tmp_path / "a.tar", "w") as packed:
        for name in dict.fromkeys(names):
            packed.addfile(tarfile.TarInfo(name))
    for inside in look_at_input(str(tmp_path), lambda *_: "").archives.values():
        assert sorted(path for path, each in inside.names.items() if each.images) == [
            "test/cat",
            "train/cat",
            "train/dog",
        ]
        assert len(inside.at("test/cat").files) == MOST_MEMBERS
