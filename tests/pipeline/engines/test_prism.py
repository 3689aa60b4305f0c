"""The main job on Prism, Beam's local portable runner."""

import pytest

pytestmark = [pytest.mark.prism, pytest.mark.usefixtures("ended_launches")]


@pytest.fixture
def prism(start_engine):
    return start_engine("prism")


def test_prism_gives_the_bytes_of_fn_api_runner(
    prism, convert, convert_in_child, class_folders, tmp_path
):
    root = class_folders(tmp_path / "photos", {"cat": 40, "dog": 30})
    (root / "dog/text.jpg").write_bytes(b"no picture")
    (root / "void").mkdir()
    settings = {"shards.count": 4, "splits.fractions": {"train": 0.7, "test": 0.3}, "limit": 60}
    one = convert(root, settings=settings, output=tmp_path / "fn_api")
    other = convert_in_child(root, *prism.flags(), settings=settings, output=tmp_path / "prism")
    assert (one.code, other.code, other.errors) == (0, 0, [])
    assert len(one.shards()) == 8
    assert other.deterministic_files == one.deterministic_files
    assert other.lasting_marker == one.lasting_marker
    assert other.marker["run"]["runner"] == "PrismRunner"
    assert {key: other.line[key] for key in ("ledger", "splits")} == {
        key: one.line[key] for key in ("ledger", "splits")
    }


def test_stratified_splits_on_prism(prism, convert, convert_in_child, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 20, "dog": 10})
    settings = {"splits.stratify": True, "splits.fractions": {"train": 0.8, "test": 0.2}}
    one = convert(root, settings=settings, output=tmp_path / "fn_api")
    other = convert_in_child(root, *prism.flags(), settings=settings, output=tmp_path / "prism")
    assert (one.code, other.code) == (0, 0)
    assert other.deterministic_files == one.deterministic_files


def test_a_failure_on_prism_is_one_sentence_too(prism, convert_in_child, tmp_path):
    (tmp_path / "photos").mkdir()
    done = convert_in_child(tmp_path / "photos", *prism.flags())
    assert (done.code, done.errors) == (1, ["no images were found in the input"])
    assert "Traceback" not in done.stderr
