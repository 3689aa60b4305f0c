"""The page of `recordmill view` in a real browser."""

import json
import shlex
import shutil
import subprocess

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: make test-browser")

from axe_playwright_python.sync_playwright import Axe

from tests.browser.conftest import HUGE, PHONE, RECORDMILL, WIDE

DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Waits until the page has drawn what a scroll shows."""


def test_the_address_has_the_query_and_no_token(shapes, visit):
    with visit(shapes, "shapes") as visited:
        page = visited.page
        assert "token" not in page.url
        page.fill("#query", "class=circle split=test")
        visited.wait_for_count("2 images")
        assert page.url.endswith("/?q=class%3Dcircle+split%3Dtest")
        page.reload()
        visited.wait_for_count("2 images")
        assert page.input_value("#query") == "class=circle split=test"


@pytest.mark.parametrize("size", [WIDE, PHONE, HUGE])
def test_the_grid_scrolls_from_the_first_image_to_the_last(shapes, visit, size):
    with visit(shapes, "shapes", size=size) as visited:
        page, seen = visited.page, set()
        for _ in range(200):
            seen |= {key for key in visited.shown_keys() if "/" in key}
            assert page.eval_on_selector_all("#space *", "nodes => nodes.length") <= 200
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= size[0]
            at_end = page.evaluate(
                "() => { const grid = document.getElementById('grid'); const before = "
                "grid.scrollTop; grid.scrollTop += grid.clientHeight; return grid.scrollTop === "
                "before; }"
            )
            page.evaluate(DRAWN)
            page.wait_for_function("() => !document.querySelector('.cell[data-number=\"\"]')")
            if at_end:
                break
        assert len(seen) == 250


def test_filters_show_counts_and_write_the_query(shapes, visit):
    with visit(shapes, "shapes") as visited:
        page = visited.page
        facet = page.locator("label.value", has_text="hexagon")
        assert facet.locator(".number").inner_text() == "41"
        facet.locator("input").check()
        visited.wait_for_count("41 images")
        assert page.input_value("#query") == "class=hexagon"
        page.locator("label.value", has_text="circle").locator("input").check()
        visited.wait_for_count("85 images")
        page.fill("#query", "clas=cat")
        page.wait_for_selector("#problem:not(:empty)")
        assert page.inner_text("#problem") == "there is no 'clas': did you mean class?"
        page.fill("#query", "text~hexagon_07")
        visited.wait_for_count("1 image")
        page.wait_for_selector(".cell[data-number]")
        assert visited.shown_keys() == ["hexagon/hexagon_07.jpg"]


def test_everything_can_be_reached_by_keyboard(shapes, visit):
    with visit(shapes, "shapes") as visited:
        page = visited.page
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.get_attribute("#grid", "aria-activedescendant") == "cell-2"
        page.keyboard.press("Enter")
        page.wait_for_selector("#facts dl")
        third = page.inner_text("#image-key")
        page.keyboard.press("ArrowRight")
        page.wait_for_function(
            "key => !['', key].includes(document.getElementById('image-key').textContent)",
            arg=third,
        )
        assert "image=3" in page.url
        page.keyboard.press("Escape")
        page.wait_for_selector("#image", state="hidden")
        assert page.evaluate("document.activeElement.id") == "grid"
        assert page.get_attribute("#grid", "aria-activedescendant") == "cell-3"
        page.keyboard.press("End")
        page.wait_for_selector("#cell-249")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "query"


def test_boxes_are_drawn_with_names_that_stay_text(ships, visit):
    with visit(ships, "ships") as visited:
        page = visited.page
        page.fill("#query", "objects=2")
        page.wait_for_function("() => document.querySelectorAll('.cell').length === 3")
        page.focus("#grid")
        page.keyboard.press("Enter")
        page.wait_for_selector("#shapes rect")
        assert page.eval_on_selector_all(".tag", "tags => tags.map((tag) => tag.textContent)") == [
            "<img src=x onerror=alert(1)>",
            "a\ufffdb",
        ]
        assert page.locator("#shapes rect").count() == 4  # each has a dark edge
        page.locator("#facts label", has_text="<img").locator("input").uncheck()
        assert page.locator("#shapes rect").count() == 2
        page.locator("#facts label", has_text="boxes").locator("input").uncheck()
        assert page.locator("#shapes rect").count() == 0


def test_faults_are_shown_with_their_pictures(ships, visit):
    with visit(ships, "ships", "--source", "input") as visited:
        page = visited.page
        page.click("#open-wrong")
        page.wait_for_selector("#findings details")
        titles = page.eval_on_selector_all(
            "#findings summary", "all => all.map((s) => s.innerText)"
        )
        assert titles == [
            "truncated (1)",
            "Images with the same bytes (1)",
            "Dropped boxes: empty (3)",
            "Images with dropped objects (3)",
            "Images without objects (7)",
            "Smallest and largest objects of a class",
        ]
        page.locator("#findings summary", has_text="truncated").click()
        page.wait_for_function(
            "() => { const shown = document.querySelector('#findings img');"
            " return shown.complete && shown.naturalWidth > 0; }"
        )
        page.locator("#findings summary", has_text="Dropped boxes").click()
        page.wait_for_selector("#findings figure svg rect")
        assert page.locator("#findings figure svg rect[stroke-dasharray]").count() == 6
        page.locator("#findings figure button", has=page.locator("svg")).first.click()
        page.wait_for_selector("#shapes rect[stroke-dasharray]")
        assert page.locator("#tags .tag").inner_text() == "ship: empty"
        page.click("#close")
        page.locator("#findings summary", has_text="without objects").click()
        page.locator("#findings details[open] button", has_text="Show them").click()
        visited.wait_for_count("7 images")


def records_of(folder):
    """The digest of each record, and its class, by its key."""
    rows = {}
    for sidecar in folder.glob("sidecars/*.jsonl"):
        for line in sidecar.read_text().splitlines():
            row = json.loads(line)
            if "record" in row:
                rows[row["key"]] = row["record"], row["class"]
    return rows


def test_marks_change_the_dataset_and_nothing_else(shapes, visit, tmp_path):
    shutil.copytree(shapes, tmp_path / "shapes", symlinks=True)
    folder = tmp_path / "shapes"
    before = records_of(folder / "shapes")
    with visit(folder, "shapes") as visited:
        page = visited.page
        page.fill("#query", "class=circle text~circle_0")
        visited.wait_for_count("10 images")
        page.wait_for_function("() => document.querySelectorAll('.cell img[src]').length === 10")
        page.focus("#grid")
        page.keyboard.press(" ")
        page.click("#all")
        page.click("#exclude")
        page.wait_for_function(
            "() => document.querySelectorAll('[data-mark=excluded]').length === 10"
        )
        page.fill("#query", "text~hexagon_11")
        visited.wait_for_count("1 image")
        page.wait_for_selector(".cell img[src]")
        page.focus("#grid")
        page.keyboard.press(" ")
        page.select_option("#class", "octagon")
        page.click("#correct")
        page.wait_for_selector("[data-mark=corrected]")
        page.click("#marked")
        assert page.inner_text("#marked") == "10 images to exclude, 1 image to get another class"
        words = shlex.split(page.inner_text("#command"))
    assert words[0] == "recordmill"
    ended = subprocess.run(
        [str(RECORDMILL), *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    after = records_of(folder / "shapes")
    gone = {f"circle/circle_0{number}.jpg" for number in range(10)}
    assert before.keys() - after.keys() == gone
    assert {key for key in after if after[key] != before[key]} == {"hexagon/hexagon_11.jpg"}
    assert after["hexagon/hexagon_11.jpg"][1] == "octagon"
    with visit(folder, "shapes") as visited:
        visited.wait_for_count("240 images")


def show_grid(page):
    page.wait_for_selector("#facets label", state="attached")


def show_selection(page):
    page.focus("#grid")
    page.keyboard.press(" ")
    page.keyboard.press("x")
    page.wait_for_selector("[data-mark=excluded]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    page.click("#marked")


def show_nothing(page):
    page.fill("#query", "width<1")
    page.wait_for_function("() => !document.querySelector('.cell')")


def show_problem(page):
    page.fill("#query", "width<wide")
    page.wait_for_selector("#problem:not(:empty)")


def show_image(page):
    page.fill("#query", "objects=2")
    page.wait_for_function("() => document.querySelectorAll('.cell').length === 3")
    page.focus("#grid")
    page.keyboard.press("Enter")
    page.wait_for_selector("#shapes rect")


def show_faults(page):
    page.click("#open-wrong")
    page.wait_for_selector("#findings details")
    for summary in page.query_selector_all("#findings summary"):
        summary.click()


VIEWS = [show_grid, show_selection, show_nothing, show_problem, show_image, show_faults]


@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (PHONE, "dark"), (HUGE, "dark")])
@pytest.mark.parametrize("show", VIEWS, ids=lambda show: show.__name__)
def test_each_view_is_accessible(ships, visit, tmp_path, show, size, theme):
    marks = ["--exclude", str(tmp_path / "gone.txt")]
    with visit(ships, "ships", *marks, "--source", "input", size=size, theme=theme) as visited:
        show(visited.page)
        found = Axe().run(visited.page).response["violations"]
        assert {each["id"]: [node["html"] for node in each["nodes"]] for each in found} == {}
        assert visited.page.evaluate("document.documentElement.scrollWidth") <= size[0]
