"""How often a run hashes what it knows of a reference."""

import os
from collections import Counter

import pytest

from recordmill.schemas import digests

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def hashed(monkeypatch):
    """How often each text was hashed."""
    real, texts = digests.sha256, Counter()

    def count(text):
        texts[text] += 1
        return real(text)

    monkeypatch.setattr(digests, "sha256", count)
    return texts


def test_a_run_computes_each_hash_of_a_reference_once(photos, convert, hashed):
    for path in photos.rglob("*.jpg"):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # long ago: it is known to be finished
    settings = {"shards.count": 2, "splits.fractions": {"train": 0.5, "test": 0.5}}
    assert convert(photos, "--processes=1", settings=settings).code == 0
    for path in photos.rglob("*.jpg"):
        key = str(path.relative_to(photos)).encode()
        texts = {text: count for text, count in hashed.items() if key in text.split(b"\0")}
        # The numbers of its key, the digests of the reference, its version, and its source, and
        # that of its record.
        assert [*texts.values()] == [1, 1, 1, 1, 1], texts
