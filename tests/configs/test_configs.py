"""Every configuration that Recordmill ships, run on small data."""

import json
from pathlib import Path

import pytest
import yaml

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.transforms.inputs.sources.source import source_names

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

CONFIGS = Path(__file__).parents[2] / "configs"


def write_images(folder, names, picture):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture(name))
    return folder


def labels_and_images(output, read_examples):
    """(label, text, encoded image) of every record."""
    return sorted(
        (
            each["image/class/label"][0],
            each["image/class/text"][0].decode(),
            each["image/encoded"][0],
        )
        for path in output.glob("*.tfrecord")
        for each in read_examples(path.read_bytes())
    )


# What each configuration is given, and the (label, text) it makes of each file.
CASES = {
    "class_folders.yaml": {
        f"{label}/{number}.jpg": (label_id, label)
        for label_id, label in enumerate(["cat", "dog"])
        for number in range(5)
    },
    "filename_labels.yaml": {
        f"img_{number:05}_{label}.jpg": (label, str(label))
        for label in (-1, 3, 20)
        for number in range(4)
    },
}


def test_every_source_has_a_configuration():
    kinds = {
        yaml.safe_load(path.read_text(encoding="utf-8"))["source"]["kind"]
        for path in CONFIGS.glob("*.yaml")
    }
    assert kinds == set(source_names())


@pytest.mark.parametrize("config", CASES)
def test_configuration(config, tmp_path, capsys, picture, read_examples):
    files = CASES[config]
    images = write_images(tmp_path / "images", files, picture)
    output = tmp_path / "dataset"
    assert (
        launch([f"--config={CONFIGS / config}", f"--input={images}", f"--output={output}"], build)
        == 0
    )
    assert labels_and_images(output, read_examples) == sorted(
        (*label, picture(name)) for name, label in files.items()
    )
    assert {path.name for path in output.glob("*.tfrecord")} == {
        f"{split}-00000-of-00001.tfrecord" for split in ("train", "test")
    }
    summary = json.loads(capsys.readouterr().out)
    assert summary["ledger"] == {
        "listed": len(files),
        "written": len(files),
        "rejected": {},
        "ignored": {},
        "left_out": {},
    }
    assert (output / "labels.txt").read_text().splitlines() == [
        f"{label}:{text}" for label, text in sorted(set(files.values()))
    ]


@pytest.mark.parametrize("config", CASES)
def test_what_a_configuration_offers_in_comments_works_too(config, tmp_path):
    """Lines of settings behind `# ` are examples: each is taken in, in the place of the setting
    before it."""
    from recordmill.pipeline.configuration.config import load_settings

    text = (CONFIGS / config).read_text(encoding="utf-8")
    offered = [
        line.strip().removeprefix("# ")
        for line in text.splitlines()
        if line.strip().startswith("# ")
    ]
    offered = [line for line in offered if ": {" in line or ": '" in line]
    assert offered
    where = {
        "fractions": "splits",
        "from_folders": "splits",
        "pattern": "source",
        "features_from": "source",
    }
    overrides = []
    for line in offered:
        key, _, value = line.partition(":")
        if key == "from_folders":
            overrides = [each for each in overrides if not each.startswith("splits.fractions")]
        overrides.append(f"{where[key]}.{key}={value}" if key in where else f"{key}={value}")
    load_settings(str(CONFIGS / config), overrides)
