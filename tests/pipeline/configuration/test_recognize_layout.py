"""Which layouts are recognized, from names and beginnings of files alone;
tests/docs/test_layouts.py converts them."""

import shlex
from pathlib import Path

import pytest
import yaml

from recordmill.pipeline.configuration.config import flags_of, load_settings
from recordmill.pipeline.configuration.recognize_layout import fill_in, recognize
from recordmill.schemas.errors import UsageError
from recordmill.schemas.settings.source import Input
from recordmill.transforms.inputs.folder_sketch import FolderSketch
from recordmill.transforms.inputs.sources.source import source_names

LAYOUTS = yaml.safe_load(Path(__file__).with_name("layouts.yaml").read_text(encoding="utf-8"))
UNCLEAR = yaml.safe_load(
    Path(__file__).with_name("unclear_layouts.yaml").read_text(encoding="utf-8")
)
ALL = [pytest.param(each, id=name) for name, each in LAYOUTS.items()]


def sketch_of(layout):
    return FolderSketch.of(
        layout["files"], {path: text.encode() for path, text in layout.get("heads", {}).items()}
    )


@pytest.mark.parametrize("layout", ALL)
def test_layouts_are_recognized_by_names_and_beginnings(layout):
    assert recognize(sketch_of(layout), source_names(), "in", {}).settings == layout["settings"]


def test_layouts_are_recognized_in_folders_whose_first_levels_alone_are_seen(tmp_path):
    found = {}
    for name in LAYOUTS.keys() - {"imagefolder", "Hugging Face's Parquet with objects"}:
        for path in LAYOUTS[name]["files"]:
            file = tmp_path / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(LAYOUTS[name].get("heads", {}).get(path, ""))
        found[name] = fill_in([Input(str(tmp_path / name))], lambda said: None, {})[0]
    assert found == {name: LAYOUTS[name]["settings"] for name in found}


@pytest.mark.parametrize("layout", ALL)
def test_the_suggested_flags_mean_the_same(layout):
    words = shlex.split(flags_of(recognize(sketch_of(layout), source_names(), "in", {}).settings))
    assert set(words[::2]) == {"--set"}
    written = [
        f"{k}={yaml.safe_dump(v, default_flow_style=True, width=9999)}"
        for k, v in layout["settings"].items()
    ]
    assert load_settings(None, words[1::2]) == load_settings(None, written)


@pytest.mark.parametrize("layout", ALL)
def test_the_kind_alone_finds_the_same(layout):
    found = recognize(sketch_of(layout), [layout["settings"]["source"]["kind"]], "in", {})
    assert found.settings == layout["settings"]


@pytest.mark.parametrize("layout", UNCLEAR, ids=lambda layout: ", ".join(layout["files"][:3]))
def test_a_choice_is_the_users(layout):
    with pytest.raises(UsageError) as error:
        recognize(sketch_of(layout), source_names(), "in", {})
    for sentence in layout["sentences"]:
        assert sentence in str(error.value)


@pytest.mark.parametrize("paths", [[], ["README"], ["a/b/c/1.bin"], ["list.csv"]], ids=str)
def test_nothing_is_recognized_where_names_say_nothing(paths):
    found = recognize(FolderSketch.of(paths), source_names(), "in", {})
    assert found is None or not found.is_firm


def test_what_the_user_says_is_the_choice():
    unlabeled = FolderSketch.of(["train/1.jpg", "test/1.jpg"])
    given = {"source": {"class_from": "none"}}
    assert (
        recognize(unlabeled, ["class_folders"], "in", given).settings["source"]["class_from"]
        == "none"
    )
    given = {"labels": {"classes": ["test", "train"]}}
    assert (
        recognize(unlabeled, ["class_folders"], "in", given).settings["labels"] == given["labels"]
    )
    yolo = FolderSketch.of(["images/1.jpg", "labels/1.txt"], {"labels/1.txt": b"0 0.5 0.5 1 1\n"})
    assert recognize(yolo, ["yolo"], "in", {"source": {"names": ["cat"]}}).kind == "yolo"


def test_flags_hold_values_of_any_length():
    folders = {f"folder_{number:03}": "train" for number in range(200)}
    (_, word) = shlex.split(flags_of({"splits": {"from_folders": folders}}))
    key, _, text = word.partition("=")
    assert (key, yaml.safe_load(text)) == ("splits.from_folders", folders)
