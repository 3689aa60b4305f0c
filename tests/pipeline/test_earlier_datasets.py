"""Datasets made by version 0.1.0 (commit 357e673) are still the same ones: kept, verified, loaded,
resumed.

`earlier_datasets.zip` holds ten of them, and an unfinished one. It was written by that commit:
`PYTHONPATH=<checkout of 357e673> python tests/pipeline/test_earlier_datasets.py
earlier_datasets.zip`.
"""

import csv
import io
import json
import os
import random
import socket
import struct
import sys
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from PIL import Image

STORED = Path(__file__).parent / "earlier_datasets.zip"


def draw(
    seed: object, size: tuple[int, int] = (24, 16), kind: str = "JPEG", mode: str = "RGB"
) -> bytes:
    """A picture, another one for each seed; never to be changed, since the datasets' ids depend on
    its size."""
    noise = random.Random(f"{seed}").randbytes(6 * 4 * 3)
    image = (
        Image.frombytes("RGB", (6, 4), noise).resize(size, Image.Resampling.BICUBIC).convert(mode)
    )
    stream = io.BytesIO()
    image.save(stream, kind, **({"quality": 90} if kind == "JPEG" else {}))
    return stream.getvalue()


def write(folder: Path, files: dict[str, bytes | str]) -> None:
    """Writes files, all of one time."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        os.utime(path, (1_700_000_000, 1_700_000_000))


def class_folders() -> dict[str, bytes | str]:
    files: dict[str, bytes | str] = {f"cat/{n}.jpg": draw(n) for n in range(5)}
    return (
        files
        | {f"dog/{n}.png": draw(n, kind="PNG", mode="RGBA") for n in range(3)}
        | {"dog/notes.txt": "text"}
    )


def split_folders() -> dict[str, bytes | str]:
    return {
        f"{split}/{label}/{n}.jpg": draw((split, label, n))
        for split in ("train", "val")
        for label in "ab"
        for n in (1, 2)
    }


def labels_in_names() -> dict[str, bytes | str]:
    return {f"img_{n:03}_{n % 3}.jpg": draw(n, (40, 30)) for n in range(9)}


def manifest() -> dict[str, bytes | str]:
    stream = io.StringIO()
    rows = csv.writer(stream)
    rows.writerow(["path", "class", "split", "age"])
    rows.writerows(
        [f"p/{n}.jpg", "cat" if n % 2 else "dog", ("train", "validation", "test")[n % 3], n]
        for n in range(6)
    )
    return {f"p/{n}.jpg": draw(n) for n in range(6)} | {"manifest.csv": stream.getvalue()}


def coco() -> dict[str, bytes | str]:
    files: dict[str, bytes | str] = {}
    for split in ("train", "val"):
        images = [{"id": n, "file_name": f"{n}.jpg", "width": 24, "height": 16} for n in (1, 2, 3)]
        boxes = [
            {
                "id": n,
                "image_id": n,
                "category_id": n % 2 + 1,
                "bbox": [1, 2, 9, 8 + n],
                "iscrowd": 0,
            }
            for n in (1, 2)
        ]
        categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
        text = json.dumps({"images": images, "annotations": boxes, "categories": categories})
        files[f"annotations/instances_{split}2017.json"] = text
        files |= {f"{split}/{n}.jpg": draw((split, n)) for n in (1, 2, 3)}
    return files


def voc() -> dict[str, bytes | str]:
    files: dict[str, bytes | str] = {}
    for n in range(6):
        files[f"JPEGImages/{n}.jpg"] = draw(n)
        box = f"<bndbox><xmin>{n}</xmin><ymin>1</ymin><xmax>20</xmax><ymax>99</ymax></bndbox>"
        files[f"Annotations/{n}.xml"] = (
            f"<annotation><filename>{n}.jpg</filename><size><width>24</width><height>16</height></size>"
            f"<object><name>{'cat' if n % 2 else 'dog'}</name>{box}</object></annotation>"
        )
    return files


def table() -> dict[str, bytes | str]:
    return {
        "rows.csv": "id,size,share,word\n"
        + "".join(f"r{n},{n},{n / 8},w{n % 3}\n" for n in range(20))
    }


def idx() -> dict[str, bytes | str]:
    files: dict[str, bytes | str] = {}
    for name, count in (("train", 6), ("t10k", 3)):
        pixels = random.Random(name).randbytes(count * 5 * 4)
        files[f"{name}-images-idx3-ubyte"] = struct.pack(">IIII", 2051, count, 5, 4) + pixels
        files[f"{name}-labels-idx1-ubyte"] = struct.pack(">II", 2049, count) + bytes(
            n % 2 for n in range(count)
        )
    return files


def webdataset() -> dict[str, bytes | str]:
    files: dict[str, bytes | str] = {}
    for split in ("train", "val"):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for n in range(4):
                for ending, content in (
                    ("jpg", draw((split, n))),
                    ("cls", b"%d" % (n % 2)),
                    ("txt", b"number %d" % n),
                ):
                    member = tarfile.TarInfo(f"{n:03}.{ending}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        files[f"{split}-000000.tar"] = stream.getvalue()
    return files


@dataclass(frozen=True)
class Case:
    """A dataset: its input, and the flags that made it."""

    name: str
    files: Callable[[], dict[str, bytes | str]]
    flags: tuple[str, ...] = ()


CASES = (
    Case("defaults", class_folders),
    Case(
        "padded",
        split_folders,
        (
            "--config=configs/class_folders.yaml",
            "--set=splits.from_folders={train: train, val: validation}",
            "--set=images={resize: {exact: [20, 20], fit: pad}, background: [1, 2, 3], moments: "
            "true}",
            "--set=shards.count=2",
        ),
    ),
    Case(
        "names",
        labels_in_names,
        (
            "--config=configs/filename_labels.yaml",
            "--set=splits={fractions: {train: 0.6, test: 0.4}, stratify: true}",
            "--set=convention=slim",
            "--set=images={reencode: always, quality: 80, subsampling: '4:2:2'}",
            "--set=seed=7",
        ),
    ),
    Case(
        "manifest",
        manifest,
        (
            "--config=configs/manifest.yaml",
            "--set=source.features_from={image/age: {column: age, type: int64}}",
        ),
    ),
    Case("coco", coco, ("--config=configs/coco.yaml",)),
    Case("voc", voc, ("--config=configs/voc.yaml", "--set=splits.group='(?P<group>[0-9])'")),
    Case(
        "table",
        table,
        ("--config=configs/observations.yaml", "--set=source.columns={}", "--set=source.key=id"),
    ),
    Case("idx", idx, ("--config=configs/idx.yaml",)),
    Case("webdataset", webdataset, ("--config=configs/webdataset.yaml",)),
    Case(
        "functions",
        class_folders,
        (
            "--config=configs/feature_vectors.yaml",
            "--set=features={feature: color_histogram}",
            "--set=labels={classes: [dog, cat], offset: 3}",
            "--set=ignore=['*.txt']",
            "--set=limit=7",
            "--set=compression=gzip",
        ),
    ),
)

UNFINISHED = Case(
    "unfinished", labels_in_names, ("--config=configs/filename_labels.yaml", "--set=shards.count=2")
)


def prepare(case: Case, folder: Path) -> list[str]:
    """Writes a case's input; the flags of the command that makes its dataset of it."""
    write(folder / "input", case.files())
    return [f"--input={folder / 'input'}", f"--output={folder / 'dataset'}", *case.flags]


