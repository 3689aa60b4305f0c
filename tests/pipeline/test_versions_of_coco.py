"""Several COCO files of the same images: each can be converted alone, none twice."""

import json

import pytest
from paired_inputs import photo
from printed_commands import follow, write_files

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PHOTOS = {f"images/{at}.jpg": photo(at) for at in range(4)}


def version(category):
    """A COCO file of four images, with one box in each."""
    return json.dumps(
        {
            "images": [{"id": at, "file_name": f"{at}.jpg"} for at in range(4)],
            "annotations": [
                {"id": at, "image_id": at, "category_id": 1, "bbox": [1, 1, 5, 4]}
                for at in range(4)
            ],
            "categories": [{"id": 1, "name": category}],
        }
    ).encode()


@pytest.mark.parametrize(
    "names",
    [
        ("annotations.json", "annotations_v2.json"),
        ("annotations/instances_old.json", "annotations/instances_v2.json"),
        ("annotations/instances_train.json", "annotations/instances_val.json"),
        ("v1/annotations.json", "v2/annotations.json"),
        ("labels.json", "labels_train.json", "labels_val.json"),
    ],
)
def test_versions_of_a_file_are_offered_one_by_one(names, tmp_path, run_in):
    files = {name: version(f"of {name}") for name in names}
    write_files(tmp_path / "in", {**files, **PHOTOS})
    code, _, err = run_in(["--input", "in"])
    assert (code, "name the same images, as versions of one file do: to read " in err) == (2, True)
    ends = list(follow(["--input", "in"], run_in))
    assert [end.code for end in ends] == [0] * len(names), ends
    assert [end.marker["ledger"]["written"] for end in ends] == [4] * len(names)
    for name in names:
        assert any(f"/{name}" not in str(end.arguments) for end in ends)


def test_the_same_names_in_folders_of_splits_are_different_images(tmp_path, run_in):
    photos = {
        f"{split}/{at}.jpg": photo(f"{split}{at}") for split in ("train", "val") for at in range(4)
    }
    files = {f"annotations/instances_{split}.json": version("cat") for split in ("train", "val")}
    write_files(tmp_path / "in", {**files, **photos})
    code, out, _ = run_in(["--input", "in"])
    assert (code, json.loads(out.splitlines()[-1])["ledger"]["written"]) == (0, 8)


def test_a_file_that_cannot_be_read_fails_the_run(tmp_path, run_in):
    one = json.loads(version("cat"))
    other = {**one, "images": [{"id": 9, "file_name": f"{at}.jpg"} for at in range(4, 8)]}
    photos = {f"images/{at}.jpg": photo(at) for at in range(8)}
    files = {
        f"annotations/instances_part{at}.json": json.dumps(data).encode()
        for at, data in enumerate((one, other))
    }
    write_files(tmp_path / "in", {**files, **photos})
    code, _, err = run_in(["--input", "in"])
    assert code == 3
    assert "1 container is missing or damaged (1 bad_coco), " in err
    assert "two images have the id 9: '4.jpg' and '5.jpg'" in err
    (end,) = follow(["--input", "in"], run_in)
    assert (end.code, end.marker["ledger"]["written"]) == (0, 4)
