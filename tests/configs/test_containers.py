"""Files of many images that are missing, damaged, packed or named in an unusual way."""

import gzip
import io
import json
import re
import shlex
import shutil
import struct
import tarfile
import zipfile
import zlib

import pytest
from crc32c import crc32c

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.schemas.features import Example
from recordmill.storage.tfrecord_file import masked

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

WHOLE = "--set=splits.fractions={train: 1.0}"
CLASSES = ("cat", "dog")


def frame(record):
    length = struct.pack("<Q", len(record))
    checksums = [struct.pack("<I", masked(crc32c(part))) for part in (length, record)]
    return length + checksums[0] + record + checksums[1]


@pytest.fixture
def record(picture):
    """A framed Example of an image with a number and a class."""

    def make(number):
        example = Example()
        features = example.features.feature
        features["image/encoded"].bytes_list.value.append(picture(number))
        features["image/format"].bytes_list.value.append(b"jpeg")
        features["image/class/label"].int64_list.value.append(number % 2)
        features["image/class/text"].bytes_list.value.append(CLASSES[number % 2].encode())
        return frame(example.SerializeToString())

    return make


@pytest.fixture
def records(record):
    """The frames of several Examples."""
    return lambda *numbers: b"".join(map(record, numbers))


@pytest.fixture
def run(tmp_path, capsys, read_examples):
    """Converts without a configuration; gives the exit code, the pictures of each class by split,
    and the text of stderr."""

    def go(source, *more):
        output = tmp_path / "output"
        shutil.rmtree(output, ignore_errors=True)
        code = launch([f"--input={source}", f"--output={output}", *more], build)
        said, found = capsys.readouterr().err, {}
        if code == 0:
            marker = json.loads((output / "recordmill.json").read_text(encoding="utf-8"))
            for split, entry in marker["splits"].items():
                for shard in entry["shards"]:
                    for each in read_examples((output / shard["name"]).read_bytes()):
                        name = each.get("image/class/text", [b""])[0].decode()
                        found.setdefault(split, {}).setdefault(name, set())
                        found[split][name].add(each["image/encoded"][0])
        return code, found, said

    return go


@pytest.fixture
def check(run, picture):
    """Checks that a run fails with exit code 3 and these words, and that the flag that it prints
    gives exactly these images."""

    def go(source, words, numbers, *more):
        code, _, said = run(source, *more)
        assert code == 3, said
        text = " ".join(said.split())
        for each in words:
            assert each in text
        (flags,) = set(
            re.findall(r"accept the loss with (--set max_rejected\.containers=\d+)", text)
        )
        code, found, said = run(source, *shlex.split(flags), *more)
        assert code == 0, said
        images = {data for names in found.values() for each in names.values() for data in each}
        assert images == {picture(number) for number in numbers}

    return go


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_missing_shard_fails_the_run(tmp_path, records, check):
    for shard, first in ((0, 0), (2, 4)):
        put(tmp_path / "in" / f"train-0000{shard}-of-00003.tfrecord", records(first, first + 1))
    words = (
        "1 container is missing or damaged (1 missing_shard), train-00001-of-00003.tfrecord (the "
        "others' names say that it is file 1 of 3, counted from 0), and max_rejected.containers is "
        "0",
    )
    check(tmp_path / "in", words, [0, 1, 4, 5])


def test_a_plan_says_that_a_shard_is_missing(tmp_path, records, run):
    put(tmp_path / "in" / "train-00000-of-00002.tfrecord", records(0, 1))
    code, _, said = run(tmp_path / "in", "--plan")
    assert code == 3
    assert "this run would fail: 1 container is missing" in " ".join(said.split())


@pytest.mark.parametrize(
    "more", [("--set=include=[train-00000-*]",), ("--set=ignore=['*-00001-*']",)], ids=str
)
def test_a_shard_that_the_settings_leave_out_is_not_missing(tmp_path, records, run, more, picture):
    put(tmp_path / "in" / "train-00000-of-00002.tfrecord", records(0, 1))
    code, found, _ = run(tmp_path / "in", *more)
    assert (code, found) == (0, {"train": {"cat": {picture(0)}, "dog": {picture(1)}}})


