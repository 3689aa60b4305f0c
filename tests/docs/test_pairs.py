"""docs/pairs.md: every command runs and stores both images of each pair."""

import pytest
from documented_inputs import count_records

from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/pairs.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_page):
    folder = tmp_path_factory.mktemp("pairs")
    for name in "12":
        for side, ending, kind in (("A", "jpg", "JPEG"), ("B", "png", "PNG")):
            path = folder / "scenes" / side / f"{name}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode_picture((side, name), kind=kind))
    run_page(PAGE, folder)
    return folder


@pytest.mark.parametrize("name", ["dataset-pairs", "dataset-pairs-of-a-table"])
def test_both_commands_store_second_images(folder, name):
    assert sum(count_records(folder / name).values()) == 2
    schema = (folder / name / "schema.pbtxt").read_text(encoding="utf-8")
    assert 'name: "image/target/encoded"' in schema
    assert 'name: "image/target/format"' in schema
