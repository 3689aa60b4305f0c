import io
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from make_settings import make_settings
from PIL import Image

from recordmill.schemas.dataset.annotation_counts import ImagesWithoutBoxes
from recordmill.schemas.dataset.marker import DuplicateCounts, Ledger, LookAlikes, NamedImages, SameBytes
from recordmill.schemas.dataset.shard_report import ShardReport
from recordmill.schemas.dataset.sidecar_row import RejectedRow, row_from_json
from recordmill.schemas.dataset.totals import AnnotationTotals, RowTotals
from recordmill.schemas.features import Feature
from recordmill.schemas.label_map import LabelMap
from recordmill.transforms.planning.plan import Plan
from recordmill.transforms.planning.splitting import SplitCutoffs
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.publishing.companions import StagedDataset
from recordmill.transforms.publishing.companions.remarks import find_remarks
from recordmill.transforms.publishing.companions.report import describe_report, show_name, show_percent
from recordmill.transforms.publishing.companions.stored_values import Column, StoredValues
from recordmill.transforms.publishing.duplicates import Duplicates, Found, Group
from recordmill.transforms.publishing.marker import build_marker, name_shards
from recordmill.transforms.publishing.statistics import Sidecar, Statistics, gather_statistics, list_sidecars
from recordmill.transforms.records.change_examples import ChangeExample
from tests.support.gather_reports import gather_reports

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></title><script>alert(1)</script>",
    "{{ 7 * 7 }}{% for x in y %}",
    "&lt;b&gt; &amp; \u202egnp.exe \x00\n\t",
]


