import base64
import io
import json

import numpy as np
import pytest
from PIL import Image

from recordmill.annotations.shapes import color_of_class
from recordmill.viewing.source_folders import SourceFolders
from recordmill.viewing.viewed_dataset import open_viewed
from recordmill.viewing.viewer import Viewer

STATUS = {"q": "", "sort": "", "first": 0, "count": 50, "part": "images"}


def test_the_printed_address_works_once_and_leaves_no_token(classes, serving):
    with serving(str(classes)) as first:
        path = first.server.address.partition(str(first.server.server_port))[2]
        status, headers, page = first.ask(path)
        assert status == 200
        assert headers["Set-Cookie"].endswith("; HttpOnly; SameSite=Strict; Path=/")
        assert b"token" not in page
        assert b'content="0; url=/"' in page
        first.cookie = headers["Set-Cookie"].partition(";")[0]
        assert first.ask(path)[0] == 200  # the browser that has the cookie already
        first.cookie = ""
        assert first.ask(path)[0] == 403
        assert first.ask("/?token=wrong")[0] == 403


def test_the_query_of_the_printed_address_is_kept(classes, serving):
    with serving(str(classes)) as browser:
        path = browser.server.address.partition(str(browser.server.server_port))[2]
        page = browser.ask(f"{path}&q=class%3Dcat%22")[2]
    assert b'url=/?q=class%3Dcat%22"' in page


@pytest.mark.parametrize("path", ["/", "/rows?part=about", "/picture?image=0", "/elsewhere"])
def test_nothing_is_answered_without_the_cookie(browse, path):
    cookie, browse.cookie = browse.cookie, ""
    statuses = {browse.ask(path, {"Cookie": each})[0] for each in ("a=b", cookie[:-1], "=;")}
    browse.cookie = cookie
    assert statuses == {403}
    assert browse.ask(path)[0] == (404 if path == "/elsewhere" else 200)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.com"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://example.com"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
    ],
)
def test_other_hosts_and_origins_are_refused(browse, headers):
    assert browse.ask("/rows?part=about", headers)[0] == 403


def test_the_page_forbids_everything_that_it_does_not_bring(browse):
    status, headers, page = browse.ask("/")
    policy = headers["Content-Security-Policy"]
    assert status == 200
    assert policy.startswith("default-src 'none'; script-src 'nonce-")
    assert "unsafe" not in policy
    nonce = policy.partition("nonce-")[2].partition("'")[0]
    assert page.count(f'nonce="{nonce}"'.encode()) == 2
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert browse.ask("/")[1]["Content-Security-Policy"] != policy


def test_names_from_data_are_escaped_in_the_page(classes, tmp_path, serving):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    folder.symlink_to(classes)
    with serving(str(folder)) as browser:
        browser.enter()
        page = browser.ask("/")[2].decode()
    assert "<img src=x" not in page
    assert '<h1 id="title">&lt;img src=x onerror=alert(1)&gt;</h1>' in page


def test_images_are_selected_sorted_and_counted(browse):
    found = browse.rows(**{**STATUS, "q": "class%3Dcat%20split%3Dtrain", "sort": "-key"})
    assert found["is_selected"]
    keys = [each["key"] for each in found["images"]]
    assert keys == sorted(keys, reverse=True)
    assert {key.partition("/")[0] for key in keys} == {"cat"}
    assert found["total"] == len(keys)
    # A name's counts are those of images that meet the conditions on other names.
    assert found["counts"]["class"] == {"cat": len(keys), "dog": 4 - len(keys)}
    assert found["counts"]["split"] == {"train": len(keys), "test": 5 - len(keys)}
    assert found["counts"]["changed"] == {"nothing": len(keys)}
    assert found["counts"]["marked"] == {"nothing": len(keys)}


def test_a_part_of_the_images_is_answered(browse):
    whole = browse.rows(**STATUS)["images"]
    assert [each["number"] for each in whole] == list(range(10))
    assert browse.rows(**{**STATUS, "first": 4, "count": 3})["images"] == whole[4:7]
    assert browse.rows(**{**STATUS, "first": 400})["images"] == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/rows", "the request is malformed"),
        ("/rows?part=secrets", "the request is malformed"),
        ("/rows?part=images&first=-1&count=1", "the request is malformed"),
        ("/picture?image=../../etc/passwd", "the request is malformed"),
        ("/picture?image=99", "there is no image 99: reload the page"),
        ("/rows?part=image&image=99", "there is no image 99: reload the page"),
        (
            "/rows?part=images&first=0&count=1&q=clas%3Dcat",
            "there is no 'clas': did you mean class?",
        ),
    ],
)
def test_wrong_requests_get_a_sentence(browse, path, message):
    status, _, content = browse.ask(path)
    assert (status, json.loads(content)) == (400, {"error": message})


