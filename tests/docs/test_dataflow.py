"""docs/dataflow.md: runs what can run without Google Cloud."""

import json
import re
import shutil
from pathlib import Path

import pytest
from apache_beam import coders
from apache_beam.typehints import typehints

from recordmill.pipeline.configuration.options import build_parser
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ShardBatch

REPO = Path(__file__).parents[2]
PAGE = "docs/dataflow.md"
TEXT = (REPO / PAGE).read_text(encoding="utf-8")
WORDS = " ".join(TEXT.split())


@pytest.mark.slow
def test_the_job_is_built(run_page, tmp_path):
    pytest.importorskip(
        "google.cloud.dataflow_v1beta3", reason="no apache-beam[gcp] here: make test-dataflow"
    )
    ignored = shutil.ignore_patterns(".*", "tests", "*.egg-info", "build", "dist", "out")
    shutil.copytree(REPO, tmp_path / "checkout", ignore=ignored)
    (done,) = run_page(PAGE, tmp_path / "checkout")
    assert json.loads(done.stdout)["status"] == "built"


def test_the_commands_that_are_not_run_have_known_flags():
    (started,) = re.findall(
        r"^```console\n(recordmill run --runner.*?)^```", TEXT, re.MULTILINE | re.DOTALL
    )
    words = started.replace("\\\n", " ").split()[2:]
    flags, rest = build_parser().parse_known_args(words)
    assert (flags.runner, flags.threads) == ("DataflowRunner", 1)
    known = {
        "project",
        "region",
        "temp_location",
        "setup_file",
        "machine_type",
        "max_num_workers",
        "disk_size_gb",
    }
    assert {word.partition("=")[0].removeprefix("--") for word in rest} == {*known, "labels"}
    given = [
        pair.partition("=")[0]
        for line in re.findall(r"--parameters=(\S+)", TEXT)
        for pair in line.split(",")
    ]
    described = json.loads(
        (REPO / "deploy" / "dataflow" / "metadata.json").read_text(encoding="utf-8")
    )
    assert set(given) <= {row["name"] for row in described["parameters"]}
    assert {row["name"] for row in described["parameters"] if not row["isOptional"]} <= set(given)


def test_a_reference_takes_the_documented_memory():
    # A share of a bundle: its references of one shard.
    refs = []
    for number in range(10_000, 10_020):
        key = f"n01440764/n01440764_{number}.JPEG"
        uri = f"gs://my-bucket/imagenet/train/{key}"
        refs.append(ImageRef(key, uri, 110_000 + number, f"17{number}0000.0", label="n01440764"))
    assert f"`{refs[-1].uri[:-10]}" in TEXT
    coder = coders.registry.get_coder(typehints.KV[typehints.Tuple[str, int], ShardBatch])
    batch = ShardBatch.of(refs, 0)
    assert 120 <= len(coder.encode((("train", 12), batch))) / len(refs) <= 140
    assert "about 130 bytes" in WORDS
