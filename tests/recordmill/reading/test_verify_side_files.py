"""What lies beside the shards: digests of all files, and that all lists of classes are the
marker's."""

import hashlib
import json
import shutil

import pytest

from recordmill.reading.dataset import open_dataset
from recordmill.reading.verify_dataset import verify_dataset
from recordmill.schemas.errors import LoadError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture(scope="module")
def described(tmp_path_factory, convert_boxed):
    """Every file that can lie beside shards: label map, TFDS's files, index files and a report."""
    settings = ("convention=tf_object_detection", "index_files=true")
    flags = [f"--set={each}" for each in settings]
    return convert_boxed(tmp_path_factory.mktemp("described"), *flags)


@pytest.fixture
def ours(described, tmp_path):
    """That dataset, to be changed."""
    return shutil.copytree(described, tmp_path / "dataset")


@pytest.fixture
def plain(published, tmp_path):
    """A dataset of the default convention, to be changed."""
    return shutil.copytree(published["none"], tmp_path / "plain")


def lines(path, level="files"):
    return [str(finding) for finding in verify_dataset(open_dataset(str(path)), level).findings]


def change_marker(folder, change):
    marker = json.loads((folder / "recordmill.json").read_bytes())
    change(marker)
    (folder / "recordmill.json").write_text(json.dumps(marker))


def test_the_marker_has_the_digest_of_every_companion_file(ours):
    marker = json.loads((ours / "recordmill.json").read_bytes())
    assert list(marker["run"]["digests"]) == marker["files"]
    there = {str(path.relative_to(ours)) for path in ours.rglob("*") if path.is_file()}
    shards = {
        shard[kind]
        for split in marker["splits"].values()
        for shard in split["shards"]
        for kind in shard
    }
    assert there - shards == {*marker["files"], "recordmill.json", "report.html"}


def test_every_companion_file_is_compared(ours):
    marker = json.loads((ours / "recordmill.json").read_bytes())
    assert len(marker["files"]) > 10
    for name in marker["files"]:
        content = (ours / name).read_bytes()
        (ours / name).write_bytes(content + b" ")
        verification = verify_dataset(open_dataset(str(ours)), "files")
        (finding,) = verification.findings
        assert str(finding).startswith(f"{name}: ")
        assert verification.failed == (name not in ("README.md", "samples.svg", "croissant.json"))
        assert lines(ours, "frames") == []
        (ours / name).write_bytes(content)
    assert lines(ours) == []
    for name in marker["files"]:
        (ours / name).write_bytes((ours / name).read_bytes() + b" ")
    assert lines(ours, "pixels") == lines(ours)
    assert [line.partition(": ")[0] for line in lines(ours)] == marker["files"]


def test_the_sentences(ours):
    for name in ("README.md", "config.yaml"):
        (ours / name).write_text("x")
    (ours / "rejected.jsonl").unlink()
    assert lines(ours) == [
        "rejected.jsonl: the file is missing",
        "config.yaml: the file has another sha256 than when the dataset was made: it was changed "
        "or damaged",
        "README.md: the file was edited after the dataset was made",
    ]


def test_the_report_may_be_gone_or_another_one_unless_an_earlier_version_listed_it(plain):
    (plain / "report.html").write_text("x")
    assert lines(plain) == []

    def list_report(marker):
        marker["files"].append("report.html")
        marker["run"]["digests"]["report.html"] = hashlib.sha256(b"x").hexdigest()

    change_marker(plain, list_report)
    assert lines(plain) == []
    (plain / "report.html").write_text("y")
    assert lines(plain) == ["report.html: the file was edited after the dataset was made"]
    (plain / "report.html").unlink()
    assert lines(plain) == ["report.html: the file is missing"]


def test_a_marker_without_digests_of_the_files_is_found(plain):
    change_marker(plain, lambda marker: marker["run"].pop("digests"))
    lacking = "recordmill.json: it contradicts itself: run.digests lacks"
    files = json.loads((plain / "recordmill.json").read_bytes())["files"]
    assert lines(plain) == [
        *(f"{lacking} {name}" for name in sorted(files)),
        "recordmill.json: it contradicts itself: run.digests is missing",
    ]


DIFFERS = "it does not list the classes and ids of recordmill.json line by line"


@pytest.mark.parametrize(
    "content",
    [
        b"0:dog\n1:cat\n2:owl\n",
        b"0:cat\n1:dog\n",
        b"0:cat\n1:dog\n2:owl\n3:yak\n",
        b"0:cat\r\n1:dog\r\n2:owl\r\n",
        b"0:cat\n1:dog\n2:owl",
    ],
)
def test_another_labels_txt(plain, content):
    (plain / "labels.txt").write_bytes(content)

    def list_other(marker):
        marker["run"]["digests"]["labels.txt"] = hashlib.sha256(content).hexdigest()

    change_marker(plain, list_other)
    for level in ("files", "pixels"):
        assert lines(plain, level) == [f"labels.txt: {DIFFERS}"]