def test_one_file_is_not_missing_the_others(tmp_path, records, run):
    path = put(tmp_path / "in" / "train-00000-of-00002.tfrecord", records(0, 1))
    assert run(path)[0] == 0


@pytest.fixture
def own(tmp_path, picture):
    """A dataset of 24 images in three shards."""
    for number in range(24):
        put(tmp_path / "photos" / CLASSES[number % 2] / f"{number}.jpg", picture(number))
    out = tmp_path / "own"
    arguments = [f"--input={tmp_path / 'photos'}", f"--output={out}", WHOLE, "--set=shards.count=3"]
    assert launch(arguments, build) == 0
    return out


def numbers_in(content, read_examples, picture):
    known = {picture(number): number for number in range(24)}
    return [known[each["image/encoded"][0]] for each in read_examples(content)]


@pytest.mark.parametrize("loss", ["file", "record", "half a record", "everything"])
def test_a_dataset_of_recordmill_that_lost_something_fails_the_run(
    own, loss, read_examples, picture, check
):
    shard = own / "train-00001-of-00003.tfrecord"
    content = shard.read_bytes()
    count = len(there := numbers_in(content, read_examples, picture))
    (last,) = struct.unpack_from("<Q", content, 0)
    kept = {
        "file": b"",
        "record": content[: last + 16],
        "half a record": content[: last + 40],
        "everything": b"",
    }[loss]
    if loss == "file":
        shard.unlink()
        words = (
            f"1 missing_shard), {shard.name} (recordmill.json lists it, with {count:,} records)",
        )
    else:
        shard.write_bytes(kept)
        lost = count if loss == "everything" else count - 1
        words = (
            "1 bad_tfrecord)",
            f"it has lost {lost:,} of the {count:,} records that recordmill.json lists",
        )
    left = there[:1] if kept else []
    others = set(range(24)) - set(there)
    check(own, words, [*others, *left])


def test_a_dataset_of_tfds_that_lost_a_shard_fails_the_run(tmp_path, records, check):
    put(tmp_path / "in" / "x-train.tfrecord-00000-of-00002", records(0, 1))
    info = {"name": "x", "splits": [{"name": "train", "shardLengths": ["3", "2"]}]}
    put(tmp_path / "in" / "dataset_info.json", json.dumps(info).encode())
    words = (
        "2 containers are missing or damaged (1 bad_tfrecord, 1 missing_shard), such as "
        "x-train.tfrecord-00000-of-00002 (it has lost 1 of the 3 records that dataset_info.json "
        "lists) and x-train.tfrecord-00001-of-00002 (dataset_info.json lists it, with 2 records), "
        "and max_rejected.containers is 0",
        "restore them, or accept the loss with --set max_rejected.containers=2",
    )
    words = tuple(each.replace("such as ", "") for each in words)
    check(tmp_path / "in", words, [0, 1])