def test_small_pictures_are_jpegs_and_large_ones_are_as_stored(browse, tmp_path):
    number = browse.rows(**{**STATUS, "q": "text~cat/04"})["images"][0]["number"]
    _, headers, small = browse.ask(f"/picture?image={number}")
    assert headers["Content-Type"] == "image/jpeg"
    (tmp_path / "small.jpg").write_bytes(small)
    with Image.open(tmp_path / "small.jpg") as picture:
        assert picture.size == (56, 32)
    _, headers, large = browse.ask(f"/picture?image={number}&large=1")
    viewed = browse.server.viewer.viewed
    assert headers["Content-Type"] == "image/jpeg"
    assert large in viewed.records.read(number)


def test_an_image_is_shown_with_its_features_and_shapes(boxes, serving):
    with serving(str(boxes)) as browser:
        browser.enter()
        number = browser.rows(**{**STATUS, "q": "objects%3D2"})["images"][0]["number"]
        shown = browser.rows(part="image", image=number)
        facts = browser.rows(part="about")
    assert (facts["kinds"], facts["labels"]) == (["boxes"], {"ship": 1, "<img onerror>": 2})
    assert shown["cell"]["key"] == "images/2.jpg"
    assert [each["class_name"] for each in shown["shapes"]] == ["<img onerror>", "ship"]
    assert shown["shapes"][1]["sides"] == [0.5, 0.5, 1, 1]
    assert shown["shapes"][1]["color"] == color_of_class(1)
    kinds = {each["key"]: (each["kind"], each["length"]) for each in shown["features"]}
    assert kinds["image/encoded"] == ("bytes", 1)
    assert kinds["image/object/bbox/xmin"] == ("float", 2)


def test_a_server_needs_no_complete_table(classes):
    viewer = Viewer(open_viewed(str(classes)), None, "no files are named", SourceFolders())
    page = viewer.list_images("", "", 3, 4)
    assert (page.total, page.is_selected) == (10, False)
    assert [each.number for each in page.images] == [3, 4, 5, 6]
    assert viewer.small_picture(9).media_type == "image/jpeg"


@pytest.fixture(scope="module")
def outlines(tmp_path_factory, converting):
    """A dataset of one image with a cat: its box, its mask, and two of its three key points."""
    folder = tmp_path_factory.mktemp("outlines")
    Image.new("RGB", (40, 20), (90, 90, 90)).save(folder / "1.jpg")
    cat = {"id": 1, "name": "cat", "keypoints": ["nose", "tail", "paw"]}
    points = [10, 5, 2, 20, 10, 1, 0, 0, 0]
    outline = {"segmentation": [[10, 5, 30, 5, 30, 15, 10, 15]], "bbox": [10, 5, 20, 10]}
    one = {"id": 1, "image_id": 1, "category_id": 1, "keypoints": points, "iscrowd": 0, **outline}
    image = {"id": 1, "file_name": "1.jpg", "width": 40, "height": 20}
    content = {"images": [image], "annotations": [one], "categories": [cat]}
    (folder / "instances_train.json").write_text(json.dumps(content))
    settings = {"source__kind": "coco", "source__images": "", "convention": "tf_object_detection"}
    settings |= {"masks": "png", "splits__fractions": {"train": 1.0}}
    return converting(folder, tmp_path_factory.mktemp("outlined") / "out", **settings)


def test_outlines_and_points_of_objects_are_sent_to_be_drawn(outlines, serving):
    with serving(str(outlines)) as browser:
        browser.enter()
        assert browser.rows(**STATUS)["total"] == 1
        shown = browser.rows(part="image", image=0)
    shapes = {each["kind"]: each for each in shown["shapes"]}
    assert {each["class_name"] for each in shapes.values()} == {"cat"}
    assert shapes["boxes"]["sides"] == [0.25, 0.25, 0.75, 0.75]
    assert shapes["keypoints"]["points"] == [[0.25, 0.25, True], [0.5, 0.5, False]]
    layer = base64.b64decode(shapes["masks"]["layer"].removeprefix("data:image/png;base64,"))
    alpha = np.asarray(Image.open(io.BytesIO(layer)).convert("RGBA"))[..., 3]
    assert alpha.shape == (20, 40)
    assert np.count_nonzero(alpha) == np.count_nonzero(alpha[5:15, 10:30]) == 200
