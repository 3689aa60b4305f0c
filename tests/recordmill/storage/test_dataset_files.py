import hashlib
import json

import pytest
from make_marker import make_marker, marker_json

from recordmill.schemas.dataset.marker import Marker
from recordmill.storage.dataset_files import (
    DamagedMarkerError,
    current_folder,
    find_fault,
    find_marker,
    find_pointer,
    point_to,
    read_marker,
    shard_path,
    staging_folder,
    version_names,
    work_folders,
)


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
        ("[]", "it is not of type dict"),
        ('{"recordmill": 4}', "it has format 4, which another version of Recordmill reads"),
        ('{"recordmill": 1}', "it has format 1, which another version of Recordmill reads"),
        ('{"recordmill": 2}', "name is missing"),
    ],
)
def test_a_marker_that_cannot_be_read_is_one_sentence(tmp_path, content, problem):
    (tmp_path / "recordmill.json").write_text(content)
    with pytest.raises(DamagedMarkerError) as caught:
        read_marker(str(tmp_path))
    assert str(caught.value) == f"{tmp_path}/recordmill.json cannot be understood: {problem}"
    assert find_marker(str(tmp_path)) is None


def test_a_shard_is_in_its_plans_staging_folder():
    assert (
        shard_path(staging_folder("/out", "p"), "train", 7, "done.json")
        == "/out/.staging-p/train-00007.done.json"
    )


ONE, TWO = "0123456789abcdef", "fedcba9876543210"


def test_a_pointer_is_replaced_and_remembers_the_version_before(tmp_path):
    for name in (ONE, TWO):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recordmill.json").write_text("{}")
    assert (find_pointer(str(tmp_path)), current_folder(str(tmp_path))) == (None, str(tmp_path))
    assert [point_to(str(tmp_path), name) for name in (ONE, TWO, TWO)] == [True, True, False]
    assert json.loads((tmp_path / "recordmill.json").read_bytes()) == {
        "recordmill": 2,
        "current": TWO,
        "previous": ONE,
    }
    assert current_folder(str(tmp_path)) == str(tmp_path / TWO)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"recordmill.json"}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        "{}",
        '{"current": 1}',
        '{"current": "../elsewhere"}',
        '{"current": "x"}',
        " " * 2_000,
    ],
)
def test_other_files_are_not_pointers(tmp_path, content):
    (tmp_path / "recordmill.json").write_text(content)
    assert find_pointer(str(tmp_path)) is None


def test_versions_of_a_plan_are_in_the_order_of_their_numbers(tmp_path):
    for name in (f"{ONE}-10", TWO, f"{ONE}-2", ONE, "other", f"{ONE}-0", f"{ONE}-x", ".staging-x"):
        (tmp_path / name).mkdir()
    assert version_names(str(tmp_path)) == [ONE, f"{ONE}-2", f"{ONE}-10", TWO]
    names = (ONE, f"{ONE}-2", f"{ONE}-10", TWO)
    assert work_folders(str(tmp_path)) == [str(tmp_path), *(str(tmp_path / name) for name in names)]


@pytest.mark.parametrize(
    ("name", "is_judged"), [("labels.txt", True), ("README.md", False), ("x.jsonl", True)]
)
def test_small_files_are_compared_unless_people_may_edit_them(tmp_path, name, is_judged):
    digest = hashlib.sha256(b"whole").hexdigest()
    shard = {"name": "train-0.tfrecord", "bytes": 0, "sidecar": "x.jsonl", "sidecar_sha256": digest}
    files = ["labels.txt", "README.md"]
    stored = marker_json(
        {}, splits={"train": {"records": 2, "bytes": 0, "shards": [shard]}}, files=files
    )
    stored["run"]["digests"] = dict.fromkeys(files, digest)
    (tmp_path / shard["name"]).touch()
    for each in (*files, "x.jsonl"):
        (tmp_path / each).write_bytes(b"whole")
    marker = Marker.from_json(stored)
    assert find_fault(str(tmp_path), marker) is None
    (tmp_path / name).write_bytes(b"other")
    assert find_fault(str(tmp_path), marker) == (
        f"holds {name} with another sha256" if is_judged else None
    )
