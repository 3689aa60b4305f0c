"""docs/dataflow.md: what can be run here is run; the estimate's arithmetic is done again."""

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
from recordmill.transforms.shards.read_ahead import REMOTE_READERS

REPO = Path(__file__).parents[2]
PAGE = "docs/dataflow.md"
TEXT = (REPO / PAGE).read_text(encoding="utf-8")
WORDS = " ".join(TEXT.split())
ROWS = dict(re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", TEXT, re.MULTILINE))


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


def test_the_estimate_adds_up():
    images, each, processes = 1_000_000, 95e3, 40
    listing, store = images / 1000 * 0.2, images * 0.05 / (processes * REMOTE_READERS)
    passing, reencoding = (images * seconds * 2 / processes for seconds in (3.3e-3, 6.0e-3))
    minutes = round((240 + listing + max(store, passing) + 60) / 60)
    costs = [
        40 * minutes / 60 * 0.056,
        160 * minutes / 60 * 0.0036,
        images / 1000 * 0.0004,
        images * 130e-9 * 0.011,
    ]
    assert ROWS["images"] == f"{images * each / 1e9:.0f} GB"
    assert ROWS["shards of 128 MiB"] == f"{images * each / 2**27:.0f}"
    assert ROWS["listing"] == f"{listing:.0f} s"
    assert ROWS["CPU"] == ROWS["converting"] == f"{passing:.0f} s"
    assert ROWS["waiting for the store"] == f"{store:.0f} s"
    assert ROWS["total time"] == f"{minutes} min"
    shown = [
        float(ROWS[name].removeprefix("$")) for name in ("vCPUs", "memory", "reads", "shuffle")
    ]
    assert shown == [round(cost, 3 if cost < 0.01 else 2) for cost in costs]
    assert f"| total | | about ${sum(costs):.2f} |" in TEXT
    more = reencoding - passing
    assert f"{more:.0f} s and ${more / 3600 * (40 * 0.056 + 160 * 0.0036):.2f} more" in WORDS
    assert f"${images * each * 1e-9 * 0.011:.2f} instead of ${costs[-1]:.3f}" in WORDS
    most = images * each / 2**27 / 4 / 4
    assert f"with 708 shards (of 128 MiB) and 4 processors, at most {most:.0f}." in WORDS
