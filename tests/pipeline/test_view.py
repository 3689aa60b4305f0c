"""`recordmill view`: it prints an address that works, and ends with Ctrl-C."""

import json
import re
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest

from recordmill.pipeline.view import main

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def test_the_printed_address_is_a_page_until_ctrl_c(tmp_path, convert_folders):
    dataset = convert_folders(tmp_path)
    command = [sys.executable, "-m", "recordmill", "view", str(dataset), "--no-browser", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stderr.readline()
        assert process.stderr.readline() == "press Ctrl-C to stop\n"
        address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)[0]
        with urlopen(address) as page:
            assert page.status == 200
            assert page.headers["Set-Cookie"].startswith("recordmill_")
        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(stdout)) == (
        0,
        {"exit_code": 0, "path": str(dataset), "status": "stopped"},
    )


def test_what_cannot_be_opened_gets_a_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "nothing"), "--no-browser"]) == 1
    assert "nothing does not exist or is empty" in capsys.readouterr().err


def test_a_port_beyond_the_last_one_gets_a_sentence(tmp_path, capsys):
    assert main([str(tmp_path), "--port=70000"]) == 2
    assert "--port is 70000: give a number from 0 to 65535" in capsys.readouterr().err
