"""`license`, `creator`, `version` and `citation` reach the files for people and other tools, and
change no shard."""

import json
import re
from pathlib import Path

import pytest

from recordmill.pipeline.configuration.config import load_settings

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ABOUT = {
    "license": "CC-BY-4.0",
    "creator": "The *Zoo*",
    "version": "1.2.0",
    "citation": "@misc{zoo,\n  title = {Pets}\n}\n",
}


@pytest.fixture
def described(convert, photos, tmp_path):
    return convert(photos, "--set=report=false", output=tmp_path / "described", settings=ABOUT)


def test_they_reach_the_card(described):
    card = (described.output / "README.md").read_text(encoding="utf-8")
    assert (
        "\n- Version: 1\\.2.0\n- License: CC-BY-4.0\n- Creator: The \\*Zoo\\*\n\n## Citation\n\n"
        in card
    )
    assert "\n    @misc{zoo,\n      title = {Pets}\n    }\n\n## " in card


def test_they_reach_croissant(described):
    croissant = json.loads((described.output / "croissant.json").read_bytes())
    assert {key: croissant[key] for key in ("license", "creator", "version", "citeAs")} == {
        "license": "CC-BY-4.0",
        "creator": {"@type": "sc:Organization", "name": "The *Zoo*"},
        "version": "1.2.0",
        "citeAs": ABOUT["citation"],
    }


def test_they_reach_tfds(described):
    info = json.loads((described.output / "dataset_info.json").read_bytes())
    assert (info["version"], info["citation"]) == ("1.2.0", ABOUT["citation"])
    assert info["redistributionInfo"] == {"license": "CC-BY-4.0"}
    assert info["description"].startswith("10 images by The *Zoo*, plan ")


def test_they_change_neither_the_plan_nor_a_shard(convert, photos, described):
    plain = convert(photos, "--set=report=false")
    assert plain.marker["plan"]["id"] == described.marker["plan"]["id"]
    assert plain.deterministic_files == described.deterministic_files
    assert "about" not in plain.marker
    assert described.marker["about"] == ABOUT


def test_a_dataset_with_others_is_kept_with_a_note_and_replaced_on_request(
    convert, photos, described
):
    others = {**ABOUT, "license": "CC0-1.0", "citation": ""}
    kept = convert(photos, "--set=report=false", output=described.output, settings=others)
    assert (kept.code, kept.line["status"]) == (0, "kept")
    assert kept.line["notes"] == [
        "this dataset may be outdated (files could not be read or were modified, other files are "
        "ignored, or its description differs): --overwrite rebuilds it"
    ]
    replaced = convert(
        photos, "--set=report=false", "--overwrite", output=described.output, settings=others
    )
    assert replaced.line["status"] == "published"
    assert replaced.marker["about"] == others
    again = convert(
        photos, "--set=report=false", "--overwrite", output=described.output, settings=others
    )
    assert (again.line["status"], again.line["notes"]) == ("kept", [])


def test_a_version_has_three_numbers(convert, photos):
    wrong = convert(photos, settings={"version": "v2"})
    assert wrong.answer == (2, "--set: version is 'v2': write three numbers, such as 1.2.0")
    assert convert(photos, "--set=version=1.2").answer == (
        2,
        "--set: version is '1.2': write three numbers, such as 1.2.0",
    )


def test_the_documented_settings_are_valid(tmp_path):
    page = (Path(__file__).parents[2] / "docs/dataset.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(license.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "about.yaml").write_text(block, encoding="utf-8")
    about = load_settings(str(tmp_path / "about.yaml"), []).settings.about
    assert (about.creator, about.version) == ("The Zoo of Springfield", "1.2.0")
