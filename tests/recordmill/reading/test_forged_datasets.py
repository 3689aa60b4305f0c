"""What a forger changes in a dataset, with all digests corrected: `verify` still finds it."""

import hashlib
import io
import json
import os
import random
import shutil

import pytest
from PIL import Image

import recordmill
from recordmill.reading.dataset import open_dataset
from recordmill.reading.repeated_keys import find_repeated_in_lines, find_repeated_key
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.errors import LoadError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


def draw(seed, position=False):
    stream, exif = io.BytesIO(), Image.Exif()
    if position:
        exif.get_ifd(0x8825).update({1: "N", 2: (10.0, 20.0, 30.0), 3: "E", 4: (1.0, 2.0, 3.0)})
    image = Image.frombytes("RGB", (6, 4), random.Random(f"{seed}").randbytes(72))
    image.resize((48, 32)).save(stream, "JPEG", exif=exif)
    return stream.getvalue()


@pytest.fixture(scope="module")
def original(tmp_path_factory, convert_images):
    folder = tmp_path_factory.mktemp("forged")
    for name in ("cat", "dog"):
        (folder / "in" / name).mkdir(parents=True)
        for number in range(5):
            content = draw((name, number), position=number == 0)
            (folder / "in" / name / f"{number}.jpg").write_bytes(content)
        (folder / "in" / name / "bad.jpg").write_bytes(b"no picture")
        (folder / "in" / name / "notes.txt").write_text("mine")
        (folder / "in" / name / ".hidden").write_text("mine")
    settings = {
        "splits.fractions": {"train": 1.0},
        "max_rejected.share": 1,
        "ignore": ["notes.txt"],
    }
    return convert_images(folder / "in", folder / "ds", settings)


@pytest.fixture
def forged(original, tmp_path):
    return shutil.copytree(original, tmp_path / "ds")


def marker_of(folder):
    return json.loads((folder / "recordmill.json").read_bytes())


def write_marker(folder, marker):
    (folder / "recordmill.json").write_text(json.dumps(marker))


def correct(folder):
    """Corrects all digests in the marker after files were changed."""
    marker = marker_of(folder)
    for name in marker["files"]:
        marker["run"]["digests"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    for split in marker["splits"].values():
        for shard in split["shards"]:
            content = (folder / shard["sidecar"]).read_bytes()
            shard["sidecar_sha256"] = hashlib.sha256(content).hexdigest()
    write_marker(folder, marker)


def findings(folder, level="files"):
    try:
        found = verify_dataset(open_dataset(str(folder)), level, threads=1).findings
        return [str(each) for each in found if not each.is_note]
    except LoadError as error:
        return [str(error)]


def test_an_honest_dataset_has_no_findings(forged):
    assert findings(forged, "pixels") == []
    assert marker_of(forged)["gps_positions"] == 2


def change_marker(*path, to):
    def change(folder):
        marker = marker_of(folder)
        inner = marker
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to(inner.get(path[-1])) if callable(to) else to
        write_marker(folder, marker)

    return change


def rename_key(*path):
    def change(folder):
        marker = marker_of(folder)
        inner = marker
        for key in path[:-1]:
            inner = inner[key]
        inner[f"{path[-1]}x"] = inner.pop(path[-1])
        write_marker(folder, marker)

    return change


def drop_key(*path):
    def change(folder):
        marker = marker_of(folder)
        inner = marker
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        write_marker(folder, marker)

    return change


def ignore_more(folder):
    marker = marker_of(folder)
    reason = next(iter(marker["ledger"]["ignored"]))
    marker["ledger"]["ignored"][reason] += 3
    marker["ledger"]["listed"] += 3
    write_marker(folder, marker)


def repeat_in_marker(folder):
    path = folder / "recordmill.json"
    path.write_bytes(path.read_bytes().replace(b'"ledger":', b'"ledger": {"listed": 3}, "ledger":'))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (change_marker("index", to="labels.txt"), "index is labels.txt, not records.index"),
        (change_marker("run", "file_versions", to="labels.txt"), "run.file_versions is labels.txt"),
        (change_marker("gps_positions", to=4), "gps_positions: 4 -> 2"),
        (drop_key("gps_positions"), "gps_positions: None -> 2"),
        (change_marker("recordmill", to=1), "has format 1, which another version"),
        (change_marker("recordmill", to=4), "has format 4, which another version"),
        (change_marker("run", "digests", to={}), "run.digests lacks labels.txt"),
        (ignore_more, "ledger.listed: 19 -> 16"),
        (repeat_in_marker, "the key ledger is given twice"),
        (
            rename_key("duplicates", "same_bytes", "conflicting"),
            "same_bytes.conflicting is missing",
        ),
        (drop_key("duplicates", "same_bytes", "groups"), "same_bytes.groups is missing"),
        (rename_key("run", "shards_reused"), "run.shards_reused is missing"),
        (rename_key("remarks"), "remarks is missing"),
        (change_marker("notes", to=["bought"]), "notes has a line that is not there"),
        (change_marker("remarks", to=["bought"]), "remarks has a line that is not there"),
        (change_marker("more", to=3), "more is not a key of this version"),
        (change_marker("unit", to="file"), "unit is not file"),
        (change_marker("unit", to="\x1b[2J"), "unit is not one of"),
        (change_marker("run", "inputs", to={"": "/elsewhere"}), "is in none of run.inputs"),
    ],
)
def test_a_forged_marker_is_found(forged, change, found):
    change(forged)
    assert any(found in line for line in findings(forged)), findings(forged)


