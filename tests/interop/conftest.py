"""Datasets for other people's readers: made in the product's environment by this checkout, read in
another."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ROOT / ".venv/bin/python"
SHARED = ROOT.parent / "shared" / "data"

CONVENTIONS = sorted(path.stem for path in (ROOT / "schemas/conventions").glob("*.yaml"))

COMPUTED = ("feature_vector", "feature_vector_by_name", "plain")
"""Conventions that store what functions compute of an image."""

COLLECTIONS = {
    "sample": (),  # what Recordmill draws itself
    "cifar": (
        f"--input={SHARED}/cifar-folders",
        "--set=splits.from_folders={train: train, test: test}",
    ),
    "imagenet": (
        f"--input={SHARED}/imagenet-flat",
        "--config=configs/filename_labels.yaml",
        r"--set=source.pattern='(?P<synset>n[0-9]+)_(?P<label>.+)\.JPEG'",
        "--set=source.features_from={synset: synset}",
        "--set=labels.ids=names",
    ),
}


@dataclass(frozen=True)
class Dataset:
    """A published dataset."""

    folder: Path

    @cached_property
    def marker(self) -> dict[str, Any]:
        return json.loads((self.folder / "recordmill.json").read_bytes())

    @property
    def labels(self) -> dict[str, int]:
        return self.marker["labels"]

    @property
    def keys(self) -> dict[str, str]:
        """The feature keys by the field that fills them, for features of one value."""
        return {
            said["field"]: key
            for key, said in self.marker["features"].items()
            if said["shape"] == []
        }

    @property
    def is_raw(self) -> bool:
        """Whether images are stored as their pixels."""
        return self.marker["plan"]["recipe"]["images"]["store"] == "raw"

    def files(self, split: str) -> list[str]:
        return [
            str(self.folder / shard["name"]) for shard in self.marker["splits"][split]["shards"]
        ]

    def indexes(self, split: str) -> list[str]:
        return [
            str(self.folder / f"sidecars/{shard['name']}.idx")
            for shard in self.marker["splits"][split]["shards"]
        ]

    def rows(self, split: str) -> list[dict[str, Any]]:
        """The sidecars' rows of all images of a split, in the order of the files."""
        paths = [self.folder / shard["sidecar"] for shard in self.marker["splits"][split]["shards"]]
        rows = [
            json.loads(line)
            for path in paths
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
        return [row for row in rows if "rejected" not in row]


@pytest.fixture(scope="session")
def convert(tmp_path_factory) -> Callable[..., Dataset]:
    """`convert(collection, convention, *flags)`: the dataset, made once; a collection may be a
    folder of a test's own.

    Readers whose packages cannot live in one process are tried in several, which share a folder of
    datasets.
    """
    shelf = Path(os.environ.get("INTEROP_DATASETS") or tmp_path_factory.mktemp("datasets"))

    def run(collection: str | Path, convention: str = "default", *flags: str) -> Dataset:
        if collection in ("cifar", "imagenet") and not SHARED.is_dir():
            pytest.skip("../shared/data is absent")
        name = hashlib.sha256(repr((str(collection), *flags)).encode()).hexdigest()[:8]
        folder = shelf / f"{Path(collection).name}-{convention}-{name}"
        if not (folder / "recordmill.json").exists():
            places = COLLECTIONS.get(collection) or (
                f"--input={draw_sample() if collection == 'sample' else collection}",
            )
            computed = ("features.feature=color_histogram",) if convention in COMPUTED else ()
            # TensorFlow Recorder's files would be gzipped.
            seekable = (
                "index_files=true",
                "compression=none",
            )
            settings = (
                f"convention={convention}",
                *computed,
                "name=some-images",
                *seekable,
                "shards.count=3",
            )
            chosen = [
                *places,
                *(f"--set={each}" for each in settings),
                *flags,
                f"--output={folder}",
            ]
            command = [PRODUCT, "-m", "pipeline.run", *chosen]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        return Dataset(folder)

    def draw_sample() -> Path:
        code = (
            "import os, sys; os.chdir(sys.argv[1]); "
            "from recordmill.pipeline.sample import ensure_sample; print(ensure_sample())"
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [PRODUCT, "-c", code, shelf]
        drawn = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return shelf / drawn.stdout.strip()

    return run


@pytest.fixture(
    params=[(collection, convention) for collection in COLLECTIONS for convention in CONVENTIONS],
    ids="-".join,
)
def dataset(request, convert) -> Dataset:
    """Each collection in each convention."""
    return convert(*request.param)


@pytest.fixture
def run_block(convert, tmp_path) -> Callable[[str], str]:
    """`run_block("train_torch.py")`: runs a block of docs/load.md next to a dataset; gives what it
    prints."""

    def run(name: str) -> str:
        text = (ROOT / "docs/load.md").read_text(encoding="utf-8")
        (block,) = re.findall(rf"^```python {name}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        (tmp_path / name).write_text(block, encoding="utf-8")
        (tmp_path / "dataset").symlink_to(
            convert("sample", "default", "--set=images.resize.exact=[64,64]").folder
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HOME": str(tmp_path / "hf")}
        command = [sys.executable, name]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def opened(convert) -> Any:
    """The split train of the sample, as serialized Examples."""
    import recordmill

    return recordmill.open(convert("sample").folder, form="raw")["train"]