def tar_of(files, mode="w"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


@pytest.fixture
def samples(picture):
    """The members of samples with a class."""

    def make(prefix, *numbers):
        return [
            (f"{prefix}{number:04}.{part}", data)
            for number in numbers
            for part, data in (("jpg", picture(number)), ("cls", CLASSES[number % 2].encode()))
        ]

    return make


@pytest.mark.parametrize("kind", ["tar", "tfrecord.gz"])
def test_a_container_that_was_cut_fails_the_run(tmp_path, kind, samples, records, check, picture):
    whole = tar_of(samples("", *range(20))) if "tar" in kind else records(*range(20))
    if kind.endswith("gz"):
        # Several members of gzip, so that it is known what can be unpacked.
        parts = [gzip.compress(whole[at : at + 5000]) for at in range(0, len(whole), 5000)]
        content, there = b"".join(parts[:2]) + parts[2][:12], 10_000
    else:
        content, there = whole[:10_100], 10_100
    put(tmp_path / "in" / f"train-0.{kind}", content)
    if "tar" in kind:
        with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
            members = tar.getmembers()
        kept = sum(m.name.endswith("cls") and m.offset_data + m.size <= there for m in members)
    else:
        ends = [len(records(*range(n + 1))) for n in range(20)]
        kept = sum(end <= there for end in ends)
    reason = "bad_archive" if "tar" in kind else "bad_tfrecord"
    check(
        tmp_path / "in", (f"1 container is missing or damaged (1 {reason}), train-0.",), range(kept)
    )


def test_containers_do_not_count_as_images(tmp_path, records, run):
    for number in range(12):
        put(tmp_path / "in" / f"train-{number}.tfrecord", records(number)[:-1] + b"")
    put(tmp_path / "in" / "train-12.tfrecord", records(*range(20, 40)))
    code, _, said = run(tmp_path / "in")
    assert (code, "12 containers are missing or damaged (12 bad_tfrecord)" in said) == (3, True)
    code, found, said = run(tmp_path / "in", "--set=max_rejected.containers=12")
    assert (code, len(found["train"]["cat"])) == (0, 10)  # 12 of 32 images would be too many
    accepted = ("--set=max_rejected.containers=12", "--set=expect.rejected=0", "--overwrite")
    assert run(tmp_path / "in", *accepted)[0] == 0


def test_zlib_is_read(tmp_path, records, run, picture):
    put(tmp_path / "in" / "train.tfrecord", zlib.compress(records(0, 1)))
    assert run(tmp_path / "in")[1] == {"train": {"cat": {picture(0)}, "dog": {picture(1)}}}


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (("part-r-00000", "part-r-00001"), ("train",)),
        (("part-00000-1a2b-c000.gz", "part-00001-1a2b-c000.gz"), ("train",)),
        (("Split-train/part-m-00000", "Split-eval/part-m-00000"), ("train", "eval")),
        (
            ("Split-train/data_tfrecord-00000-of-00001.gz", "Split-eval/data-00000-of-00001.gz"),
            ("train", "eval"),
        ),
        (("train/a.tfrecord", "val/a.tfrecord"), ("train", "validation")),
        (("data_1.bin", "data_2.bin"), ("train",)),
    ],
    ids=str,
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zlib.compress])
def test_names_of_spark_and_tfx_are_recognized(
    tmp_path, records, run, picture, names, splits, pack
):
    for number, name in enumerate(names):
        put(tmp_path / "in" / name, pack(records(2 * number, 2 * number + 1)))
    put(tmp_path / "in" / "_SUCCESS", b"")
    more = () if len(splits) > 1 else (WHOLE,)
    code, found, said = run(tmp_path / "in", *more)
    pairs = [{"cat": {picture(n)}, "dog": {picture(n + 1)}} for n in (0, 2)]
    expected = dict(zip(splits, pairs, strict=False))
    if len(splits) == 1:
        expected = {"train": {name: pairs[0][name] | pairs[1][name] for name in CLASSES}}
    assert (code, found) == (0, expected), said


def test_one_file_of_spark_is_recognized(tmp_path, records, run, picture):
    path = put(tmp_path / "in" / "part-r-00000", records(0, 1))
    assert run(path, WHOLE)[1] == {"train": {"cat": {picture(0)}, "dog": {picture(1)}}}


@pytest.mark.parametrize(
    "prefixes",
    [("part1/",), ("train.v1/",), ("a/b.c/",), ("x/", "y/"), ("cat/", "dog/"), ("", "z/")],
    ids=str,
)
@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_samples_in_folders_have_their_own_labels(tmp_path, samples, run, picture, prefixes, mode):
    files = [
        each for at, prefix in enumerate(prefixes) for each in samples(prefix, 2 * at, 2 * at + 1)
    ]
    put(tmp_path / "in" / ("s.tar" if mode == "w" else "s.tar.gz"), tar_of(files, mode))
    numbers = range(2 * len(prefixes))
    expected = {
        name: {picture(n) for n in numbers if n % 2 == at} for at, name in enumerate(CLASSES)
    }
    code, found, said = run(tmp_path / "in", WHOLE)
    assert (code, found) == (0, {"train": expected}), said


def test_folders_of_samples_that_are_splits_are_kept(tmp_path, samples, run, picture):
    put(tmp_path / "in" / "s.tar", tar_of([*samples("train/", 0, 1), *samples("val/", 2, 3)]))
    assert run(tmp_path / "in")[1] == {
        "train": {"cat": {picture(0)}, "dog": {picture(1)}},
        "validation": {"cat": {picture(2)}, "dog": {picture(3)}},
    }


