import sys
import threading

import pytest

from recordmill.pipeline.configuration import probe_store as reach_store
from recordmill.pipeline.configuration.probe_store import describe_with_timeout, find_missing_extra


def test_a_store_that_answers(monkeypatch, tmp_path):
    monkeypatch.setattr("recordmill.storage.describe", lambda path: f"what {path} is")
    assert describe_with_timeout("gs://b/x") == "what gs://b/x is"


def test_what_a_store_raises_is_raised(monkeypatch):
    def describe(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("recordmill.storage.describe", describe)
    with pytest.raises(PermissionError, match="gs://b/x"):
        describe_with_timeout("gs://b/x")


def test_a_store_that_does_not_answer_is_not_waited_for(monkeypatch):
    late = threading.Event()
    monkeypatch.setattr("recordmill.storage.describe", lambda path: late.wait(60))
    monkeypatch.setattr(reach_store, "SECONDS_TO_ANSWER", 0.05)
    with pytest.raises(TimeoutError, match=r"^no answer in 0 s$"):
        describe_with_timeout("gs://b/x")
    late.set()


@pytest.mark.parametrize(("scheme", "client", "extra"), [("gs", "google.cloud.storage", "gcp"), ("s3", "boto3", "aws")])
def test_a_client_that_is_not_installed(monkeypatch, scheme, client, extra):
    monkeypatch.setitem(sys.modules, client, None)
    assert find_missing_extra(f"{scheme}://b/x") == extra


def test_a_client_in_a_package_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(reach_store._CLIENTS, "gs", ("gcp", "no_such_package.storage"))
    assert find_missing_extra("gs://b/x") == "gcp"


@pytest.mark.parametrize("path", ["photos", "/photos", "hdfs://b/x", "file.gs://x"])
def test_other_places_need_none(path):
    assert find_missing_extra(path) == ""


def test_a_client_that_is_installed(monkeypatch):
    monkeypatch.setitem(reach_store._CLIENTS, "s3", ("aws", "json"))
    assert find_missing_extra("s3://b/x") == ""
