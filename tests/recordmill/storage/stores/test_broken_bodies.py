"""A body that breaks off is asked for again, by range, from where it broke off."""

import errno
import io
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill.storage.stores import store
from recordmill.storage.stores.find_store import BeamStore
from recordmill.storage.stores.store import TRIES, BrokenBodyError, read_resuming

CONTENT = bytes(range(256)) * 4096  # 1 MiB


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(store, "_PAUSES", (0,) * (TRIES - 1))


def asking(*answers):
    """A body that breaks off in each answer; an answer is a number of bytes, or an error."""
    asked = []

    def ask(done):
        asked.append(done)
        answer = answers[len(asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        yield CONTENT[done : done + answer]
        if done + answer < len(CONTENT):
            raise BrokenBodyError("cut", "s3://b/a")

    return ask, asked


def test_the_missing_part_is_asked_for_again():
    ask, asked = asking(10, 0, 500, len(CONTENT))
    assert read_resuming(ask, "s3://b/a") == CONTENT
    assert asked == [0, 10, 10, 510]


def test_damaged_bytes_are_all_asked_for_again():
    asked = []

    def ask(done):
        asked.append(done)
        yield CONTENT[:100] if len(asked) == 1 else CONTENT
        if len(asked) == 1:
            raise BrokenBodyError("checksum", "s3://b/a", is_damaged=True)

    assert (read_resuming(ask, "s3://b/a"), asked) == (CONTENT, [0, 0])


def test_a_body_that_always_breaks_off_fails_after_some_tries():
    ask, asked = asking(*[1] * TRIES)
    with pytest.raises(OSError, match=r"cut \(asked 6 times\): 's3://b/a'$") as raised:
        read_resuming(ask, "s3://b/a")
    assert (raised.value.errno, asked) == (errno.EIO, list(range(TRIES)))


def test_another_error_is_not_tried_again():
    ask, asked = asking(PermissionError("no"))
    with pytest.raises(PermissionError):
        read_resuming(ask, "s3://b/a")
    assert asked == [0]


@pytest.mark.parametrize(
    ("offset", "length"), [(0, -1), (100, -1), (100, 5000), (0, 0), (2**20, 5)]
)
def test_another_file_system_is_asked_again_too(monkeypatch, tmp_path, offset, length):

    opened = []

    class Stream(io.BytesIO):
        def read(self, size=-1):
            if len(opened) < 4:
                if self.tell() >= offset + 300 * len(opened):
                    raise ConnectionResetError("reset")
                size = min(size, 300)
            return super().read(size)

    def open_stream(*_, **__):
        opened.append(1)
        return Stream(CONTENT)

    monkeypatch.setattr(BeamStore, "describe", lambda *_: object())
    monkeypatch.setattr("recordmill.storage.stores.find_store.FileSystems.open", open_stream)
    wanted = CONTENT[offset:] if length < 0 else CONTENT[offset : offset + length]
    assert BeamStore().read("hdfs://x/a", offset, length) == wanted


class FaultyS3(BaseHTTPRequestHandler):
    """Answers GET with the faults that the test lists, then properly."""

    faults: list[str] = []  # noqa: RUF012  # each test sets it
    asked: list[str] = []  # noqa: RUF012
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        wanted = self.headers["Range"]
        self.asked.append(wanted)
        fault = self.faults.pop(0) if self.faults else ""
        if fault.isdigit():
            self.send_response(int(fault))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        first, last = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted).groups()
        body = CONTENT[int(first) : int(last) + 1 if last else None]
        if not body:
            self.send_response(416)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"changed"' if fault == "changed" else '"same"')
        self.end_headers()
        half = len(body) // 2
        if fault in ("cut", "stall"):
            self.wfile.write(body[:half])
            self.wfile.flush()
            if fault == "stall":
                time.sleep(2)
            self.close_connection = True
        else:
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def amazon_reader(monkeypatch):
    pytest.importorskip("boto3", reason="no apache-beam[aws] here: make test-stores")
    from recordmill.storage.stores import amazon_store

    monkeypatch.setattr(amazon_store, "STALL_SECONDS", 0.5)
    server = ThreadingHTTPServer(("127.0.0.1", 0), FaultyS3)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    FaultyS3.asked = []
    yield amazon_store.AmazonStore(
        PipelineOptions(
            [
                f"--s3_endpoint_url=http://127.0.0.1:{server.server_address[1]}",
                "--s3_access_key_id=x",
                "--s3_secret_access_key=x",
                "--s3_region_name=us-east-1",
            ]
        )
    )
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("faults", "asked"),
    [
        ([], ["bytes=0-"]),
        (["cut"], ["bytes=0-", "bytes=524288-"]),
        (["stall"], ["bytes=0-", "bytes=524288-"]),
        (["500", "cut", "503"], ["bytes=0-", "bytes=0-", "bytes=524288-", "bytes=524288-"]),
        (["cut", "cut", "cut"], ["bytes=0-", "bytes=524288-", "bytes=786432-", "bytes=917504-"]),
    ],
)
def test_an_object_is_whole_after_some_faults(amazon_reader, faults, asked):
    FaultyS3.faults = faults
    assert amazon_reader.read("s3://b/a", 0, -1) == CONTENT
    assert FaultyS3.asked == asked


def test_a_range_is_whole_after_some_faults(amazon_reader):
    FaultyS3.faults = ["cut", "500"]
    assert amazon_reader.read("s3://b/a", 1000, 4000) == CONTENT[1000:5000]
    assert FaultyS3.asked == ["bytes=1000-4999", "bytes=3000-4999", "bytes=3000-4999"]
    assert amazon_reader.read("s3://b/a", len(CONTENT), 5) == b""


@pytest.mark.parametrize("fault", ["500", "cut"])
def test_a_store_that_never_answers_well_fails_in_a_sentence(amazon_reader, fault):
    FaultyS3.faults = [fault] * 100
    with pytest.raises(OSError, match=r"'s3://b/a'$") as raised:
        amazon_reader.read("s3://b/a", 0, -1)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, "s3://b/a")
    assert len(FaultyS3.asked) in (5, 6)


@pytest.fixture
def google_reader(monkeypatch):
    pytest.importorskip("google.cloud.storage", reason="no apache-beam[gcp] here: make test-stores")
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.storage import Client

    from recordmill.storage.stores import google_store

    server = ThreadingHTTPServer(("127.0.0.1", 0), FaultyS3)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    FaultyS3.asked = []
    client = Client(
        "p",
        AnonymousCredentials(),
        client_options={"api_endpoint": f"http://127.0.0.1:{server.server_address[1]}"},
    )
    monkeypatch.setattr(google_store, "create_storage_client", lambda _: client)
    monkeypatch.setattr(google_store, "STALL_SECONDS", 0.5)
    yield google_store.GoogleStore(PipelineOptions([]))
    client._http.close()
    server.shutdown()
    server.server_close()


# urllib3 leaves the socket of a body that broke off to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("faults", [[], ["cut"], ["stall"], ["503", "cut"], ["cut", "cut", "cut"]])
def test_googles_client_reads_a_whole_range_after_some_faults(google_reader, faults):
    FaultyS3.faults = list(faults)
    assert google_reader.read("gs://b/a", 1000, 4000) == CONTENT[1000:5000]
