"""Marks: what they write, and that the command that is shown does what they say."""

import json
import os
import shlex

import numpy as np
import pytest
from PIL import Image

from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.reading.dataset import open_dataset
from recordmill.schemas.errors import UsageError
from recordmill.viewing.marks import MarkFiles, choose_files, find_obstacle, refuse_classes

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


@pytest.fixture
def files(tmp_path):
    return MarkFiles(str(tmp_path / "gone.txt"), str(tmp_path / "classes.tsv"))


@pytest.fixture
def marking(classes, files, serving):
    """A browser that can mark cats and dogs."""
    with serving(str(classes), files) as browser:
        browser.enter()
        yield browser


@pytest.fixture(scope="module")
def segmented(tmp_path_factory, draw):
    """The folder of three images with semantic masks, and their dataset."""
    root = tmp_path_factory.mktemp("segmented")
    (root / "in/images").mkdir(parents=True)
    (root / "in/masks").mkdir()
    for number in range(3):
        (root / f"in/images/{number}.jpg").write_bytes(draw(number))
        Image.fromarray(np.full((16, 24), number, np.uint8)).save(root / f"in/masks/{number}.png")
    flags = ["--set=source.kind=image_masks", "--set=convention=deeplab", "--set=report=false"]
    assert launch([f"--input={root}/in", f"--output={root}/out", *flags], build) == 0
    return root / "in", root / "out"


def post(browser, request, origin="http://127.0.0.1:{port}"):
    headers = {"Origin": origin.format(port=browser.server.server_port)}
    status, _, content = browser.ask("/marks", headers, "POST", json.dumps(request))
    return status, json.loads(content) if content.startswith(b"{") else content


def number_of(browser, key):
    """The number of the image with a key."""
    (image,) = browser.rows(part="images", q=f"text~{key}", first=0, count=2)["images"]
    return image["number"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_marks_are_lines_of_the_two_files(marking, files, photos, sha256_of):
    cats = [number_of(marking, f"cat/0{each}.jpg") for each in range(3)]
    assert post(marking, {"action": "exclude", "images": cats[:2]})[0] == 200
    status, state = post(marking, {"action": "correct", "images": [cats[2]], "class_name": "dog"})
    assert (status, state["excluded"], state["corrected"]) == (200, 2, 1)
    assert read(files.exclude) == "key:cat/00.jpg\nkey:cat/01.jpg\n"
    digest = sha256_of(photos / "cat/02.jpg")
    assert read(files.corrections) == f"key\tsha256\tclass\ncat/02.jpg\t{digest}\tdog\n"
    shown = marking.rows(part="images", q="marked!%3Dnothing", sort="key", first=0, count=9)
    marks = [(each["key"], each["mark"], each["new_class"]) for each in shown["images"]]
    assert marks == [
        ("cat/00.jpg", "excluded", None),
        ("cat/01.jpg", "excluded", None),
        ("cat/02.jpg", "corrected", "dog"),
    ]


def test_marks_can_be_changed_and_removed(marking, files):
    number = number_of(marking, "cat/00.jpg")
    with open(files.exclude, "w") as file:
        file.write("# kept\nkey:other.jpg")
    post(marking, {"action": "exclude", "images": [number]})
    assert read(files.exclude) == "# kept\nkey:other.jpg\nkey:cat/00.jpg\n"
    _, state = post(marking, {"action": "correct", "images": [number], "class_name": "dog"})
    assert (state["excluded"], state["corrected"]) == (0, 1)
    assert read(files.exclude) == "# kept\nkey:other.jpg\n"
    _, state = post(marking, {"action": "clear", "images": [number]})
    assert (state["excluded"], state["corrected"], state["command"]) == (0, 0, "")
    assert read(files.corrections) == "key\tsha256\tclass\n"


def test_all_that_a_selection_matches_can_be_marked(marking, files):
    _, state = post(marking, {"action": "exclude", "query": "class=cat"})
    assert state["excluded"] == 5
    assert sorted(read(files.exclude).split()) == [f"key:cat/0{each}.jpg" for each in range(5)]


def test_marks_that_are_in_the_files_are_shown(classes, files, serving, photos, sha256_of):
    with open(files.exclude, "w") as file:
        file.write(f"sha256:{sha256_of(photos / 'dog/01.jpg')}\n")
    with open(files.corrections, "w") as file:
        file.write(f"key\tsha256\tclass\ndog/02.jpg\t{sha256_of(photos / 'dog/02.jpg')}\tcat\n")
        file.write(f"dog/03.jpg\t{'0' * 64}\tcat\n")
    with serving(str(classes), files) as browser:
        browser.enter()
        status, _, content = browser.ask("/marks")
        state = json.loads(content)
    assert (status, state["excluded"], state["corrected"]) == (200, 1, 1)


@pytest.mark.parametrize("line", ["key:masks/1.png", "sha256:{digest}"])
def test_images_whose_masks_are_excluded_are_shown(line, segmented, files, serving, sha256_of):
    source, dataset = segmented
    line = line.format(digest=sha256_of(source / "masks/1.png"))
    with open(files.exclude, "w") as file:
        file.write(f"{line}\n")
    with serving(str(dataset), files) as browser:
        browser.enter()
        shown = browser.rows(part="images", q="marked%3Dexcluded", first=0, count=9)
        assert [each["key"] for each in shown["images"]] == ["images/1.jpg"]
        status, answer = post(browser, {"action": "clear", "query": ""})
    assert (status, answer["error"]) == (
        400,
        "images/1.jpg is excluded by a line for masks/1.png: remove that line from "
        f"{files.exclude}, and start recordmill view again",
    )
    assert read(files.exclude) == f"{line}\n"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"action": "correct", "images": [0], "class_name": "bird"}, "there is no class 'bird'"),
        ({"action": "destroy", "images": [0]}, "the request is malformed"),
        ({"action": "exclude", "images": "all"}, "the request is malformed"),
        ({"action": "exclude", "query": "clas=cat"}, "there is no 'clas'"),
    ],
)
def test_wrong_marks_are_refused(marking, files, request_, message):
    status, answer = post(marking, request_)
    assert status == 400
    assert answer["error"].startswith(message)
    assert not os.path.exists(files.exclude)
    assert not os.path.exists(files.corrections)


