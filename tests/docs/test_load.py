import ast
import random

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def folder(tmp_path):
    """Photos of two classes, 20 and 10."""
    for name, count in (("cat", 20), ("dog", 10)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(count):
            noise = random.Random(f"{name}{number}").randbytes(8 * 6 * 3)
            image = Image.frombytes("RGB", (8, 6), noise).resize((80, 60))
            image.save(tmp_path / "photos" / name / f"{number:02}.jpg")
    return tmp_path


def test_the_page_is_true(run_page, folder):
    pytest.importorskip("tensorflow")
    converted, trained, described, opened, resumed, listed = run_page("docs/load.md", folder)
    assert '"exit_code":0' in converted.stdout
    records, classes, names = (
        described.stdout.splitlines()[0].partition(" ")[0],
        2,
        {0: "cat", 1: "dog"},
    )
    assert trained.stdout.splitlines()[-1] == f"('cat', 'dog') 1 batches of {records}"
    first, weights, meaning = described.stdout.splitlines()
    assert first == f"{records} {classes} {names}"
    assert set(ast.literal_eval(weights)) == {0, 1}
    assert meaning == "class id, counted from the label map's offset"
    assert resumed.stdout.splitlines() == ["280 25", "1 18"]
    count, labels, name = opened.stdout.splitlines()
    assert count.startswith(f"{records} (64, 64, 3) ")
    assert set(ast.literal_eval(labels)) <= {0, 1}
    assert len(ast.literal_eval(labels)) == 3
    assert name == "[b'00.jpg']"
    assert len(listed.stdout.splitlines()) == 30 - int(records)
    assert all(
        line.endswith(" int64") and line.startswith("b'") for line in listed.stdout.splitlines()
    )