def edit_rows(**values):
    """Changes the first row of a sidecar that describes a record."""

    def change(folder):
        (sidecar,) = folder.glob("sidecars/train-*.jsonl")
        lines = sidecar.read_text().splitlines()
        place = next(n for n, line in enumerate(lines) if "rejected" not in json.loads(line))
        lines[place] = json.dumps(json.loads(lines[place]) | values, separators=(",", ":"))
        sidecar.write_text("".join(f"{line}\n" for line in lines))

    return change


def repeat_in(name, before, after):
    def change(folder):
        (path,) = folder.glob(name)
        content = path.read_text()
        assert before in content
        path.write_text(content.replace(before, after, 1))

    return change


def reject_more(folder):
    path = folder / "rejected.jsonl"
    line = json.loads(path.read_text().splitlines()[0])
    other = {**line, "key": "cat/other.jpg", "uri": line["uri"].replace("bad", "other")}
    path.write_text(path.read_text() + json.dumps(other) + "\n")


def reject_less(folder):
    path = folder / "rejected.jsonl"
    path.write_text(path.read_text().splitlines()[0] + "\n")


def reject_otherwise(folder):
    path = folder / "rejected.jsonl"
    path.write_text(path.read_text().replace("unknown_format", "truncated", 1))


@pytest.mark.parametrize(
    ("change", "level", "found"),
    [
        (edit_rows(height=31), "pixels", "the image has the shape [32, 48, 3], and its row"),
        (edit_rows(width=47), "pixels", "and its row in the sidecar [32, 47, 3]"),
        (edit_rows(channels=1), "pixels", "and its row in the sidecar [32, 48, 1]"),
        (edit_rows(sha256="0" * 64), "pixels", "its row in the sidecar has another sha256"),
        (reject_more, "files", "its lines are not the rejected rows of the sidecars"),
        (reject_less, "files", "its lines are not the rejected rows of the sidecars"),
        (reject_otherwise, "files", "its lines are not the rejected rows of the sidecars"),
        (
            repeat_in("sidecars/*.jsonl", '"key":', '"key":"a","key":'),
            "files",
            "key is given twice",
        ),
        (repeat_in("rejected.jsonl", '"key":', '"key":"a","key":'), "files", "is given twice"),
        (repeat_in("croissant.json", '"name":', '"name": "a", "name":'), "files", "given twice"),
        (repeat_in("report.json", '"remarks":', '"remarks": [], "remarks":'), "files", "twice"),
        (repeat_in("dataset_info.json", '"name":', '"name": "a", "name":'), "files", "twice"),
    ],
)
def test_a_forged_file_is_found_though_its_digest_fits(forged, change, level, found):
    change(forged)
    correct(forged)
    assert any(found in line for line in findings(forged, level)), findings(forged, level)


@pytest.mark.parametrize(
    "kind", ["other", "zero", "pipe", "folder", "nowhere", "edited", "cut", "longer"]
)
def test_a_report_that_is_not_this_dataset_s_is_found(forged, kind):
    report = forged / "report.html"
    content = report.read_text()
    report.unlink()
    if kind == "other":
        plan = marker_of(forged)["plan"]["id"]
        report.write_text(content.replace(plan, "f" * 16))
    elif kind == "edited":
        report.write_text(content.replace("<h1>", "<h1>A better "))
    elif kind == "cut":
        report.write_text(content[: content.index("</footer>")])
    elif kind == "longer":
        report.write_text(f"{content}<script>alert(1)</script>")
    elif kind == "pipe":
        os.mkfifo(report)
    elif kind == "folder":
        report.mkdir()
    else:
        report.symlink_to("/dev/zero" if kind == "zero" else "/nowhere")
    (line,) = findings(forged)
    assert line.startswith("report.html: ")


def test_a_report_of_an_earlier_version_has_no_digest(forged):
    report = forged / "report.html"
    page, seal = report.read_text().split("</html>")
    assert seal.startswith("\n<!-- SHA-256 of the above: ")
    report.write_text(f"{page}</html>")
    assert findings(forged) == []


def test_a_page_of_the_user_may_have_any_content(forged):
    (forged / "report.html").write_text("<p>mine</p>")
    (note,) = verify_dataset(open_dataset(str(forged)), "files", threads=1).findings
    assert str(note) == "report.html: it is not the report that was made of this dataset"
    assert note.is_note


@pytest.mark.parametrize("value", ["xyz", "0", "g" * 64, "0" * 63, "", "\u0661" * 64])
@pytest.mark.parametrize("key", ["sha256", "records"])
def test_a_damaged_marker_is_a_load_error(forged, key, value):
    marker = marker_of(forged)
    shard = marker["splits"]["train"]["shards"][0]
    shard[key] = value if key == "sha256" else -len(value)
    write_marker(forged, marker)
    if (key, value) == ("records", ""):
        return
    with pytest.raises(LoadError):
        _ = recordmill.open(forged)["train"][0]


def test_repeated_keys_are_found_at_any_depth():
    assert find_repeated_key(b'{"a": 1, "b": [{"c": 1, "c": 2}]}') == "c"
    assert find_repeated_key(b'{"a": 1, "\\u0061": 2}') == "a"
    assert find_repeated_key(b'{"a": {"b": 1}, "c": {"b": 1}}') is None
    assert find_repeated_in_lines([b'{"a":1}\n', b'{"a": 1.0}\n', b'{"a":1,"a":1}\n']) == (3, "a")
    assert find_repeated_in_lines([b'{ "a": 1 }\n']) is None
