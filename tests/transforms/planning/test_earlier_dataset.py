import json
from dataclasses import replace

from make_marker import make_marker, marker_json

from recordmill.transforms.planning.earlier_dataset import EarlierDataset, open_earlier


def test_a_dataset_is_opened_with_its_marker(tmp_path):
    (tmp_path / "recordmill.json").write_text(json.dumps(marker_json(plan_id="p")))
    opened = open_earlier(str(tmp_path))
    assert opened == EarlierDataset(str(tmp_path), make_marker(plan_id="p"))
    assert hash(opened) == hash(open_earlier(str(tmp_path)))


def test_where_there_is_no_dataset_none_is_opened(tmp_path):
    assert open_earlier(str(tmp_path)) is open_earlier(str(tmp_path / "absent")) is None
    (tmp_path / "recordmill.json").write_text("{")
    assert open_earlier(str(tmp_path)) is None


def test_a_dataset_that_another_run_has_made_is_another_one():
    marker = make_marker()
    other = replace(marker, run=replace(marker.run, id="another"))
    assert EarlierDataset("/out", marker) != EarlierDataset("/out", other)
