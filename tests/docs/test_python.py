import random

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def test_the_page_is_true(run_page, tmp_path):
    for name, count in (("cat", 20), ("dog", 10)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(count):
            noise = random.Random(f"{name}{number}").randbytes(8 * 6 * 3)
            image = Image.frombytes("RGB", (8, 6), noise).resize((320, 240))
            image.save(tmp_path / "photos" / name / f"{number:02}.jpg")
    converted, refused = run_page("docs/python.md", tmp_path)
    counts, labels, notes = converted.stdout.splitlines()
    assert (counts, labels) == ("{'train': 24, 'test': 6}", "{'cat': 0, 'dog': 1}")
    assert (notes[0], notes[-1]) == ("(", ")")
    assert converted.stderr.endswith("30 images are in smaller\n")
    assert "Traceback" not in refused.stderr
    assert refused.stdout.startswith("1 smaller holds another dataset")
    assert "--overwrite" in refused.stdout
