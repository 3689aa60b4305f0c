"""docs/google_cloud.md: its flags and the files that it names exist. Nothing of it is run."""

import re
import shlex
from pathlib import Path

from apache_beam.options.pipeline_options import PipelineOptions

from recordmill.pipeline.configuration.options import build_parser, find_unknown_flag

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/google_cloud.md").read_text(encoding="utf-8")


def test_the_flags_of_the_job_are_known():
    (command,) = re.findall(r"^recordmill run (.*(?:\n  .*)*)", TEXT, re.MULTILINE)
    flags, beams = build_parser().parse_known_args(shlex.split(command.replace("\\\n", " ")))
    assert (flags.runner, flags.threads, flags.versions, flags.update) == (
        "DataflowRunner",
        1,
        True,
        True,
    )
    assert find_unknown_flag(beams) is None
    given = PipelineOptions(beams).get_all_options(drop_default=True)
    assert {each.partition("=")[0].removeprefix("--") for each in beams} <= set(given)


def test_the_image_that_is_built_is_the_one_of_the_repository():
    (path,) = re.findall(r"docker build --file (\S+)", TEXT)
    dockerfile = (ROOT / path).read_text(encoding="utf-8")
    (version,) = re.findall(r"apache/beam_python(\d\.\d+)_sdk", dockerfile)
    assert f"/usr/local/lib/python{version}/site-packages/" in TEXT
