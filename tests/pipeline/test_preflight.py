import json

import pytest

from pipeline.preflight import PlaceError, UsageError, check_places, discard_staging, normal_output, parse_inputs
from transforms.list_images import Input


@pytest.mark.parametrize(
    ("inputs", "parsed"),
    [
        (["photos/"], [Input("photos")]),
        (["/"], [Input("/")]),
        (["a=photos"], [Input("photos", "a")]),
        (["a-1=x", "b=gs://bucket/y/"], [Input("x", "a-1"), Input("gs://bucket/y", "b")]),
        (["./a=b"], [Input("./a=b")]),
    ],
)
def test_parse_inputs(inputs, parsed):
    assert parse_inputs(inputs) == tuple(parsed)


def test_a_folder_whose_name_has_an_equals_sign_is_a_folder(tmp_path, monkeypatch):
    (tmp_path / "size=large").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_inputs(["size=large"]) == (Input("size=large"),)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["a", "b"], "several inputs need names"),
        (["x=a", "b"], "several inputs need names"),
        (["x=a", "x=b"], "two inputs have the name x"),
        ([""], "need a path"),
        (["caf\udce9"], r"the path caf\\xe9 is not UTF-8"),
    ],
)
def test_inputs_that_cannot_be_meant(inputs, message):
    with pytest.raises(UsageError, match=message):
        parse_inputs(inputs)


def test_normal_output():
    assert (normal_output("out//"), normal_output("/")) == ("out", "/")


def test_places_that_are_fine(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jpg").touch()
    before = sorted(tmp_path.rglob("*"))
    for source in ("in", "in/a.jpg"):
        for output in ("out", "a/b/c", "in2"):
            check_places([Input(str(tmp_path / source))], str(tmp_path / output), preview=False)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_input_below_the_output_is_fine(tmp_path):
    (tmp_path / "out/in").mkdir(parents=True)
    check_places([Input(str(tmp_path / "out/in"))], str(tmp_path / "out"), preview=False)


def test_every_input_is_checked(tmp_path):
    (tmp_path / "in").mkdir()
    inputs = [Input(str(tmp_path / "in"), "a"), Input(str(tmp_path / "missing"), "b")]
    with pytest.raises(PlaceError, match="missing does not exist"):
        check_places(inputs, str(tmp_path / "out"), preview=True)


def test_a_plan_needs_no_writable_output(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "file").touch()
    check_places([Input(str(tmp_path / "in"))], str(tmp_path / "file"), preview=True)


def test_buckets_hold_buckets():
    with pytest.raises(PlaceError, match="lies inside the input"):
        check_places([Input("gs://bucket/raw")], "gs://bucket/raw/out", preview=True)
    check_places([Input("gs://bucket/raw")], "gs://bucket/raw2", preview=True)


def test_discard_staging_deletes_staging_alone(tmp_path):
    for name in (".staging-1", ".staging-2/deep", "sidecars", ".other"):
        (tmp_path / name).mkdir(parents=True)
    told = [f"deleted the unfinished work .staging-{number}" for number in (1, 2)]
    assert discard_staging(str(tmp_path)) == told
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other", "sidecars"]
    assert discard_staging(str(tmp_path / "missing")) == []


def test_discard_staging_finishes_a_publishing_that_was_cut(tmp_path):
    staging = tmp_path / ".staging-p"
    staging.mkdir()
    (staging / "labels.txt").write_text("0:cat\n")
    marker = {"plan": {"id": "p"}, "switch": {"moves": [["labels.txt", "labels.txt"]], "removes": ["old.tfrecord"]}}
    (staging / "recordmill.json").write_text(json.dumps(marker))
    (tmp_path / "old.tfrecord").write_bytes(b"")
    assert discard_staging(str(tmp_path)) == [
        ".staging-p held a complete dataset, whose publishing had been cut: it is now in place"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.txt", "recordmill.json", "sidecars"]
    assert json.loads((tmp_path / "recordmill.json").read_text()) == {"plan": {"id": "p"}}
