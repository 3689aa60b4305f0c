"""Recordmill's datasets, as they are, and other people's TFRecords, in which only the records say
what they are."""

import errno
import hashlib
import json
import os
import shutil

import pytest

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.pipeline.verify import main
from recordmill.reading.dataset import open_dataset
from recordmill.reading.find_excluded import MOST_FINDINGS, find_excluded
from recordmill.schemas.rejection import Exclusions
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

NAME = "cat/removed & gone.jpg"
CONTENT = encode_picture("removed", (64, 48))
DIGEST = hashlib.sha256(CONTENT).hexdigest()
KEYS, DIGESTS = Exclusions(frozenset({NAME})), Exclusions(digests=frozenset({DIGEST}))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A dataset with an image that must go, twice: its report shows it."""
    root = tmp_path_factory.mktemp("excluded")
    (root / "photos" / "cat").mkdir(parents=True)
    for number in range(3):
        (root / "photos/cat" / f"{number}.jpg").write_bytes(encode_picture(number))
    (root / "photos" / NAME).write_bytes(CONTENT)
    (root / "photos/cat/copy.jpg").write_bytes(CONTENT)
    places = [f"--input={root / 'photos'}", f"--output={root / 'dataset'}"]
    assert launch([*places, "--set=splits.fractions={all: 1.0}"], build) == 0
    return root / "dataset"


def places(folder, exclusions):
    return {
        (each.kind, each.shard, each.detail)
        for each in find_excluded(open_dataset(str(folder)), exclusions)
    }


SHARD = "all-00000-of-00001.tfrecord"


def test_a_key_is_found_wherever_it_is(dataset):
    found = places(dataset, KEYS)
    assert {kind for kind, _, _ in found} == {"excluded"}
    assert {name for _, name, _ in found} >= {
        f"sidecars/{SHARD}.jsonl",
        "duplicates.jsonl",
        "records.index",
    }
    assert (
        "excluded",
        "records.index",
        f"the index holds the hash of key:{NAME}, which must not be there",
    ) in found


def test_a_digest_is_found_in_records_and_lists(dataset):
    found = places(dataset, DIGESTS)
    assert (
        "excluded",
        SHARD,
        f"the record holds the image sha256:{DIGEST}, which must not be there",
    ) in found
    assert {name for _, name, _ in found} >= {SHARD, f"sidecars/{SHARD}.jsonl", "duplicates.jsonl"}
    records = [
        each for each in find_excluded(open_dataset(str(dataset)), DIGESTS) if each.shard == SHARD
    ]
    assert len({each.record for each in records}) == 2


def test_parts_of_names_and_unknown_digests_are_not_found(dataset):
    names = frozenset({"cat/0", "at/0.jpg", "cat/0.jp", "é"})
    assert places(dataset, Exclusions(names, frozenset({"0" * 64}))) == set()


def test_the_digest_of_an_empty_file_is_not_found_where_a_list_of_the_dataset_is_empty(dataset):
    digest = hashlib.sha256(b"").hexdigest()
    assert (dataset / "rejected.jsonl").read_bytes() == b""
    assert digest in (dataset / "recordmill.json").read_text()
    assert places(dataset, Exclusions(digests=frozenset({digest}))) == set()


def test_pages_and_texts_are_searched(dataset, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(dataset, copy)
    (copy / "report.html").write_text("<p>cat/removed &amp; gone.jpg</p>", encoding="utf-8")
    (copy / "README.md").write_text("- such as cat/removed & gone\\.jpg, which", encoding="utf-8")
    found = {name for _, name, _ in places(copy, KEYS)} - {
        name for _, name, _ in places(dataset, KEYS)
    }
    assert found | {"report.html"} == {"report.html", "README.md"}
    (copy / "report.html").write_text(
        "<p>cat/removed &amp; gone.jpg.jpg and 1cat/removed &amp; gone.jpg</p>"
    )
    assert "report.html" not in {name for _, name, _ in places(copy, KEYS)}


def test_other_versions_and_unfinished_work_are_searched(dataset, tmp_path):
    shutil.copytree(dataset, tmp_path / "versions")
    shutil.copytree(dataset, tmp_path / "versions" / "one")
    shutil.copytree(dataset, tmp_path / "versions" / ".staging-2")
    (tmp_path / "versions" / ".staging-2" / "recordmill.json").unlink()
    found = {name for _, name, _ in places(tmp_path / "versions", DIGESTS)}
    assert {f"one/{SHARD}", f".staging-2/{SHARD}", f"one/sidecars/{SHARD}.jsonl"} <= found


def test_files_without_a_dataset_are_searched_by_their_records(dataset, tmp_path):
    shutil.copy(dataset / SHARD, tmp_path / "some.tfrecord")
    assert {name for _, name, _ in places(tmp_path / "some.tfrecord", DIGESTS)} == {"some.tfrecord"}


def test_more_places_than_can_be_read_are_counted(dataset, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(dataset, copy)
    (copy / "rejected.jsonl").write_text((json.dumps({"key": NAME}) + "\n") * (MOST_FINDINGS + 5))
    found = [
        each
        for each in find_excluded(open_dataset(str(copy)), KEYS)
        if each.shard == "rejected.jsonl"
    ]
    assert (len(found), found[-1].kind, found[-1].detail) == (
        MOST_FINDINGS + 1,
        "more",
        "5 further places",
    )


def test_the_command_fails_while_anything_is_there(dataset, tmp_path, capsys):
    listed = tmp_path / "removed.txt"
    listed.write_text(f"# on request\nsha256:{DIGEST}\n", encoding="utf-8")
    assert main([str(dataset), f"--absent={listed}", "--json"]) == 1
    line = json.loads(capsys.readouterr().out)
    assert {finding["kind"] for finding in line["findings"]} == {"excluded"}
    listed.write_text("key:nothing\n", encoding="utf-8")
    assert main([str(dataset), f"--absent={listed}"]) == 0
    listed.write_text("nothing\n", encoding="utf-8")
    assert main([str(dataset), f"--absent={listed}", "--json"]) == 2
    sentence = json.loads(capsys.readouterr().out.splitlines()[-1])["message"]
    assert (
        sentence
        == f"--absent: {listed} cannot be used: line 1 is 'nothing': write key:KEY, or sha256: and "
        "64 hex digits"
    )


def test_a_folder_that_cannot_be_read_is_not_passed_over(dataset, tmp_path, monkeypatch, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(dataset, copy)
    (copy / "own").mkdir()
    (tmp_path / "list").write_text("key:nothing\n")
    scandir = os.scandir

    def refuse(path):
        if str(path).endswith("/own"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert main([str(copy), f"--absent={tmp_path / 'list'}", "--json"]) == 1
    sentence = json.loads(capsys.readouterr().out.splitlines()[-1])["message"]
    assert sentence == f"{copy}/own cannot be read: permission denied"


def test_a_local_folder_is_searched_without_beam(dataset, tmp_path, run_python):
    (tmp_path / "list").write_text(f"key:{NAME}\n")
    code = (
        "import sys; from recordmill.pipeline.verify import main; main(); print('apache_beam' in "
        "sys.modules)"
    )
    process = run_python(code, dataset, "--absent", tmp_path / "list")
    assert "which must not be there" in process.stderr
    assert process.stdout.splitlines()[-1] == "False"
