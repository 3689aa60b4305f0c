"""The pointer of a folder with versions, and the names of their folders."""

import json

import pytest

from recordmill.storage.versions import current_folder, find_pointer, point_to, version_names, work_folders

ONE, TWO = "0123456789abcdef", "fedcba9876543210"


def test_a_pointer_is_replaced_and_remembers_the_version_before(tmp_path):
    for name in (ONE, TWO):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recordmill.json").write_text("{}")
    assert (find_pointer(str(tmp_path)), current_folder(str(tmp_path))) == (None, str(tmp_path))
    assert [point_to(str(tmp_path), name) for name in (ONE, TWO, TWO)] == [True, True, False]
    assert json.loads((tmp_path / "recordmill.json").read_bytes()) == {"recordmill": 2, "current": TWO, "previous": ONE}
    assert current_folder(str(tmp_path)) == str(tmp_path / TWO)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"recordmill.json"}


@pytest.mark.parametrize(
    "content", ["{", "[]", "{}", '{"current": 1}', '{"current": "../elsewhere"}', '{"current": "x"}', " " * 2_000]
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
