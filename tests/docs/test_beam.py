"""docs/beam.md: its programs run and do what the page says."""

import json

import pytest
from documented_inputs import draw_collections
from stored_records import sorted_records

from recordmill.schemas.features import Example

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def check_whole_jobs(folder, whole, patterns):
    """Checks the datasets of `Convert`, and what the programs print about them."""
    sizes = {
        split: len(sorted_records(folder / "steps", f"{split}-*")) for split in ("test", "train")
    }
    message, *shards = sorted(whole.stdout.splitlines())
    assert message == f"40 images are in {folder}/dataset-beam"
    assert shards == [f"{split} {size}" for split, size in sizes.items()]
    for split in sizes:
        expected = sorted_records(folder / "steps", f"{split}-*")
        assert sorted_records(folder / "dataset-beam", f"{split}-*") == expected
    names = [f"{split}-00000-of-00001.tfrecord" for split in sizes]
    assert sorted(patterns.stdout.splitlines()) == names


def values_of(record, part):
    """The values of the features of a record whose keys begin so, by the rest of the keys."""
    values = {}
    for key, feature in Example.FromString(record).features.feature.items():
        if key.startswith(part):
            kind = feature.WhichOneof("kind")
            values[key.removeprefix(part)] = list(getattr(feature, kind).value) if kind else []
    return values


def check_boxes(records):
    """Checks the image with two boxes, and the one without."""
    found = [values_of(record, "image/object/") for record in records]
    none, two = sorted(found, key=lambda values: len(values["class/label"]))
    assert two == {
        "bbox/xmin": [0.25, 0],
        "bbox/xmax": [0.75, pytest.approx(0.2)],
        "bbox/ymin": [0.25, 0.5],
        "bbox/ymax": [0.75, 1],
        "class/label": [1, 2],
        "class/text": [b"cat", b"toy"],
    }
    assert none == {key: [] for key in two}


def test_the_programs_do_what_the_page_says(run_page, run_command, tmp_path):
    folder = draw_collections(tmp_path)
    done = run_page("docs/beam.md", folder)
    assert [each.stderr for each in done] == [""] * len(done)
    check_whole_jobs(folder, *done[-2:])
    main_job = "recordmill run --input photos --output main --set images.quality=90"
    assert run_command(main_job, folder).returncode == 0
    for split in ("train", "test"):
        expected = sorted_records(folder / "main", f"{split}-*")
        assert sorted_records(folder / "steps", f"{split}-*") == expected
        assert sorted_records(folder / "composed", f"{split}-*") == expected
    features = [
        Example.FromString(record).features.feature
        for record in sorted_records(folder / "rows", "all*")
    ]
    names = [each["image/filename"].bytes_list.value[0] for each in features]
    assert sorted(names) == [b"cat-1", b"dog-1"]
    check_boxes(sorted_records(folder / "boxes", "all*"))
    (line,) = (folder / "rows/rejected.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "key": "cat-2",
        "reason": "vanished",
        "detail": "there is no such file",
    }