@pytest.fixture(scope="module")
def stored() -> zipfile.ZipFile:
    """The datasets, where this machine has the libraries that made them: others would encode other
    bytes."""
    from recordmill.imaging import imaging_versions

    archive = zipfile.ZipFile(STORED)
    recipe = json.loads(archive.read("defaults/recordmill.json"))["plan"]["recipe"]
    if recipe["versions"] != imaging_versions():
        pytest.skip(f"the datasets were made with {recipe['versions']}")
    return archive


def unpack(stored: zipfile.ZipFile, name: str, folder: Path) -> None:
    for member in stored.namelist():
        if member.startswith(f"{name}/"):
            write(folder / "dataset", {member.removeprefix(f"{name}/"): stored.read(member)})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_dataset_of_0_1_0_is_kept_verified_and_loaded(case, stored, tmp_path, capsys):
    from recordmill import examples_as_numpy
    from recordmill.pipeline.launch import launch
    from recordmill.pipeline.run import build
    from recordmill.reading.dataset import open_dataset
    from recordmill.reading.verify_dataset import verify_dataset

    flags = prepare(case, tmp_path)
    unpack(stored, case.name, tmp_path)
    marker = json.loads(stored.read(f"{case.name}/recordmill.json"))
    code = launch(flags, build)
    line = json.loads(capsys.readouterr().out)
    assert (code, line["status"], line["plan_id"]) == (0, "kept", marker["plan"]["id"]), line[
        "sentence"
    ]
    assert [note for note in line["notes"] if "--overwrite" in note] == []
    verified = verify_dataset(open_dataset(str(tmp_path / "dataset")), "pixels")
    assert [str(finding) for finding in verified.findings if not finding.is_note] == []
    assert verified.records == sum(split["records"] for split in marker["splits"].values())
    for split, written in marker["splits"].items():
        assert len(list(examples_as_numpy(str(tmp_path / "dataset"), split))) == written["records"]


