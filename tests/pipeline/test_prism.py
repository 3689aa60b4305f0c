"""Another runner, the same bytes. Prism is Beam's local portable runner, a binary of its own."""

import os
import shutil
from pathlib import Path

import apache_beam as beam
import pytest

from tests.pipeline.conftest import OWN_CODE

pytestmark = pytest.mark.prism


@pytest.fixture(scope="module")
def prism() -> str:
    """Named, on PATH, where scripts/prism puts it, or where Go does."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    places = [cache / f"recordmill/prism-{beam.__version__}/prism", Path.home() / "go/bin/prism"]
    found = os.environ.get("RECORDMILL_PRISM") or shutil.which("prism")
    binary = found or next((str(place) for place in places if place.exists()), "")
    if not binary:
        pytest.skip("no Prism binary: make test-prism builds one, or name one in RECORDMILL_PRISM")
    return binary


def on(prism: str) -> list[str]:
    return ["--runner=PrismRunner", f"--prism_location={prism}", "--environment_type=LOOPBACK"]


def test_prism_gives_the_bytes_of_fn_api_runner(
    prism, convert, convert_in_child, class_folders, tmp_path
):
    root = class_folders(tmp_path / "photos", {"cat": 40, "dog": 30})
    (root / "dog/text.jpg").write_bytes(b"no picture")
    (root / "void").mkdir()
    settings = {"shards.count": 4, "splits.fractions": {"train": 0.7, "test": 0.3}, "limit": 60}
    one = convert(root, settings=settings, output=tmp_path / "fn_api")
    other = convert_in_child(root, *on(prism), settings=settings, output=tmp_path / "prism")
    assert (one.code, other.code, other.errors) == (0, 0, [])
    assert len(one.shards()) == 8
    assert other.deterministic_files == one.deterministic_files
    assert other.lasting_marker == one.lasting_marker
    assert other.marker["run"]["runner"] == "PrismRunner"
    assert {key: other.line[key] for key in ("ledger", "splits")} == {
        key: one.line[key] for key in ("ledger", "splits")
    }


def test_an_update_on_prism(prism, convert, convert_in_child, class_folders, picture, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 20, "dog": 10})
    settings = {"shards.count": 2, "splits.fractions": {"train": 0.8, "test": 0.2}}
    assert convert(root, settings=settings, output=tmp_path / "dataset").code == 0
    (root / "cat" / "new.jpg").write_bytes(picture("new"))
    rebuilt = convert(root, settings=settings, output=tmp_path / "rebuilt")
    updated = convert_in_child(
        root, *on(prism), "--update", settings=settings, output=tmp_path / "dataset"
    )
    assert (updated.code, updated.marker["run"]["images_reused"]) == (0, 30)
    assert updated.deterministic_files == rebuilt.deterministic_files
    assert updated.lasting_marker == rebuilt.lasting_marker


def test_stratified_splits_on_prism(prism, convert, convert_in_child, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 20, "dog": 10})
    settings = {"splits.stratify": True, "splits.fractions": {"train": 0.8, "test": 0.2}}
    one = convert(root, settings=settings, output=tmp_path / "fn_api")
    other = convert_in_child(root, *on(prism), settings=settings, output=tmp_path / "prism")
    assert (one.code, other.code) == (0, 0)
    assert other.deterministic_files == one.deterministic_files


def test_look_alikes_and_functions_on_prism(
    prism, convert, convert_in_child, look_alikes, tmp_path
):
    one = convert(look_alikes, settings=OWN_CODE, output=tmp_path / "fn_api")
    other = convert_in_child(look_alikes, *on(prism), settings=OWN_CODE, output=tmp_path / "prism")
    assert (one.code, other.code, other.errors) == (0, 0, [])
    assert one.marker["ledger"]["left_out"] == {"too_small": 8}
    assert one.marker["changes"]["prepared"] == one.marker["ledger"]["written"] == 40
    assert other.lasting_marker == one.lasting_marker
    assert other.deterministic_files == one.deterministic_files


def test_a_failure_on_prism_is_one_sentence_too(prism, convert_in_child, tmp_path):
    (tmp_path / "photos").mkdir()
    done = convert_in_child(tmp_path / "photos", *on(prism))
    assert (done.code, done.errors) == (1, ["no images were found in the input"])
    assert "Traceback" not in done.stderr
