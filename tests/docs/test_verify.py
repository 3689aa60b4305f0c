"""docs/verify.md is true: its commands run and do what it says."""

import json
import re
from pathlib import Path

import pytest
from PIL import Image

from recordmill.reading.verify_shard import NOTES

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

PAGE = "docs/verify.md"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory, run_command):
    folder = tmp_path_factory.mktemp("verify")
    for number in range(30):
        for animal in ("cat", "dog"):
            path = folder / "photos" / animal / f"{number:04d}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (40, 30), (8 * number, 90, 200 * (animal == "dog"))).save(path)
    assert run_command("recordmill run --input photos --output dataset", folder).returncode == 0
    return folder


def test_the_page_runs_and_gives_what_it_says(run_page, somewhere):
    runs = run_page(PAGE, somewhere)
    (
        whole,
        frames,
        pixels,
        one_file,
        bare,
        inspected,
        record,
        by_key,
        where,
        one,
        images,
        followed,
        script,
    ) = runs
    assert bare.returncode == 0
    for done, level, records in (
        (whole, "files", 60),
        (frames, "frames", 60),
        (pixels, "pixels", 60),
    ):
        said = f"no problems found: {records} records in 2 files, level {level}, "
        assert done.stderr.splitlines()[-1].startswith(said)
    assert json.loads(pixels.stdout)["findings"] == []
    assert "in 1 file, level files" in one_file.stderr
    assert "dataset  a dataset of Recordmill, convention default" in inspected.stderr
    assert "train:12  record 12 of train-00000-of-00001.tfrecord" in record.stderr
    assert where.stderr == by_key.stderr
    assert "from cat/0001.jpg, " in where.stderr
    (path,) = (path for path in (somewhere / "one").rglob("*") if path.is_file())
    assert path.read_bytes() == (somewhere / "photos" / "cat" / "0001.jpg").read_bytes()
    assert "1 image written to one" in one.stderr
    assert len(list((somewhere / "images").rglob("*.jpeg"))) == 60
    assert "60 images written to images" in images.stderr
    assert followed.stderr == "the dataset in dataset is complete\n"
    assert script.stderr == ""


def test_damage_is_reported_as_the_page_shows(somewhere, run_command, tmp_path):
    shard = somewhere / "dataset" / "train-00000-of-00001.tfrecord"
    content = shard.read_bytes()
    try:
        shard.write_bytes(content[:300] + bytes([content[300] ^ 1]) + content[301:])
        done = run_command("recordmill verify dataset", somewhere)
    finally:
        shard.write_bytes(content)
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("damage: "))
    shown = (ROOT / PAGE).read_text(encoding="utf-8").split("\ndamage: ")[1].splitlines()[0]
    assert (
        line.rpartition(": ")[2]
        == shown.rpartition(": ")[2]
        == "the data do not match their checksum"
    )
    assert line.startswith("damage: train-00000-of-00001.tfrecord, record 0 at byte 0 (")


def test_swapped_names_and_an_edited_page_are_reported_as_the_page_shows(somewhere, run_command):
    folder = somewhere / "dataset"
    kept = {
        name: (folder / name).read_bytes()
        for name in ("labels.txt", "README.md", "recordmill.json")
    }

    def verified():
        done = run_command("recordmill verify dataset", somewhere)
        return done.returncode, [
            line for line in done.stderr.splitlines() if line.startswith(("damage: ", "note: "))
        ]

    try:
        (folder / "README.md").write_bytes(kept["README.md"] + b"License: CC0\n")
        edited = verified()
        (folder / "labels.txt").write_bytes(b"0:dog\n1:cat\n")
        swapped = verified()
        (folder / "labels.txt").write_bytes(kept["labels.txt"])
        (folder / "README.md").write_bytes(kept["README.md"])
        marker = json.loads(kept["recordmill.json"])
        (folder / "recordmill.json").write_text(
            json.dumps({**marker, "labels": {"cat": 1, "dog": 0}})
        )
        code, lines = verified()
    finally:
        for name, content in kept.items():
            (folder / name).write_bytes(content)
    note = "note: README.md: the file was edited after the dataset was made"
    page = (ROOT / PAGE).read_text(encoding="utf-8").splitlines()
    shown = [line.strip() for line in page if line.startswith("    damage: ")]
    assert edited == (0, [note])
    assert swapped == (1, [shown[0], note])
    assert (code, len([line for line in lines if line.startswith("damage: train-")])) == (1, 2)
    assert shown[1] in lines


def test_a_folder_without_its_marker_is_not_a_dataset(somewhere, run_command):
    marker, away = somewhere / "dataset/recordmill.json", somewhere / "away"
    try:
        marker.rename(away)
        for command in ("verify", "inspect"):
            done = run_command(f"recordmill {command} dataset", somewhere)
            assert done.returncode == 1
            assert done.stderr.startswith(
                "error: dataset holds no recordmill.json but sidecars/ and rejected.jsonl: "
            )
        assert run_command("recordmill verify 'dataset/train-*'", somewhere).returncode == 0
    finally:
        away.rename(marker)


def test_every_kind_of_finding_is_explained():
    table = re.findall(
        r"^\| `(\w+)` \| [^|]+ \| (note)? ?\|$", (ROOT / PAGE).read_text(encoding="utf-8"), re.M
    )
    sources = [
        ROOT / "recordmill/storage/tfrecord_file.py",
        ROOT / "recordmill/reading/find_excluded.py",
    ]
    sources += (ROOT / "recordmill/reading").glob("verify_*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    kinds = set(
        re.findall(
            r'(?:Finding\(|\.add\(|Damage\(|report\(|yield |return )\s*"(\w+)",\s',
            text,
        )
    )
    assert {kind for kind, _ in table} == kinds
    assert {kind for kind, note in table if note} == NOTES
