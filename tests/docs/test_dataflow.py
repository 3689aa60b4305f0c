"""docs/dataflow.md: what can be run here is run; the estimate's arithmetic is done again."""

import json
import re
import shutil
from pathlib import Path

import pytest
from apache_beam import coders
from apache_beam.typehints import typehints

from pipeline.options import build_parser
from schemas.image_ref import ImageRef

REPO = Path(__file__).parents[2]
PAGE = "docs/dataflow.md"
TEXT = (REPO / PAGE).read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", TEXT, re.MULTILINE))


@pytest.mark.slow
def test_the_job_is_built(run_page, tmp_path):
    pytest.importorskip("google.cloud.dataflow_v1beta3", reason="no apache-beam[gcp] here: make test-dataflow")
    ignored = shutil.ignore_patterns(".*", "tests", "*.egg-info", "build", "dist", "out")
    shutil.copytree(REPO, tmp_path / "checkout", ignore=ignored)
    (done,) = run_page(PAGE, tmp_path / "checkout")
    assert json.loads(done.stdout)["status"] == "built"


def test_the_commands_that_are_not_run_have_known_flags():
    (started,) = re.findall(r"^```console\n(python -m pipeline.run --runner.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    words = started.replace("\\\n", " ").split()[3:]
    flags, rest = build_parser("").parse_known_args(words)
    assert (flags.runner, flags.threads) == ("DataflowRunner", 8)
    known = {"project", "region", "temp_location", "setup_file", "machine_type", "max_num_workers", "disk_size_gb"}
    assert {word.partition("=")[0].removeprefix("--") for word in rest} == {*known, "labels"}
    given = [pair.partition("=")[0] for line in re.findall(r"--parameters=(\S+)", TEXT) for pair in line.split(",")]
    described = json.loads((REPO / "deploy" / "dataflow" / "metadata.json").read_text(encoding="utf-8"))
    assert set(given) <= {row["name"] for row in described["parameters"]}
    assert {row["name"] for row in described["parameters"] if not row["isOptional"]} <= set(given)


def test_a_reference_takes_what_is_said():
    uri = "gs://my-bucket/imagenet/train/n01440764/n01440764_10026.JPEG"
    key = "n01440764/n01440764_10026.JPEG"
    assert uri in TEXT
    ref = ImageRef(key, uri, 110_000, "1700000000.0", label="n01440764")
    coder = coders.registry.get_coder(typehints.KV[typehints.Tuple[str, int], ImageRef])
    assert 130 <= len(coder.encode((("train", 12), ref))) <= 170
    assert "about 150 bytes" in TEXT


def test_the_estimate_adds_up():
    images, each, processes, threads = 1_000_000, 108e3, 40, 8
    listing, store = images / 1000 * 0.2, images * 2 * 0.05 / (processes * threads)
    cpu = images * 2.6e-3 * 2 / processes
    minutes = round((240 + listing + max(store, cpu) + 60) / 60)
    costs = [
        40 * minutes / 60 * 0.056,
        160 * minutes / 60 * 0.0036,
        images * 2 / 1000 * 0.0004,
        images * 150e-9 * 0.011,
    ]
    assert ROWS["images"] == f"{images * each / 1e9:.0f} GB"
    assert ROWS["shards of 128 MiB"] == f"{images * each / 2**27:.0f}"
    assert ROWS["listing"] == f"{listing:.0f} s"
    assert ROWS["CPU"] == f"{cpu:.0f} s"
    assert ROWS["waiting for the store"] == ROWS["converting"] == f"{int(store + 0.5)} s"
    assert ROWS["all of it"] == f"{minutes} min"
    shown = [float(ROWS[name].removeprefix("$")) for name in ("vCPUs", "memory", "reads", "shuffle")]
    assert shown == [round(cost, 3 if cost < 0.01 else 2) for cost in costs]
    assert abs(sum(costs) - 1.5) < 0.1
