import errno
import sys
import threading

import pytest
from apache_beam.io.filesystem import BeamIOError

from recordmill.pipeline.configuration import preflight as module
from recordmill.pipeline.configuration.preflight import (
    check_places,
    check_secrets,
    find_folder,
    parse_inputs,
    parse_path,
    probe_dataset_store,
)
from recordmill.schemas.errors import RecordmillError, UsageError
from recordmill.schemas.settings.source import Input


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


def test_a_tilde_is_the_home_folder(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert parse_inputs(["~/photos/"]) == (Input("/home/me/photos"),)
    assert parse_inputs(["a=~/x", "b=gs://bucket/~"]) == (
        Input("/home/me/x", "a"),
        Input("gs://bucket/~", "b"),
    )


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["a", "b"], "several inputs need names"),
        (["x=a", "b"], "several inputs need names"),
        (["x=a", "x=b"], "two inputs have the name x"),
        ([""], "a path is empty"),
        (["caf\udce9"], r"the path caf\\xe9 is not UTF-8"),
    ],
)
def test_inputs_that_cannot_be_meant(inputs, message):
    with pytest.raises(UsageError, match=message):
        parse_inputs(inputs)


def test_normal_path():
    assert (parse_path("out//"), parse_path("/")) == ("out", "/")


def test_the_folder_of_a_local_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jpg").touch()
    (tmp_path / "b.jpg").touch()
    folders = [
        find_folder(path, path, here=True)
        for path in ("in", "in/a.jpg", "b.jpg", str(tmp_path / "in/a.jpg"))
    ]
    assert folders == ["in", "in", ".", str(tmp_path / "in")]


def test_the_folder_of_a_remote_input_costs_at_most_one_question(monkeypatch):
    asked = []

    def describe(path):
        asked.append(path)
        if "secret" in path:
            raise BeamIOError("no rights")
        return path if path.endswith(".jpg") else None

    monkeypatch.setattr("recordmill.storage.describe", describe)
    texts = ["gs://b/a.jpg", "gs://b/photos", "gs://b/photos/", "gs://b/secret"]
    folders = [find_folder(parse_inputs([text])[0].path, text, here=True) for text in texts]
    assert folders == ["gs://b", "gs://b/photos", "gs://b/photos", "gs://b/secret"]
    assert asked == ["gs://b/a.jpg", "gs://b/photos", "gs://b/secret"]


def test_a_datasets_store_is_probed_unless_it_is_here(monkeypatch):
    asked = []
    monkeypatch.setattr("recordmill.storage.describe", asked.append)
    for folder in ("out", "gs://other/x/y"):
        probe_dataset_store("output", folder, here=True)
    assert asked == ["gs://other/x/y/recordmill.json"]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (TimeoutError("no answer in 30 s"), "no answer in 30 s"),
        (OSError(errno.EIO, "Timeout of 120.0s exceeded,\nlast exception: ...", "gs://b/x"),
         "Timeout of 120.0s exceeded, last exception: ..."),
    ],
)  # fmt: skip
def test_a_store_that_does_not_answer(monkeypatch, error, why):
    def describe(path):
        raise error

    monkeypatch.setattr("recordmill.storage.describe", describe)
    with pytest.raises(RecordmillError) as raised:
        find_folder("gs://b/x", "gs://b/x", here=True)
    assert str(raised.value) == f"the store of the input gs://b/x cannot be reached: {why}"
    assert find_folder("gs://b/x", "gs://b/x", here=False) == "gs://b/x"
    with pytest.raises(RecordmillError) as raised:
        probe_dataset_store("output", "gs://b/x", here=True)
    assert str(raised.value) == f"the store of the output gs://b/x cannot be reached: {why}"
    probe_dataset_store("output", "gs://b/x", here=False)


