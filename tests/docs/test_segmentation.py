import json

import golden_inputs as of
import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def test_the_page_runs(tmp_path, run_page):
    for path, data in of.masks_in_folders().items():
        if not path.startswith(("images/0", "masks/8", "images/3", "masks/3")):
            (tmp_path / "photos" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "photos" / path).write_bytes(data)
    (done,) = run_page("docs/segmentation.md", tmp_path)
    assert "recognized image_masks: image and mask pairs: 6, such as images/1.jpg" in done.stderr
    marker = json.loads((tmp_path / "segmented/recordmill.json").read_bytes())
    assert marker["annotations"]["segmentation"]["written"] == 6
