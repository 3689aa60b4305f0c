"""Whole datasets, converted in this process, and code that runs in another one."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from pipeline.launch import launch
from pipeline.run import build

REPO = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def convert_images():
    """`convert_images(input, output, {"images.quality": 90})`: converts a folder, and gives the output."""

    def convert(source, output, settings):
        flags = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        assert launch([f"--input={source}", f"--output={output}", *flags], build) == 0
        return output

    return convert


@pytest.fixture(scope="session")
def with_tensorflow():
    """Skips what needs TensorFlow Transform where it is not installed."""
    if not find_spec("tensorflow_transform"):
        pytest.skip("tensorflow-transform is not installed")


@pytest.fixture(scope="session")
def run_python():
    """`run_python(code, *arguments)`: its output, and its exit code.

    Whatever runs TensorFlow Transform does so in a process of its own, since such a process crashes at its end.
    """

    def run(code, *arguments, timeout=300):
        environment = {**os.environ, "PYTHONPATH": str(REPO), "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.run(
            command, env=environment, cwd=REPO, capture_output=True, text=True, timeout=timeout, check=False
        )

    return run