@pytest.mark.parametrize("case", [CASES[0], CASES[4]], ids=lambda case: case.name)
def test_a_dataset_of_0_1_0_is_replaced(case, stored, tmp_path, capsys):
    from recordmill.pipeline.launch import launch
    from recordmill.pipeline.run import build
    from recordmill.reading.dataset import open_dataset
    from recordmill.reading.verify_dataset import verify_dataset

    flags = prepare(case, tmp_path)
    unpack(stored, case.name, tmp_path)
    old = json.loads((tmp_path / "dataset" / "recordmill.json").read_bytes())
    assert launch([*flags, "--set=seed=3", "--overwrite"], build) == 0
    line = json.loads(capsys.readouterr().out)
    verified = verify_dataset(open_dataset(str(tmp_path / "dataset")))
    assert [str(finding) for finding in verified.findings if not finding.is_note] == []
    assert (old["recordmill"], verified.dataset.marker.format) == (1, 2)
    assert verified.records == line["ledger"]["written"] == old["ledger"]["written"]


def test_what_0_1_0_left_unfinished_is_finished(stored, tmp_path, capsys):
    from recordmill.pipeline.launch import launch
    from recordmill.pipeline.run import build
    from recordmill.reading.dataset import open_dataset
    from recordmill.reading.verify_dataset import verify_dataset

    flags = prepare(UNFINISHED, tmp_path)
    unpack(stored, UNFINISHED.name, tmp_path)
    (staging,) = (tmp_path / "dataset").iterdir()
    claim = {
        "plan": staging.name.removeprefix(".staging-"),
        "run": "0",
        "since": "2026-11-22T10:33:14+00:00",
    }
    claim |= {
        "host": socket.gethostname(),
        "process": 4_194_305,
    }  # no Linux process has this number: the run was killed
    write(staging, {"claim.json": json.dumps(claim)})
    assert len(list(staging.glob("*.done.json"))) == 2
    assert launch(flags, build) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["status"], staging.name) == ("published", f".staging-{line['plan_id']}")
    assert not any(
        "earlier run" in note for note in line["notes"]
    )  # their sidecars lack what format 2 has
    marker = json.loads((tmp_path / "dataset" / "recordmill.json").read_bytes())
    assert (marker["recordmill"], marker["run"]["shards_reused"]) == (2, 0)
    assert verify_dataset(open_dataset(str(tmp_path / "dataset")), "pixels").failed == 0


def make(case: Case, work: Path) -> Path:
    """A case's dataset, or what is left of the unfinished one, made by the commit that runs
    this."""
    # That commit's modules lay at the top.
    launching, running, publishing = map(
        import_module, ("pipeline.launch", "pipeline.run", "transforms.publish_dataset")
    )

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    flags = [*prepare(case, work), "--set=report=false"]
    if case is not UNFINISHED:
        assert launching.launch(flags, running.build) == 0
        return work / "dataset"
    publishing.stage_dataset = stop
    launching.os._exit = lambda code: None
    launching.launch(flags, running.build)
    (staging,) = (work / "dataset").iterdir()
    for name in (
        "claim.json",
        *(f"train-00001.{kind}" for kind in ("tfrecord", "jsonl", "done.json")),
    ):
        (staging / name).unlink()
    return work / "dataset"


if __name__ == "__main__":
    with (
        TemporaryDirectory() as work,
        zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for case in (*CASES, UNFINISHED):
            made = make(case, Path(work) / case.name)
            for path in filter(Path.is_file, sorted(made.rglob("*"))):
                archive.writestr(
                    zipfile.ZipInfo(f"{case.name}/{path.relative_to(made)}"),
                    path.read_bytes(),
                    8,
                    9,
                )
