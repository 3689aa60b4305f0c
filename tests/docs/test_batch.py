"""docs/batch.md: its commands run; its crontab, codes and figures are those of the files."""

import json
import re
from pathlib import Path

import pytest
import yaml
from PIL import Image

from recordmill.schemas.errors import (
    DONE,
    FAILED,
    INTERRUPTED,
    NOT_AS_EXPECTED,
    TERMINATED,
    TOO_MANY_REJECTED,
    WRONG_USAGE,
)

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

REPO = Path(__file__).parents[2]
PAGE = "docs/batch.md"
TEXT = (REPO / PAGE).read_text(encoding="utf-8")


def test_the_commands_run(run_page, tmp_path):
    for label in ("cat", "dog"):
        (tmp_path / "photos" / label).mkdir(parents=True)
        for number in range(10):
            Image.new("RGB", (16, 12), (number, 9, ord(label[0]))).save(
                tmp_path / "photos" / label / f"{number}.png"
            )
    converted, shown = run_page(PAGE, tmp_path)
    line = json.loads(converted.stdout)
    assert (line["status"], line["ledger"]["written"]) == ("published", 20)
    assert json.loads(shown.stdout) == line


def test_the_crontab_is_the_file():
    (shown,) = re.findall(r"<!-- crontab -->\n\n```\n(.*?)\n```", TEXT, re.DOTALL)
    lines = (
        (REPO / "deploy" / "cron" / "recordmill.crontab").read_text(encoding="utf-8").splitlines()
    )
    assert shown == lines[-1]


def test_every_exit_code_is_explained():
    codes = [
        int(code)
        for row in re.findall(r"^\| ([0-9, ]+) \|", TEXT, re.MULTILINE)
        for code in row.split(", ")
    ]
    assert codes == [
        DONE,
        FAILED,
        WRONG_USAGE,
        TOO_MANY_REJECTED,
        NOT_AS_EXPECTED,
        INTERRUPTED,
        TERMINATED,
        137,
    ]


def test_the_cronjob_does_what_the_page_says():
    manifest = yaml.safe_load(
        (REPO / "deploy" / "kubernetes" / "cronjob.yaml").read_text(encoding="utf-8")
    )
    pod = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert f"the {pod['terminationGracePeriodSeconds']} s of grace" in TEXT
    assert pod["containers"][0]["resources"]["requests"]["memory"] == "1Gi"
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
