import json

import pytest
from PIL import Image

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def test_the_page_does_what_it_says(tmp_path, run_page):
    for number in range(12):
        for animal in ("cat", "dog"):
            (tmp_path / "photos" / animal).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (16, 12), (20 * number, 90, 90)).save(
                tmp_path / "photos" / animal / f"{number}.jpg"
            )
    done, _, _ = run_page("docs/interoperate.md", tmp_path)
    assert json.loads(done.stdout)["status"] == "published"
    files = {
        str(path.relative_to(tmp_path / "pets"))
        for path in (tmp_path / "pets").rglob("*")
        if path.is_file()
    }
    assert files >= {
        "README.md",
        "dataset_info.json",
        "features.json",
        "image.class.label.labels.txt",
        "schema.pbtxt",
        "croissant.json",
        "sidecars/train-00000-of-00001.tfrecord.idx",
    }
    assert set(json.loads((tmp_path / "pets/recordmill.json").read_bytes())["files"]) <= files
    (index,) = (tmp_path / "indexes").glob("train-*")
    assert index.read_bytes() == (tmp_path / f"pets/sidecars/{index.name}").read_bytes()
