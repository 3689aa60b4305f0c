"""Hugging Face's `datasets` loads a dataset as docs/load.md says."""

import pytest

REASON = "needs an environment of its own: make test-interop"
datasets = pytest.importorskip("datasets", reason=REASON)
pytest.importorskip("simplejpeg", reason=REASON)


def test_the_page_is_true(run_block, convert):
    labels = sorted(convert("sample").labels)
    assert run_block("load_datasets.py").splitlines()[-1] == f"(64, 64) {labels}"
