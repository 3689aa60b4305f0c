"""What the page says went wrong."""

import io
import json
import os

import pytest
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture(scope="module")
def odd(tmp_path_factory, draw, eager_pipeline, cheap_fsync, converting):
    """A dataset of photos, one of which is there twice and two of which are rejected, and the
    photos."""
    root = tmp_path_factory.mktemp("odd") / "photos"
    for label in ("cat", "dog"):
        (root / label).mkdir(parents=True)
        for number in range(3):
            (root / label / f"{number}.jpg").write_bytes(draw((label, number)))
    (root / "dog/copy.jpg").write_bytes(draw(("cat", 0)))
    (root / "cat/cut.jpg").write_bytes(draw("cut", (200, 200))[:900])
    (root / "cat/text.jpg").write_bytes(b"no picture")
    whole = {"splits": {"fractions": {"all": 1.0}}, "report": False}
    return converting(root, root.parent / "dataset", **whole), root


def test_rejected_files_and_duplicates_are_listed(odd, serving):
    dataset, _ = odd
    with serving(str(dataset)) as browser:
        browser.enter()
        found = browser.rows(part="findings")
        cells = browser.rows(part="images", first=0, count=20)["images"]
    reasons = {each["reason"]: each for each in found["rejected"]}
    assert sorted(reasons) == ["truncated", "unknown_format"]
    assert [each["key"] for each in reasons["truncated"]["files"]] == ["cat/cut.jpg"]
    assert (reasons["truncated"]["count"], reasons["truncated"]["flag"]) == (1, None)
    assert reasons["truncated"]["meaning"] == "the data ends before the image is complete"
    ((group,),) = [found["duplicates"]]
    numbers = {each["key"]: each["number"] for each in cells}
    assert {each["key"]: each["image"] for each in group["images"]} == {
        key: numbers[key] for key in ("cat/0.jpg", "dog/copy.jpg")
    }
    assert (found["bare"], found["dropped"]) == (None, 0)


def test_sources_are_shown_only_below_the_folders_that_are_named(odd, serving, tmp_path):
    dataset, root = odd
    with serving(str(dataset)) as browser:
        browser.enter()
        assert not browser.rows(part="about")["has_sources"]
        assert browser.ask("/picture?image=0&source=1")[0] == 400
    with serving(str(dataset), sources=(str(tmp_path), str(root))) as browser:
        browser.enter()
        browser.rows(part="findings")
        _, headers, content = browser.ask("/picture?reason=truncated&place=0")
        assert content == (root / "cat/cut.jpg").read_bytes()
        assert headers["Content-Type"] == "image/jpeg"
        assert browser.ask("/picture?reason=unknown_format&place=0")[0] == 422
        assert browser.ask("/picture?reason=truncated&place=1")[0] == 400
        (image,) = browser.rows(part="images", q="text~copy", first=0, count=2)["images"]
        source = browser.ask(f"/picture?image={image['number']}&source=1")[2]
        assert source == (root / "dog/copy.jpg").read_bytes()


def test_a_run_that_failed_shows_what_it_rejected(odd, serving, tmp_path):
    _, root = odd
    output = tmp_path / "dataset"
    limits = ["--set=max_rejected.count=0", "--set=max_rejected.share=0", "--set=report=false"]
    assert launch([f"--input={root}", f"--output={output}", *limits], build) == 3
    with serving(str(output)) as browser:
        browser.enter()
        facts = browser.rows(part="about")
        found = browser.rows(part="findings")
        cells = browser.rows(part="images", first=0, count=20)
    assert facts["kind"] == "the unfinished work of a run"
    assert sorted(each["reason"] for each in found["rejected"]) == ["truncated", "unknown_format"]
    assert cells["total"] == 7