def test_swapped_lines_of_the_other_label_maps(plain, ours):
    tfds = plain / "image.class.label.labels.txt"
    tfds.write_text("dog\ncat\nowl\n")
    assert lines(plain) == [f"{tfds.name}: {DIFFERS}"]
    label_map = ours / "label_map.pbtxt"
    label_map.write_text(label_map.read_text().replace('"cat"', '"dgo"'))
    assert lines(ours) == [f"label_map.pbtxt: {DIFFERS}"]


def test_swapped_labels_in_the_marker(plain):
    change_marker(plain, lambda marker: marker.update(labels={"cat": 1, "dog": 0, "owl": 2}))
    for level in ("files", "pixels"):
        found = lines(plain, level)
        shards = [line for line in found if ".tfrecord, record " in line]
        assert len(shards) == 8
        assert all(line.startswith(("train-0000", "test-0000")) for line in shards)
        assert (
            sum("class 'cat' has the id 0 here and 1 in recordmill.json" in line for line in shards)
            == 4
        )
        assert (
            sum("class 'dog' has the id 1 here and 0 in recordmill.json" in line for line in shards)
            == 4
        )
        assert [line for line in found if line not in shards] == [
            "recordmill.json: it contradicts itself: labels does not match its settings",
            f"labels.txt: {DIFFERS}",
            f"image.class.label.labels.txt: {DIFFERS}",
        ]
    assert lines(plain, "frames") == []


@pytest.mark.parametrize("convention", ["keras", "tfrecorder"])
def test_swapped_labels_where_records_have_ids_or_names_alone(tmp_path, convert, convention):
    folder = convert(tmp_path, f"--set=convention={convention}")
    assert lines(folder, "pixels") == []
    stated = json.loads((folder / "recordmill.json").read_bytes())["labels"]
    change_marker(
        folder,
        lambda marker: marker.update(labels={**stated, "cat": stated["dog"], "dog": stated["cat"]}),
    )
    for level in ("files", "pixels"):
        found = [line for line in lines(folder, level) if ", record " in line]
        assert len(found) >= 4
        assert all("in the sidecar class '" in line for line in found)


def test_swapped_labels_of_boxes_contradict_every_label_map(ours):
    def swap(marker):
        labels = marker["labels"]
        labels["cat"], labels["dog"] = labels["dog"], labels["cat"]

    change_marker(ours, swap)
    assert [line for line in lines(ours) if ", record " not in line] == [
        "recordmill.json: it contradicts itself: labels does not match its settings",
        f"labels.txt: {DIFFERS}",
        f"label_map.pbtxt: {DIFFERS}",
        f"image.object.class.label.labels.txt: {DIFFERS}",
    ]


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("convention", ["tf_object_detection", "tfds"])
def test_swapped_labels_of_boxes_contradict_the_records(
    tmp_path, convert_boxed, convention, compression
):
    settings = (f"convention={convention}", f"compression={compression}")
    folder = convert_boxed(tmp_path, *(f"--set={each}" for each in settings))
    for level in ("files", "pixels"):
        assert lines(folder, level) == []
    maps = [path for path in folder.iterdir() if "label" in path.name]
    assert maps

    def forge(marker):
        labels = marker["labels"]
        swapped = {**labels, "cat": labels["dog"], "dog": labels["cat"]}
        marker["labels"] = dict(sorted(swapped.items(), key=lambda each: each[1]))
        for path in maps:
            text = path.read_text().replace("cat", "\0").replace("dog", "cat").replace("\0", "dog")
            path.write_text(text)
            marker["run"]["digests"][path.name] = hashlib.sha256(text.encode()).hexdigest()

    change_marker(folder, forge)
    for level in ("files", "pixels"):
        found = [line for line in lines(folder, level) if ", record " in line]
        assert len(found) >= 2
        assert all("has the id" in line and "in recordmill.json" in line for line in found)


def test_a_marker_whose_labels_or_digests_are_none_is_one_sentence(plain):
    for change in (
        {"labels": ["cat"]},
        {"labels": {"cat": "0"}},
        {"run": {"digests": []}},
        {"run": 3},
    ):
        kept = (plain / "recordmill.json").read_bytes()
        change_marker(plain, lambda marker, change=change: marker.update(change))
        with pytest.raises(LoadError, match=r"recordmill\.json cannot be understood: "):
            open_dataset(str(plain))
        (plain / "recordmill.json").write_bytes(kept)
