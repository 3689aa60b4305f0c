"""docs/object_stores.md: its commands run against an emulator of S3."""

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from recordmill.pipeline.configuration.preflight import check_secrets
from recordmill.schemas.errors import UsageError
from recordmill.storage.stores.store import BLOCK_BYTES, CONNECTIONS
from recordmill.transforms.shards.read_ahead import REMOTE_READERS, WINDOW_BYTES

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/object_stores.md"
TEXT = " ".join((Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8").split())


@pytest.mark.slow
def test_the_commands_run(amazon_store, run_page, monkeypatch, tmp_path):
    import boto3

    for name, value in amazon_store.environment.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    for label in ("cat", "dog"):
        for number in range(10):
            Image.new("RGB", (16, 12), (number, 9, ord(label[0]))).save(tmp_path / "image.png")
            client.upload_file(
                str(tmp_path / "image.png"), "recordmill", f"photos/{label}/{number}.png"
            )
    results = [json.loads(done.stdout) for done in run_page(PAGE, tmp_path)]
    assert [(line["status"], line["ledger"]["written"]) for line in results] == [
        ("published", 20)
    ] * 3
    assert (tmp_path / "here" / "recordmill.json").is_file()


def test_flags_that_are_refused_are_those_named():
    (flag,) = re.findall(r"`(--s3_\w+)` and similar flags are refused", TEXT)
    with pytest.raises(UsageError):
        check_secrets([f"{flag}=x"])


def test_figures_are_those_of_the_code():
    assert f"blocks of {BLOCK_BYTES // 2**20} MiB" in TEXT
    assert f"up to {CONNECTIONS} connections; {REMOTE_READERS} images" in TEXT
    assert f"within {WINDOW_BYTES // 2**20} MiB" in TEXT