@pytest.mark.parametrize("key", ["../secret.jpg", "/etc/hostname", "link/secret.jpg", "a//b", ""])
def test_a_key_leads_to_nothing_outside_the_folder(tmp_path, key):
    from recordmill.schemas.errors import LoadError
    from recordmill.viewing.source_folders import SourceFolders

    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (tmp_path / "photos").mkdir()
    os.symlink(tmp_path, tmp_path / "photos/link")
    with pytest.raises(LoadError, match="no folder of --source has"):
        SourceFolders((str(tmp_path / "photos"),)).read(key)


def test_objects_are_found_by_size(boxes, serving):
    with serving(str(boxes)) as browser:
        browser.enter()
        found = browser.rows(part="sizes", **{"class": "ship"})
        findings = browser.rows(part="findings")
        cells = {
            each["number"]: each["key"]
            for each in browser.rows(part="images", first=0, count=9)["images"]
        }
    assert (found["read"], found["images"]) == (2, 2)
    smallest = [(cells[each["image"]], round(each["share"], 6)) for each in found["smallest"]]
    assert smallest == [("images/1.jpg", 0.08), ("images/2.jpg", 0.25)]
    assert found["largest"] == found["smallest"][::-1]
    assert (findings["bare"], findings["dropped"]) == (2, 1)


def test_a_damaged_list_gets_a_sentence(odd, serving, tmp_path, tree):
    dataset, _ = odd
    for name, content in tree(dataset).items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(content)
    (tmp_path / "copy/rejected.jsonl").write_text('{"reason": "truncated"}\n')
    with serving(str(tmp_path / "copy")) as browser:
        browser.enter()
        status, _, content = browser.ask("/rows?part=findings")
    assert status == 400
    assert json.loads(content)["error"].startswith(f"a list of {tmp_path / 'copy'} is damaged: ")


def test_pictures_of_formats_that_browsers_lack_are_converted(tmp_path, serving, converting):
    (tmp_path / "photos/cat").mkdir(parents=True)
    Image.new("RGB", (30, 20), "red").save(tmp_path / "photos/cat/a.tif")
    whole = {"splits": {"fractions": {"all": 1.0}}, "report": False}
    dataset = converting(tmp_path / "photos", tmp_path / "dataset", **whole)
    with serving(str(dataset), sources=(str(tmp_path / "photos"),)) as browser:
        browser.enter()
        _, headers, _ = browser.ask("/picture?image=0&source=1")
    assert headers["Content-Type"] == "image/png"


def test_near_duplicates_are_listed_with_their_splits_and_distance(
    serving, tmp_path, draw, converting
):
    for number in range(6):
        (tmp_path / "photos/cat").mkdir(parents=True, exist_ok=True)
        content = draw(("cat", number), (96, 72))
        (tmp_path / f"photos/cat/{number}.jpg").write_bytes(content)
        with Image.open(io.BytesIO(content)) as image:
            image.resize((48, 36)).save(tmp_path / f"photos/cat/{number}-small.jpg", quality=90)
    halves = {"splits": {"fractions": {"train": 0.5, "test": 0.5}}, "report": False}
    settings = {**halves, "images__near_duplicates": True}
    dataset = converting(tmp_path / "photos", tmp_path / "dataset", **settings)
    with serving(str(dataset)) as browser:
        browser.enter()
        found = browser.rows(part="findings")["duplicates"]
        cells = browser.rows(part="images", first=0, count=20)["images"]
    assert {each["kind"] for each in found} == {"look_alike"}
    pairs = [sorted(each["key"] for each in group["images"]) for group in found]
    assert sorted(pairs) == [[f"cat/{n}-small.jpg", f"cat/{n}.jpg"] for n in range(6)]
    crossing = [len({each["split"] for each in group["images"]}) for group in found]
    assert crossing == sorted(crossing, reverse=True)
    assert crossing[0] == 2
    assert all(group["distance"] <= 5 for group in found)
    numbers = {each["key"]: each["number"] for each in cells}
    assert all(each["image"] == numbers[each["key"]] for group in found for each in group["images"])
