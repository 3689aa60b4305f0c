import json

import numpy as np
import pytest

from recordmill.reading.example import examples_as_numpy

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

LINES = [
    {
        "id": "a",
        "sunny": True,
        "people": 3,
        "place": "Öd",
        "temperature": 21.5,
        "spectrum": [0.5, 1.5],
        "quality": "low",
    },
    {"id": "b", "sunny": False, "place": "", "temperature": -1.0, "quality": "high"},
]


@pytest.fixture
def folder(tmp_path):
    rows = "".join(
        f"{'true' if n % 2 else 'false'},{n},{'cat' if n % 3 else 'dog'},{n / 4}\n"
        for n in range(40)
    )
    (tmp_path / "observations.csv").write_text(
        f"feature0,feature1,feature2,feature3\n{rows}", encoding="utf-8"
    )
    lines = [*LINES, *({**LINES[1], "id": f"more {n}"} for n in range(30))]
    (tmp_path / "measurements.jsonl").write_text(
        "\n".join(map(json.dumps, lines)), encoding="utf-8"
    )
    return tmp_path


def examples(dataset):
    return [each for file in sorted(dataset.glob("*.tfrecord")) for each in examples_as_numpy(file)]


def test_the_page_does_what_it_says(folder, run_page):
    run_page("docs/tables.md", folder)
    declared, inferred = (
        examples(folder / name) for name in ("observations-dataset", "inferred-dataset")
    )
    assert len(declared) == 40
    assert list(map(repr, declared)) == list(map(repr, inferred))
    found = examples(folder / "measurements-dataset")
    assert len(found) == 32
    (full,) = (each for each in found if "count" in each)
    assert {key: np.asarray(value).tolist() for key, value in full.items()} == {
        "sunny": [1],
        "count": [3],
        "place": ["Öd".encode()],
        "temperature": [21.5],
        "spectrum": [0.5, 1.5],
        "quality": [0],
    }
    assert all(
        set(each) == {"sunny", "place", "temperature", "quality"}
        for each in found
        if "count" not in each
    )
