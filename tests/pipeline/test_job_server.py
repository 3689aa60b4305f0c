"""What is wrong with a portable runner's flags and places is one sentence, before any work."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from recordmill.pipeline.runners import (
    cancel_on_flink,
    check_job_server,
    ends_with_this_process,
    loops_back,
)
from recordmill.schemas.errors import RecordmillError, UsageError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync", "ended_launches")


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def check(runner, *flags):
    check_job_server(runner, PipelineOptions(list(flags)))


def test_portable_runner_without_an_endpoint(convert, photos):
    done = convert(photos, "--runner=PortableRunner")
    sentence = (
        "--runner=PortableRunner needs --job_endpoint=HOST:PORT, the address of a Beam job server"
    )
    assert (done.code, done.errors) == (2, [sentence])
    assert not done.output.exists()


def test_no_job_server_answers(convert, photos, free):
    flags = (
        f"--job_endpoint=localhost:{free}",
        "--environment_type=LOOPBACK",
        "--job_server_timeout=0",
    )
    done = convert(photos, "--runner=PortableRunner", *flags)
    assert (done.code, done.errors) == (
        1,
        [f"no job server answers at --job_endpoint=localhost:{free}: start it"],
    )
    assert not done.output.exists()


def test_no_flink_answers(convert, photos, free):
    done = convert(
        photos,
        "--runner=FlinkRunner",
        f"--flink_master=localhost:{free}",
        "--job_server_java_launcher=true",
    )
    begin = (
        f"no Flink answers at --flink_master=localhost:{free} ([Errno 111] Connection refused): "
    )
    assert (done.code, done.errors) == (1, [f"{begin}start it"])


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ["--job_server_java_launcher=/no/java"],
            "FlinkRunner needs /no/java for its job server: install Java, or give --job_endpoint",
        ),
    ],
)
def test_a_missing_part_of_flinks_job_server_is_named(convert, photos, flags, sentence):
    done = convert(photos, "--runner=FlinkRunner", *flags)
    assert done.code == 2
    assert done.errors[0].startswith(sentence)


def test_who_answers_is_let_through(listening):
    check("PortableRunner", "--job_endpoint=embed")
    java = "--job_server_java_launcher=true"
    check("FlinkRunner", java, f"--flink_master=localhost:{listening}")
    check("FlinkRunner", java, f"--flink_master=http://localhost:{listening}")
    check("FlinkRunner", java, "--flink_master=https://host/path")


def test_a_port_that_is_none():
    with pytest.raises(
        RecordmillError, match=r"no Flink answers at --flink_master=localhost:99999 \("
    ):
        check("FlinkRunner", "--job_server_java_launcher=true", "--flink_master=localhost:99999")


def test_usage_comes_before_places(free):
    with pytest.raises(UsageError, match="FlinkRunner needs /no/java"):
        check(
            "FlinkRunner", "--job_server_java_launcher=/no/java", f"--flink_master=localhost:{free}"
        )


@pytest.mark.parametrize(
    ("runner", "flags", "here", "ends"),
    [
        ("PrismRunner", [], True, True),
        ("PrismRunner", ["--environment_type=DOCKER"], False, True),
        ("FlinkRunner", [], True, True),
        ("FlinkRunner", ["--flink_master=host:8081"], False, True),
        ("FlinkRunner", ["--flink_master=host:8081", "--flink_submit_uber_jar"], False, False),
        ("FlinkRunner", ["--flink_master=host:8081", "--job_endpoint=host:1"], False, False),
        ("FlinkRunner", ["--flink_master=host:8081", "--environment_type=LOOPBACK"], True, True),
        ("PortableRunner", ["--job_endpoint=host:1"], False, False),
        ("PortableRunner", ["--job_endpoint=host:1", "--environment_type=LOOPBACK"], True, True),
        ("DataflowRunner", [], False, False),
    ],
)
def test_where_the_work_is_done_and_whether_it_outlives_this_process(runner, flags, here, ends):
    options = PipelineOptions(flags)
    assert loops_back(runner, options) is here
    assert ends_with_this_process(runner, options) is ends


@pytest.fixture
def flink():
    """A stand-in for Flink's interface; gives its address and what was asked of it."""
    asked = []
    states = {"1": ("ours", "RUNNING"), "2": ("other", "RUNNING"), "3": ("ours", "FINISHED")}

    class Flink(BaseHTTPRequestHandler):
        def do_GET(self):
            jobs = [
                {"jid": jid, "name": name, "state": state} for jid, (name, state) in states.items()
            ]
            self.answer(json.dumps({"jobs": jobs}).encode())

        def do_PATCH(self):
            self.answer(b"")

        def answer(self, content):
            asked.append(f"{self.command} {self.path}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Flink) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_job_is_canceled_where_it_runs(flink, scheme):
    address, asked = flink
    options = PipelineOptions([f"--flink_master={scheme}{address}"])
    assert cancel_on_flink(options, "ours")
    assert asked == ["GET /jobs/overview", "PATCH /jobs/1?mode=cancel"]
    assert not cancel_on_flink(options, "nobody's")
    assert len(asked) == 3


def test_without_a_cluster_no_request_is_sent():
    assert not cancel_on_flink(PipelineOptions([]), "ours")