class Page(HTMLParser):
    """What a browser would make of it: elements with their attributes, and the text outside styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "rect", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "path"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def check_harmless(self):
        assert self.open == []
        allowed = {"style", "title", "meta", "img", "svg", "rect", "path", "details", "summary", "bdi", "figure"}
        allowed |= {"html", "head", "body", "main", "header", "section", "footer", "div", "span", "p", "h1", "h2", "h3"}
        allowed |= {
            "ul",
            "li",
            "dl",
            "dt",
            "dd",
            "table",
            "tr",
            "td",
            "th",
            "b",
            "i",
            "br",
            "code",
            "pre",
            "small",
            "a",
        }
        assert {tag for tag, _ in self.elements} <= allowed | {"figcaption", "a"}
        for tag, attributes in self.elements:
            assert not [name for name in attributes if name.startswith("on") or name in ("srcdoc", "action")]
            assert attributes.get("href", "#").startswith("#")
            assert tag == "img" or "src" not in attributes
            assert attributes.get("src", "data:image/jpeg;base64,").startswith("data:image/jpeg;base64,")


@pytest.fixture
def page(say):
    """`page(dataset)`: the report, parsed and found harmless."""

    def render(dataset):
        (content,) = say(describe_report, dataset).values()
        parsed = Page(content.decode())
        parsed.check_harmless()
        return parsed

    return render


def make(
    classes, statistics=None, duplicates=None, *, settings=None, ledger=None, run=None, config="seed: 0\n", notes=()
):
    """A dataset of which only the numbers are there."""
    settings = settings or make_settings()
    reports = [
        ShardReport(
            split,
            0,
            sum(counts.values()),
            RowTotals(sum(counts.values()), 9, Counter(counts), changes=Counter(rotated=1)),
            AnnotationTotals(),
            records=sum(counts.values()),
            bytes=9,
        )
        for split, counts in classes.items()
    ]
    written = sum(report.records for report in reports)
    names = {name for counts in classes.values() for name in counts} - {""}
    labels = LabelMap({name: at for at, name in enumerate(sorted(names))})
    starts = {name: [0] for name in settings.splits.names}
    plan = Plan("0123456789abcdef", "convert", "", SplitCutoffs(), starts, labels, Summary(), [], {})
    found = duplicates or Duplicates()
    ledger = ledger or Ledger(written, written, {}, {}, {})
    marker = build_marker(
        plan, name_shards(reports, settings), ledger, settings, gather_reports(reports), found.numbers
    )
    marker = replace(marker, notes=tuple(notes))
    statistics = statistics or Statistics()
    remarks = find_remarks(marker, statistics, settings)
    return StagedDataset(marker, settings, config, [], reports, "", statistics, found, remarks, run or {})


def test_the_report_is_one_file_unless_it_is_not_wanted(stage, say):
    assert list(say(describe_report, stage())) == ["report.html"]
    assert say(describe_report, stage(make_settings(report=False))) == {}


def test_it_tells_what_went_in_and_came_out(stage, page):
    dataset = stage()
    statistics = gather_statistics(list_sidecars(dataset.reports, dataset.folder), {})
    remarks = find_remarks(dataset.marker, statistics, dataset.settings)
    text = page(replace(dataset, statistics=statistics, remarks=remarks)).text
    assert "8 files were found and each is accounted for: 7 written, 1 rejected." in text
    assert "1 truncated the data end before the image is complete" in text
    assert re.search("All images are 8 . 6", text)
    assert "3 classes; 4 images in the largest, 2 in the median one, 1 in the smallest." in text
    assert "test has no image of 1 of 3 classes." in text
    assert "Missing in test : emu ." in text


def test_what_is_worth_a_look_leads_to_its_section(page):
    counts = {"train": {"cat": 100, "dog": 2}, "test": {"cat": 1}}
    ledger = Ledger(104, 103, {"truncated": 1}, {}, {})
    parsed = page(make(counts, ledger=ledger, notes=["split a was moved", ""]))
    assert "weigh the classes, or the small ones will not be learned." in parsed.text
    assert "Split a was moved." in parsed.text
    links = [attributes["href"] for tag, attributes in parsed.elements if tag == "a"]
    assert links == ["#classes", "#classes", "#rejected"]
    assert {link[1:] for link in links} <= {attributes.get("id") for _, attributes in parsed.elements}


def test_a_dataset_without_labels_or_faults(page):
    text = page(make({"train": {"": 3}})).text
    assert "3 images" in text
    assert "Nothing stands out" in text
    assert "Classes" not in text


EVIL_ROW = {
    "bytes": 5,
    "height": 9,
    "width": 9,
    "channels": 3,
    "offset": 0,
    "length": 0,
    "detail": EVIL[0],
    "stage": "decode",
}


def evil_dataset(tmp_path):
    stream = io.BytesIO()
    Image.new("RGB", (9, 9)).save(stream, "JPEG")
    (tmp_path / "shard").write_bytes(b"")
    sidecar = Sidecar("<b>train", "", str(tmp_path / "shard"))
    rows = [row_from_json({**EVIL_ROW, "key": name, "class": name}) for name in EVIL]
    statistics = Statistics(1, pixels=81, smallest=(9, 9, EVIL[0]), largest=(9, 9, EVIL[1]))
    statistics.sizes.update({(9, 9): 1, (1, 1): 1})
    statistics.channels[3] = 1
    statistics.sides[1, 1] = statistics.aspects[3] = statistics.file_bytes[3] = 1
    statistics.samples = {name: [(sidecar, row)] for name, row in zip(EVIL, rows, strict=True)}
    statistics.rejected = {
        "truncated": [RejectedRow(name, None, 9, None, name, "decode", "truncated", EVIL[0]) for name in EVIL[:5]]
    }
    images = [Found(sidecar, row) for row in rows]
    groups = [Group(images, len(images), EVIL[:2], EVIL), Group(images[:2], 2, EVIL[:1], EVIL[:2], 3)]
    alike = LookAlikes(pairs=1, across_splits=0, conflicting=1, bits=5, complete=False)
    numbers = DuplicateCounts(SameBytes(1, 5, 1, 1), alike)
    counts = dict.fromkeys(EVIL, 2)
    return make(
        {"train": counts, "test": {EVIL[0]: 1}},
        statistics,
        Duplicates(numbers, groups[:1], groups[1:]),
        ledger=Ledger(20, 13, {"truncated": 7}, {}, {}),
        run={"runner": EVIL[0], "inputs": {"": EVIL[1]}},
        config=f"name: {EVIL[3]}\n",
    )


@pytest.fixture
def with_pictures(monkeypatch):
    """Every image has a picture, wherever it may be."""
    monkeypatch.setattr(
        "recordmill.transforms.publishing.companions.report.make_thumbnails",
        lambda places, *_: ["data:image/jpeg;base64,AAAA"] * len(places),
    )


@pytest.mark.usefixtures("with_pictures")
def test_names_are_text_wherever_they_stand(tmp_path, page):
    dataset = evil_dataset(tmp_path)
    parsed = page(dataset)
    for name in EVIL:
        shown = " ".join(show_name(name).split())
        assert parsed.text.count(shown) >= 5
    # So do attributes.
    titles = {attributes["title"] for _, attributes in parsed.elements if "title" in attributes}
    assert {show_name(name) for name in EVIL} <= titles


def test_without_any_picture_there_is_no_contact_sheet(tmp_path, page):
    text = page(evil_dataset(tmp_path)).text
    assert "Contact sheet" not in text
    assert "Duplicates" in text


def test_the_page_forbids_itself_to_run_or_load_anything(stage, page):
    policies = [
        attributes["content"]
        for tag, attributes in page(stage()).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


@pytest.fixture
def found_values(monkeypatch):
    """`found_values(values)`: what the records hold."""

    def find(values):
        monkeypatch.setattr("recordmill.transforms.publishing.companions.report.gather_values", lambda _: values)

    return find


def test_boxes_have_their_ledger_and_histograms_with_scales(page, found_values):
    values = StoredValues(records=90, shards=4, whole=False)
    values.areas[[9, 12]] = 3, 9
    found_values(values)
    dataset = make({"train": {"": 3}}, Statistics(boxes=Counter({0: 2, 4: 1})))
    splits = dataset.marker.splits
    marker = replace(
        dataset.marker,
        labels={"cat": 0, "lost": 1},
        splits={**splits, "train": replace(splits["train"], instances={"cat": 12})},
        boxes={"listed": 15, "written": 12, "clipped": 1, "outside": 1, "unknown_class": 2},
        dropped_boxes={"outside": {EVIL[0]: 1}, "unknown_class": {"7": 2}},
        images_without_boxes=ImagesWithoutBoxes(no_file=1, all_dropped=1),
        named=NamedImages(3, 2),
    )
    parsed = page(replace(dataset, marker=marker))
    assert "3 images were named by 2 files. 3 files were found and each is accounted for" in parsed.text
    assert (
        "15 boxes were listed, 12 written (1 of them clipped). An image has 4.0 on average, 4 at most." in parsed.text
    )
    assert f"unknown class 7 2 outside {EVIL[0]} 1" in parsed.text
    assert "images without a box 2 no file speaks of them 1 all their boxes were dropped 1" in parsed.text
    assert "25 % cover less than 0.1 % of their image. Measured in 90 images of 4 shards." in parsed.text
    assert "lost 0" in parsed.text
    assert "2 classes; 12 boxes in the largest, 12 in the median one, 12 in the smallest. 1 has none." in parsed.text
    assert "0 2 4 6 8 3 9 0.024 % 0.098 % 0.39 %" in parsed.text  # the scale of counts, columns, the scale of shares
    assert ("div", {"class": "up", "style": "width:1ch"}) in parsed.elements


def test_columns_say_what_they_hold(page, found_values):
    number = Column(Feature(EVIL[0], "float", "a", ""), missing=1, values=[1.0, 2.5, 2.5])
    text = Column(Feature("name", "bytes", "b", ""), texts=Counter({EVIL[1].encode(): 2, b"": 1}))
    found_values(StoredValues(records=4, shards=1, columns=[number, text], further=3))
    shown = page(make({"train": {"": 4}})).text
    assert "What all 4 images hold. 3 more columns are not shown." in shown
    assert f"{EVIL[0]} float smallest 1 largest 2.5 missing 1 (25 %)" in shown
    assert f"name bytes different 2 missing 0 {EVIL[1]} 2 empty 1" in shown
    found_values(StoredValues(records=4, shards=2, whole=False, columns=[number]))
    assert "What the first rows of 2 shards hold, 4 together" in page(make({"train": {"": 9}})).text


def test_examples_of_changes_name_their_change(page, monkeypatch):
    example = ChangeExample("rotated", EVIL[0], ("reencoded", "resized", "rotated"), (9, 9), 2048, 4096, "AAAA", "AAAA")
    monkeypatch.setattr("recordmill.transforms.publishing.companions.report.read_examples", lambda _: [example])
    parsed = page(make({"train": {"cat": 4}}))
    assert f"Before and after rotated {EVIL[0]} 2.0 KiB became 4.0 KiB; reencoded, resized, rotated" in parsed.text
    alternatives = [attributes["alt"] for tag, attributes in parsed.elements if tag == "img"]
    assert alternatives == [f"{EVIL[0]} before", f"{EVIL[0]} after"]


@pytest.mark.usefixtures("with_pictures")
def test_the_name_of_a_class_is_above_its_pictures(tmp_path, page):
    tags = [tag for tag, _ in page(evil_dataset(tmp_path)).elements if tag in ("figure", "figcaption", "img")]
    assert tags[: 3 * len(EVIL)] == ["figure", "figcaption", "img"] * len(EVIL)


@pytest.mark.parametrize(("name", "title"), [("pets", "pets"), ("", "animals"), (EVIL[0], EVIL[0])])
def test_it_is_named_after_the_dataset_or_its_folder(page, name, title):
    dataset = replace(make({"train": {"cat": 4}}), folder="/data/animals/.staging-0123")
    parsed = page(replace(dataset, marker=replace(dataset.marker, name=name)))
    assert parsed.text.startswith(f"{title} {title} 4 images in 1 class, as TFRecords in the convention default")


@pytest.mark.usefixtures("with_pictures")
def test_very_many_classes_make_no_large_page(say):
    counts = {f"class {number:06} with a long name {'x' * 300}": 1 + number % 7 for number in range(20_000)}
    place = (Sidecar("train", "", ""), row_from_json({**EVIL_ROW, "key": "a.jpg"}))
    statistics = Statistics(samples={name: [place] * 3 for name in list(counts)[:24]})
    labels = "".join(f"- {name}\n" for name in counts)
    (content,) = say(describe_report, make({"train": counts, "test": {}}, statistics, config=labels)).values()
    assert len(content) < 200_000
    text = Page(content.decode()).text
    assert "… 19,960 classes with" in text
    assert "Some images of 24 of 20,000 classes" in text
    assert "and 19,995 more" in text
    assert "config.yaml has the rest" in text


def test_only_the_run_differs_between_two_runs(stage, say):
    one = stage()
    other = replace(
        one, run={"runner": "DirectRunner", "seconds": {"listing": 1.0, "converting": 2.0}, "inputs": {"": "in"}}
    )
    halves = []
    for dataset in (one, other):
        (content,) = say(describe_report, dataset).values()
        before, section, after = content.decode().partition('<section id="run">')
        assert section
        halves.append((before, after.partition("</section>")[2]))
        assert ("2.0 s" in after) == (dataset is other)
    assert halves[0] == halves[1]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("cat", "cat"),
        (None, "(no class)"),
        ("", "(no class)"),
        ("a\nb\x00", "a\u240ab\u2400"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("日本語 é", "日本語 é"),
    ],
)
def test_names_are_shown_in_one_line(name, shown):
    assert show_name(name) == shown


def test_long_names_are_cut_in_the_middle():
    shown = show_name("a" * 500 + "b" * 500)
    assert (len(shown), shown[:5], shown[-5:]) == (160, "aaaaa", "bbbbb")
    assert show_name("a" * 160) == "a" * 160


@pytest.mark.parametrize(
    ("count", "total", "shown"),
    [
        (0, 5, "0 %"),
        (5, 5, "100 %"),
        (1, 3, "33.3 %"),
        (1, 10**6, "<0.1 %"),
        (999_999, 10**6, ">99.9 %"),
        (0, 0, "0 %"),
    ],
)
def test_shares_never_deny_what_is_there(count, total, shown):
    assert show_percent(count, total) == shown


def test_reasons_show_no_backticks(page):
    row = RejectedRow("x.jpg", None, 3, None, None, "list", "", "no")
    ledger = Ledger(6, 3, {"name_mismatch": 1}, {"ignored": 1}, {"limit": 1})
    parsed = page(make({"train": {"cat": 3}}, Statistics(rejected={"name_mismatch": [row]}), ledger=ledger))
    assert "its name does not match source.pattern" in parsed.text
    titles = {attributes["title"] for _, attributes in parsed.elements if attributes.get("title")}
    assert {"it matches a pattern of ignore", "there are more than limit"} <= titles
    assert "`" not in parsed.text + "".join(titles)