@pytest.mark.parametrize("origin", ["http://example.com", "null", "http://127.0.0.1:1"])
def test_other_pages_cannot_mark(marking, origin):
    assert post(marking, {"action": "exclude", "images": [0]}, origin)[0] == 403


def test_a_request_to_mark_needs_an_origin_and_a_length(marking):
    assert marking.ask("/marks", {}, "POST", "{}")[0] == 403
    assert marking.ask("/marks", {"Content-Length": "99999999999"}, "POST", "{}")[0] == 400


def test_without_files_nothing_can_be_marked(browse):
    status, answer = post(browse, {"action": "exclude", "images": [0]})
    assert (status, answer) == (400, {"error": "images cannot be marked: no files are named"})


def test_the_command_makes_the_dataset_with_the_marks(
    photos, tmp_path, files, serving, capsys, monkeypatch
):
    output = tmp_path / "a folder" / "pets"
    settings = ["--set=splits.fractions={all: 1.0}", "--set=report=false"]
    assert launch([f"--input={photos}", f"--output={output}", *settings], build) == 0
    rows = {row.key: row for _, row in open_dataset(output).rows()}
    with serving(str(output), files) as browser:
        browser.enter()
        post(browser, {"action": "exclude", "images": [number_of(browser, "cat/00.jpg")]})
        number = number_of(browser, "dog/00.jpg")
        _, state = post(browser, {"action": "correct", "images": [number], "class_name": "cat"})
    words = shlex.split(state["command"])
    assert words[:2] == ["recordmill", "run"]
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert launch(words[2:], build) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["ledger"]["left_out"] == {"excluded": 1}
    assert line["ledger"]["corrections"] == {"corrected": 1, "stale": 0, "no_match": 0}
    after = {row.key: row for _, row in open_dataset(output).rows()}
    assert rows.keys() - after.keys() == {"cat/00.jpg"}
    assert (after["dog/00.jpg"].class_name, after["dog/00.jpg"].listed_class) == ("cat", "dog")
    same = [key for key in after if after[key].record == rows[key].record]
    assert len(same) == len(after) - 1
    # Marks that have been applied are no longer pending, and new ones are added to the same files.
    dataset = open_dataset(output)
    assert choose_files(dataset, "pets", None, None) == files
    with serving(str(output), files) as browser:
        browser.enter()
        state = json.loads(browser.ask("/marks")[2])
    assert (state["excluded"], state["corrected"]) == (0, 0)


def test_the_command_names_versions(photos, tmp_path, files, serving, capsys):
    output = tmp_path / "versions"
    flags = ["--versions", "--set=splits.fractions={all: 1.0}", "--set=report=false"]
    assert launch([f"--input={photos}", f"--output={output}", *flags], build) == 0
    with serving(str(output), files) as browser:
        browser.enter()
        _, state = post(browser, {"action": "exclude", "images": [0]})
    words = shlex.split(state["command"])
    assert words[words.index("--output") + 1] == str(output)
    assert "--versions" in words
    assert launch(words[2:], build) == 0
    assert len([each for each in output.iterdir() if each.is_dir()]) == 2


def test_a_list_that_is_gone_is_named(photos, tmp_path):
    (tmp_path / "removed.txt").write_text("key:cat/00.jpg\n")
    output = tmp_path / "pets"
    flags = [f"--set=exclude={tmp_path / 'removed.txt'}", "--set=splits.fractions={all: 1.0}"]
    assert launch([f"--input={photos}", f"--output={output}", *flags], build) == 0
    dataset = open_dataset(output)
    assert choose_files(dataset, "pets", None, None).exclude == str(tmp_path / "removed.txt")
    (tmp_path / "removed.txt").unlink()
    with pytest.raises(UsageError) as error:
        choose_files(dataset, "pets", None, None)
    assert str(error.value) == (
        f"the dataset was made with --set exclude={tmp_path / 'removed.txt'}, which is not in this "
        "folder: start recordmill view where it is, or name it with --exclude"
    )
    assert choose_files(dataset, "pets", str(tmp_path / "new.txt"), None).exclude.endswith(
        "new.txt"
    )


def test_what_cannot_be_made_again_has_no_marks(classes, boxes, tmp_path):
    assert find_obstacle(open_dataset(classes)) is None
    assert refuse_classes(open_dataset(classes)) is None
    assert refuse_classes(open_dataset(boxes)) == "these images have annotations: correct those"
    (shard, *_) = sorted(classes.glob("*.tfrecord"))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / shard.name).write_bytes(shard.read_bytes())
    assert find_obstacle(open_dataset(tmp_path / "files")).startswith("only datasets that")
