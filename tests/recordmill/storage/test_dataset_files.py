import json

import pytest
from make_marker import make_marker, marker_json

from recordmill.storage.dataset_files import DamagedMarkerError, find_marker, read_marker, shard_path, staging_folder


def test_the_marker_of_a_folder_is_found(tmp_path):
    (tmp_path / "recordmill.json").write_text(json.dumps(marker_json()))
    assert find_marker(str(tmp_path)) == read_marker(str(tmp_path)) == make_marker()
    assert find_marker(str(tmp_path / "absent")) is None
    with pytest.raises(FileNotFoundError):
        read_marker(str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "it is not JSON: unexpected end of data: line 1 column 2 (char 1)"),
        ("[]", "it is not an object"),
        ('{"recordmill": 3}', "it has format 3, which another version of Recordmill reads"),
        ('{"recordmill": 1}', "name is missing"),
    ],
)
def test_a_marker_that_cannot_be_read_is_one_sentence(tmp_path, content, problem):
    (tmp_path / "recordmill.json").write_text(content)
    with pytest.raises(DamagedMarkerError) as caught:
        read_marker(str(tmp_path))
    assert str(caught.value) == f"{tmp_path}/recordmill.json cannot be understood: {problem}"
    assert find_marker(str(tmp_path)) is None


def test_a_shard_is_in_its_plans_staging_folder():
    assert shard_path(staging_folder("/out", "p"), "train", 7, "done.json") == "/out/.staging-p/train-00007.done.json"
