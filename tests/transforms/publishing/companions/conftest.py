"""A small dataset, complete in staging: seven images of three classes, two in test; one was
rejected."""

import os
from dataclasses import replace

import pytest
from make_settings import make_settings
from write_shard import write_shard

from recordmill.schemas.dataset.marker import DuplicateCounts, Ledger, SameBytes
from recordmill.schemas.dataset.side_files import row_from_json
from recordmill.schemas.label_map import LabelMap
from recordmill.schemas.settings.dataset import DatasetSettings
from recordmill.transforms.convert_shards import gather_reports
from recordmill.transforms.planning.plan import DatasetPlan
from recordmill.transforms.publishing.staged_dataset import StagedDataset, build_marker, name_shards
from recordmill.transforms.records.convert_image import ConvertedImage
from recordmill.transforms.shards.shard_files import InputDigests

IMAGES = {
    ("train", 0): ["cat", "dog", None, "emu"],
    ("train", 1): ["cat", "cat"],
    ("test", 0): ["dog", "cat"],
}
"""The classes of each shard's images; None was rejected."""


def converted(name: str, label: str | None, ids: dict[str, int], size: int) -> ConvertedImage:
    if label is None:
        rejected = {
            "stage": "decode",
            "rejected": "truncated",
            "detail": "it ends early",
            "sha256": None,
        }
        return ConvertedImage(
            None,
            row_from_json(
                {"key": f"{name}.jpg", "spelling": None, "bytes": 9, "class": None, **rejected}
            ),
        )
    row = {
        "key": f"{label}/{name}.jpg",
        "bytes": size,
        "sha256": name * 8,
        "class": label,
        "label": ids.get(label),
    }
    row |= {"height": 6, "width": 8, "channels": 3, "moments": None, "changes": []}
    return ConvertedImage(bytes(size), row_from_json(row))


@pytest.fixture
def stage(tmp_path):
    """`stage(settings, labels, unlabeled=True)`: the dataset with these settings; the emu may have
    no label."""
    number = 0

    def make(
        settings: DatasetSettings | None = None,
        labels: dict[str, int] | None = None,
        unlabeled: bool = False,
    ) -> StagedDataset:
        nonlocal number
        number += 1
        folder = tmp_path / f"staging-{number}"
        folder.mkdir()
        settings = settings or make_settings(name="pets")
        ids = {"cat": 0, "dog": 1, "emu": 2} if labels is None else labels
        reports = []
        for (split, index), classes in IMAGES.items():
            images = [
                converted(f"{index}{at}", label, ids, 100 + at) for at, label in enumerate(classes)
            ]
            if unlabeled:
                images = [
                    replace(image, row=replace(image.row, class_name=None, label=None))
                    if each == "emu"
                    else image
                    for image, each in zip(images, classes, strict=True)
                ]
            mark = InputDigests("0" * 64, "0" * 64)
            reports.append(
                write_shard(str(folder), split, index, images, mark, settings.compression)
            )
        recipe = {"seed": 0, "compression": settings.compression}
        starts = {"train": [0, 2**63], "test": [0]}
        plan = DatasetPlan(
            "0123456789abcdef", starts=starts, label_map=LabelMap(ids), recipe=recipe
        )
        shards = name_shards(reports, settings)
        ledger, found = Ledger(8, 7, {"truncated": 1}, {}, {}), DuplicateCounts(SameBytes(), None)
        marker = build_marker(plan, shards, ledger, settings, gather_reports(reports), found)
        assert len(os.listdir(folder)) == 15
        return StagedDataset(marker, settings, shards, reports, str(folder))

    return make


@pytest.fixture
def say():
    """`say(describer, dataset)`: the files that a describer yields, whole, by name."""

    def run(describe, dataset: StagedDataset) -> dict[str, bytes]:
        return {name: b"".join(content) for name, content in describe(dataset)}

    return run