def test_of_several_images_the_user_says_which(tmp_path, picture, run):
    files = [
        (f"d/{number}.{part}", data)
        for number in range(2)
        for part, data in (
            ("left.jpg", picture(number)),
            ("right.jpg", picture(number + 50)),
            ("cls", CLASSES[number].encode()),
        )
    ]
    put(tmp_path / "in" / "s.tar", tar_of(files))
    code, _, said = run(tmp_path / "in", WHOLE)
    assert code == 2
    assert "its samples have several images (left.jpg, right.jpg)" in said
    (flags,) = re.findall(
        r"add (--set 'source\.image_parts=\[left\.jpg\]')", " ".join(said.split())
    )
    code, found, said = run(tmp_path / "in", WHOLE, *shlex.split(flags))
    assert (code, found) == (0, {"train": {"cat": {picture(0)}, "dog": {picture(1)}}})
    assert "not stored: .right.jpg (2)" in said


def test_labels_next_to_images_are_never_broken_images(tmp_path, samples, run, picture):
    put(tmp_path / "in" / "s.tar", tar_of(samples("part1/", 0, 1)))
    code, found, said = run(
        tmp_path / "in", WHOLE, "--set=source.kind=archives", "--set=source.labels=folders"
    )
    assert (code, found) == (0, {"train": {"part1": {picture(0), picture(1)}}})
    assert (
        "not stored: labels in .cls files (2); set source.labels to `beside` to read labels" in said
    )


def test_unused_parts_are_counted(tmp_path, picture, run):
    said = json.dumps({"label": 1, "url": "x"}).encode()
    parts = (("txt", b"hello"), ("json", said), ("seg.png", b"?"))
    files = [
        (f"{number}.{part}", data)
        for number in range(3)
        for part, data in (("jpg", picture(number)), *parts)
    ]
    put(tmp_path / "in" / "s.tar", tar_of(files))
    code, _, said = run(tmp_path / "in", WHOLE)
    assert code == 0
    assert "not stored: .json (3), .seg.png (3); source.features_from stores texts and" in said
    code, _, said = run(tmp_path / "in", WHOLE, "--set=source.label_part=json.label")
    assert code == 0
    assert "not stored: .seg.png (3), json.url (3)" in said


def zip_of_windows(names, encoding):
    """A zip as Windows makes it: names are not marked as UTF-8."""
    stream = io.BytesIO()
    raw = [name.encode(encoding) for name, _ in names]
    with zipfile.ZipFile(stream, "w") as archive:
        for number, (_, data) in enumerate(names):
            info = zipfile.ZipInfo(f"@{number}".rjust(len(raw[number]), "@"))
            info.create_system = 0
            archive.writestr(info, data)
    content = stream.getvalue()
    for number, name in enumerate(raw):
        content = content.replace(f"@{number}".rjust(len(name), "@").encode(), name)
    return content


@pytest.mark.parametrize(
    ("classes", "encoding"),
    [
        (("кошка", "собака"), "cp866"),
        (("cat", "猫"), "gbk"),
        (("ねこ", "いぬ"), "shift_jis"),
    ],
    ids=str,
)
def test_names_of_windows_need_an_encoding_and_never_become_a_class(
    tmp_path, picture, run, classes, encoding
):
    names = [(f"{classes[number % 2]}/{number}.jpg", picture(number)) for number in range(4)]
    put(tmp_path / "in" / "photos.zip", zip_of_windows(names, encoding))
    code, _, said = run(tmp_path / "in", WHOLE)
    assert code == 3
    assert "bad_name" in said.replace("bad name", "bad_name")
    assert "set source.names_encoding to the encoding" in " ".join(said.split())
    code, found, said = run(tmp_path / "in", WHOLE, f"--set=source.names_encoding={encoding}")
    expected = {
        name: {picture(number) for number in range(4) if number % 2 == at}
        for at, name in enumerate(classes)
    }
    assert (code, found) == (0, {"train": expected}), said
