"""The flex template's files."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from installed_wheel import environment_without_the_checkout
from PIL import Image

from recordmill.pipeline.configuration.options import build_parser
from scripts import template_metadata

REPO = Path(__file__).parents[2]


def test_the_metadata_is_what_the_flags_say():
    assert template_metadata.PATH.read_text(encoding="utf-8") == template_metadata.metadata(), (
        "run `make docs`"
    )


def test_every_parameter_is_a_flag_of_ours_or_beams():
    rows = json.loads(template_metadata.PATH.read_text(encoding="utf-8"))["parameters"]
    names = [row["name"] for row in rows]
    assert names == [
        "input",
        "output",
        "config",
        "set",
        "against",
        "reuse",
        "overwrite",
        "update",
        "versions",
        "discard",
        "writer",
        "threads",
        "outcome_file",
        "sdk_container_image",
    ]
    assert [row["name"] for row in rows if not row["isOptional"]] == [
        "input",
        "output",
        "sdk_container_image",
    ]
    # As the service hands them over: each as --name=value.
    values = {"TEXT": "x", "BOOLEAN": "true", "NUMBER": "2"}
    values_by_name = {"writer": "beam"}
    given = [
        f"--{name}={values_by_name.get(name) or values.get(row['paramType'], 'gs://b/x')}"
        for name, row in zip(names, rows, strict=True)
    ]
    flags, rest = build_parser().parse_known_args(given)
    assert rest == ["--sdk_container_image=x"]
    assert (flags.input, flags.overwrite, flags.discard, flags.threads) == (
        ["gs://b/x"],
        True,
        True,
        2,
    )


def test_names_and_kinds_are_what_the_service_accepts():
    # Names and ParameterType of the REST API's TemplateMetadata, v1b3.
    kinds = {
        "TEXT",
        "GCS_READ_FOLDER",
        "GCS_WRITE_FOLDER",
        "GCS_READ_FILE",
        "GCS_WRITE_FILE",
        "BOOLEAN",
        "NUMBER",
    }
    for row in template_metadata.describe_parameters():
        assert set(row) == {"name", "label", "helpText", "paramType", "isOptional"}
        assert re.fullmatch(r"[a-zA-Z][-_a-zA-Z0-9]+", row["name"])
        assert row["paramType"] in kinds


def test_the_entry_file_only_calls_ours():
    lines = (REPO / "deploy" / "dataflow" / "main.py").read_text(encoding="utf-8").splitlines()
    code = [line for line in lines if line and not line.startswith("#")]
    assert code == ["from recordmill.pipeline.run import main", "main()"]


@pytest.mark.slow
def test_the_entry_file_converts_where_the_wheel_is_installed(installed, tmp_path):
    shutil.copy(REPO / "deploy" / "dataflow" / "main.py", tmp_path)
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        Image.new("RGB", (16, 12)).save(tmp_path / "photos" / label / "0.png")
    command = [
        installed / "python",
        "main.py",
        "--input=photos",
        "--output=dataset",
        "--update=true",
    ]
    variables = environment_without_the_checkout()
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "published"), done.stderr