@pytest.mark.parametrize(
    ("path", "client", "extra"),
    [("gs://b/x", "google.cloud.storage", "gcp"), ("s3://b/x", "boto3", "aws")],
)
def test_a_store_whose_client_is_not_installed(monkeypatch, tmp_path, path, client, extra):
    monkeypatch.setitem(sys.modules, client, None)
    for what, inputs, output in (
        ("input", [Input(path)], tmp_path / "out"),
        ("output", [Input(str(tmp_path))], path),
    ):
        with pytest.raises(RecordmillError) as raised:
            check_places(inputs, str(output))
        assert str(raised.value) == (
            f"the {what} {path} needs its store's client, which is not installed: pip install "
            f"'.[{extra}]' in a clone"
        )


def test_an_unknown_store():
    with pytest.raises(
        RecordmillError, match="the input nowhere://b/a cannot be read: Unable to get filesystem"
    ):
        find_folder("nowhere://b/a", "nowhere://b/a", here=True)


@pytest.mark.parametrize(
    ("source", "output"), [("data/few", "data"), ("data/few", "."), ("data/few/a.jpg", "data")]
)
def test_an_output_that_holds_the_input_is_refused(tmp_path, monkeypatch, source, output):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data/few").mkdir(parents=True)
    (tmp_path / "data/few/a.jpg").touch()
    with pytest.raises(RecordmillError) as raised:
        check_places([Input(source)], output)
    assert (
        str(raised.value)
        == f"the output {output} contains the input {source}: choose a folder of its own"
    )


def test_places_that_are_fine(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jpg").touch()
    before = sorted(tmp_path.rglob("*"))
    for source in ("in", "in/a.jpg"):
        for output in ("out", "a/b/c", "in2"):
            check_places([Input(str(tmp_path / source))], str(tmp_path / output))
    assert sorted(tmp_path.rglob("*")) == before


def test_every_input_is_checked(tmp_path):
    (tmp_path / "in").mkdir()
    inputs = [Input(str(tmp_path / "in"), "a"), Input(str(tmp_path / "missing"), "b")]
    with pytest.raises(RecordmillError, match="missing does not exist"):
        check_places(inputs, str(tmp_path / "out"))


def test_buckets_hold_buckets():
    with pytest.raises(RecordmillError, match="is inside the input"):
        check_places([Input("gs://bucket/raw")], "gs://bucket/raw/out")
    check_places([Input("gs://bucket/raw")], "gs://bucket/raw2")


@pytest.mark.parametrize(
    "flag", ["--s3_access_key_id", "--s3_secret_access_key", "--s3_session_token"]
)
@pytest.mark.parametrize("written", [["{}=hush"], ["{}", "hush"]])
def test_a_flag_that_holds_a_secret_is_refused_and_not_repeated(flag, written):
    with pytest.raises(UsageError, match=f"^{flag} .*environment ") as caught:
        check_secrets(["--s3_region_name=x", *(word.format(flag) for word in written)])
    assert "hush" not in str(caught.value)


def test_a_stores_address_is_not_a_secret():
    check_secrets(
        ["--s3_endpoint_url=http://localhost", "--s3_region_name=us-east-1", "--s3_verify=true"]
    )


def test_a_store_that_does_not_answer_is_not_waited_for(monkeypatch):
    late = threading.Event()
    monkeypatch.setattr("recordmill.storage.describe", lambda path: late.wait(60))
    monkeypatch.setattr(module, "SECONDS_TO_ANSWER", 0.05)
    with pytest.raises(
        RecordmillError,
        match=r"^the store of the input gs://b/x cannot be reached: no answer in 0 s$",
    ):
        find_folder("gs://b/x", "gs://b/x", here=True)
    late.set()


def test_a_client_in_a_package_that_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setitem(module._CLIENTS, "gs", ("gcp", "no_such_package.storage"))
    with pytest.raises(RecordmillError, match=r"pip install '\.\[gcp\]' in a clone"):
        check_places([Input("gs://b/x")], str(tmp_path))


def test_a_client_that_is_installed_and_stores_that_need_none(monkeypatch, tmp_path):
    monkeypatch.setitem(module._CLIENTS, "s3", ("aws", "json"))
    check_places(
        [Input("s3://b/x"), Input("hdfs://b/x"), Input("file.gs://x")], str(tmp_path / "out")
    )
