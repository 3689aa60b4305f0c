import io
import re
import shutil
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from make_marker import make_marker
from PIL import Image

from recordmill.annotations.shapes import Shape, ShapePoint, color_of_class
from recordmill.reading.dataset import Dataset, StoredShard, open_dataset
from recordmill.reading.report import write_report as module
from recordmill.reading.report.image_statistics import (
    ASPECT_BINS,
    Column,
    ImageStatistics,
    ObjectPlaces,
    StoredValues,
)
from recordmill.reading.report.thumbnails import Thumbnail
from recordmill.reading.report.write_report import (
    ReportContents,
    describe_classes,
    describe_sizes,
    read_contents,
    render_report,
    show_name,
    show_percent,
    show_value,
    write_report,
)
from recordmill.schemas.dataset.marker import AnnotationEntry, Ledger, NamedImages, RunEntry
from recordmill.schemas.dataset.price import ComparedPrice, Price
from recordmill.schemas.dataset.side_files import (
    Duplicate,
    DuplicateGroup,
    RejectedFile,
    RejectedPicture,
    Remark,
    ReportData,
    row_from_json,
)
from recordmill.schemas.dataset.totals import BareImages
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style></title><script>alert(1)</script>",
    "{{ 7 * 7 }}{% for x in y %}",
    "&lt;b&gt; &amp; \u202egnp.exe \x00\n\t",
]


class Page(HTMLParser):
    """What a browser would make of it: elements with their attributes, and the text outside
    styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.texts, self.open = [], [], []
        self.links_outside_contents = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "a" and "nav" not in self.open:
            self.links_outside_contents.append(dict(attrs)["href"])
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
        allowed = {
            "style",
            "title",
            "meta",
            "img",
            "svg",
            "rect",
            "path",
            "details",
            "summary",
            "bdi",
            "figure",
        }
        allowed |= {
            "html",
            "head",
            "body",
            "main",
            "header",
            "section",
            "footer",
            "div",
            "span",
            "p",
            "h1",
            "h2",
            "h3",
        }
        allowed |= {
            "nav",
            "image",
            "line",
            "circle",
            "text",
            "g",
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
        }
        assert {tag for tag, _ in self.elements} <= allowed | {"figcaption", "a"}
        for tag, attributes in self.elements:
            assert not [
                name for name in attributes if name.startswith("on") or name in ("srcdoc", "action")
            ]
            allowed = "data:image/" if tag == "image" else "#"
            assert attributes.get("href", allowed).startswith(allowed)
            assert tag == "img" or "src" not in attributes
            assert attributes.get("src", "data:image/jpeg;base64,").startswith(
                "data:image/jpeg;base64,"
            )


def page(contents):
    """The report, parsed and found harmless."""
    parsed = Page(render_report(contents).decode())
    parsed.check_harmless()
    return parsed


def make(classes, statistics=None, *, ledger=None, folder="", **more):
    """Contents of which only the numbers are there; `more` are other parts of them, or keys of the
    marker."""
    names = ("groups", "rejected", "data", "configuration", "stored")
    parts = {key: more.pop(key) for key in names if key in more}
    written = sum(sum(counts.values()) for counts in classes.values())
    labels = sorted({name for counts in classes.values() for name in counts} - {""})
    marker = make_marker(
        splits={name: {"classes": counts, "shards": []} for name, counts in classes.items()},
        labels={name: at for at, name in enumerate(labels)},
        changes={"rotated": 1},
        **more,
    )
    marker = replace(marker, ledger=ledger or Ledger(written, written, {}, {}, {}))
    features = (Feature("image/encoded", "bytes", "encoded", ""),)
    dataset = Dataset(folder, "recordmill", (), features, marker.labels, marker)
    return ReportContents(
        dataset=dataset, marker=marker, statistics=statistics or ImageStatistics(), **parts
    )


@pytest.fixture(scope="session")
def published(convert_images, tmp_path_factory):
    """A dataset of eight pictures, of which one is damaged and two are the same, in splits and
    classes."""
    root = tmp_path_factory.mktemp("report")
    for number, label in enumerate(["cat"] * 4 + ["dog"] * 2 + ["emu"]):
        path = root / "photos" / ("test" if number in (3, 5) else "train") / label / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 6), (30 * max(number, 1), 9, 90)).save(path)
    (root / "photos/train/cat/cut.jpg").write_bytes(path.read_bytes()[:300] + b"\xff\xd9")
    return convert_images(root / "photos", root / "dataset", {"images.near_duplicates": True})


def test_it_says_how_wrong_the_price_was():
    predicted = Price(
        cpu_seconds=2_000,
        memory=2**28,
        bytes_read=2**20,
        bytes_shuffled=2**10,
        bytes_written=0,
        minutes=9,
    )
    measured = replace(
        predicted,
        cpu_seconds=1_500.04,
        memory=2**28 - 1,
        bytes_read=2**21,
        bytes_shuffled=None,
        bytes_written=1,
    )
    empty = make({"train": {"cat": 1}})
    assert "What it cost" not in page(empty).text
    run = replace(empty.marker.run, price=ComparedPrice(predicted, measured))
    compared = page(replace(empty, marker=replace(empty.marker, run=run))).text
    assert (
        "What it cost predicted measured difference processor time 2,000.0 s 1,500.0 s -25% "
        "peak memory of the main process 256.0 MiB 256.0 MiB +0% bytes read 1.0 MiB 2.0 MiB +100% "
        "bytes shuffled 1.0 KiB not measured bytes written 0 B 1 B Predicted from a few images "
        "before the others were "
        "converted, and measured until the dataset was complete, without this page."
    ) in compared
    run = replace(run, price=ComparedPrice(predicted))  # on a cluster
    alone = page(replace(empty, marker=replace(empty.marker, run=run))).text
    assert (
        "What it cost predicted processor time 2,000.0 s peak memory of the main process 256.0 MiB "
        "bytes read" in alone
    )
    assert (
        "bytes written 0 B Predicted from a few images before the others were converted." in alone
    )


def test_it_says_what_went_in_and_came_out(published):
    dataset = open_dataset(str(published))
    content = render_report(read_contents(dataset, dataset.marker))
    assert (published / "report.html").read_bytes() == content
    parsed = Page(content.decode())
    parsed.check_harmless()
    assert "8 files were found and each is accounted for: 7 written, 1 rejected." in parsed.text
    assert "1 truncated the data ends before the image is complete train/cat/cut.jpg" in parsed.text
    assert re.search("All images are 8 . 6", parsed.text)
    assert "3 classes, by the number of images." in parsed.text
    assert "Split test lacks 1 of 3 classes." in parsed.text
    assert "2 times the same bytes" in parsed.text
    links = [attributes["href"] for tag, attributes in parsed.elements if tag == "a"]
    assert "#rejected" in links
    assert len([tag for tag, _ in parsed.elements if tag == "img"]) == 7 + 2


def test_it_is_made_again_from_the_published_dataset_alone(published, tmp_path):
    copy = tmp_path / "dataset"
    shutil.copytree(published, copy)
    (copy / "report.html").unlink()
    assert write_report(str(copy)) == str(copy / "report.html")
    assert (copy / "report.html").read_bytes() == (published / "report.html").read_bytes()
    assert {path.name for path in copy.iterdir()} == {path.name for path in published.iterdir()}


def test_only_a_whole_dataset_has_a_report(published):
    (shard,) = published.glob("train-*")
    with pytest.raises(LoadError, match=f"^some files of {re.escape(str(published))} are named"):
        write_report(str(shard))


def test_remarks_whose_section_is_not_known_are_plain_text():
    parsed = page(
        make({"train": {"cat": 3}}, data=ReportData((Remark("All images have one size."),)))
    )
    assert "Worth a look All images have one size." in parsed.text
    assert parsed.links_outside_contents == []


def test_what_is_worth_a_look_leads_to_its_section():
    counts = {"train": {"cat": 100, "dog": 2}, "test": {"cat": 1}}
    ledger = Ledger(104, 103, {"truncated": 1}, {}, {})
    remarks = (Remark("Weigh the classes.", "classes"), Remark("One was rejected.", "rejected"))
    parsed = page(
        make(
            counts,
            ledger=ledger,
            notes=["split a was moved", "a.json: gone", ""],
            data=ReportData(remarks),
        )
    )
    assert "Weigh the classes. One was rejected. Split a was moved. a.json: gone." in parsed.text
    links = parsed.links_outside_contents
    assert links == ["#classes", "#rejected"]
    assert {link[1:] for link in links} <= {
        attributes.get("id") for _, attributes in parsed.elements
    }


def test_a_dataset_without_labels_or_faults():
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
}


def rejected(key, reason="truncated", detail=EVIL[0], stage="decode"):
    return RejectedFile(key, stage, reason, detail, 9, None, key, key)


def evil_dataset(tmp_path):
    stream = io.BytesIO()
    Image.new("RGB", (9, 9)).save(stream, "JPEG")
    (tmp_path / "shard").write_bytes(b"")
    shard = StoredShard("<b>train", "", str(tmp_path / "shard"))
    rows = [row_from_json({**EVIL_ROW, "key": name, "class": name}) for name in EVIL]
    statistics = ImageStatistics(1)
    statistics.sizes.update({(9, 9): 1, (1, 1): 1})
    for counts in (
        statistics.widths,
        statistics.heights,
        statistics.aspects,
        statistics.file_bytes,
    ):
        counts[3] = 1
    statistics.samples = {name: [(shard, row)] for name, row in zip(EVIL, rows, strict=True)}
    statistics.named = {
        ("<b>train", name): (shard, row) for name, row in zip(EVIL, rows, strict=True)
    }
    images = tuple(Duplicate(name, "<b>train", name) for name in EVIL)
    splits, classes = tuple(EVIL[:2]), tuple(EVIL)
    groups = [
        DuplicateGroup(kind="same_bytes", count=9, splits=splits, classes=classes, images=images),
        DuplicateGroup(
            kind="look_alike", distance=3, splits=splits[:1], classes=classes[:2], images=images[:2]
        ),
    ]
    alike = {"pairs": 1, "across_splits": 0, "conflicting": 1, "bits": 5, "complete": False}
    same = {"groups": 1, "images": 5, "across_splits": 1, "conflicting": 1}
    counts = dict.fromkeys(EVIL, 2)
    return make(
        {"train": counts, "test": {EVIL[0]: 1}},
        statistics,
        groups=groups,
        rejected={"truncated": [rejected(name) for name in EVIL[:5]]},
        duplicates={"same_bytes": same, "look_alike": alike},
        ledger=Ledger(20, 13, {"truncated": 7}, {}, {}),
        run={"runner": EVIL[0], "inputs": {"": EVIL[1]}},
        configuration=f"name: {EVIL[3]}\n",
    )


@pytest.fixture
def with_pictures(monkeypatch):
    """Every image has a picture, wherever it may be."""
    monkeypatch.setattr(
        module.thumbnails,
        "make_thumbnails",
        lambda _, places, side=0: [Thumbnail("data:image/jpeg;base64,AAAA", 9, 9)] * len(places),
    )


@pytest.mark.usefixtures("with_pictures")
def test_names_are_text_wherever_they_stand(tmp_path):
    dataset = evil_dataset(tmp_path)
    parsed = page(dataset)
    for name in EVIL:
        shown = " ".join(show_name(name).split())
        assert parsed.text.count(shown) >= 4
    # So do attributes.
    titles = {attributes["title"] for _, attributes in parsed.elements if "title" in attributes}
    assert {show_name(name) for name in EVIL} <= titles


def test_without_any_picture_there_is_no_contact_sheet(tmp_path):
    text = page(evil_dataset(tmp_path)).text
    assert "Contact sheet" not in text
    assert "Duplicates" in text


def test_the_page_forbids_itself_to_run_or_load_anything():
    policies = [
        attributes["content"]
        for tag, attributes in page(make({"train": {"cat": 1}})).elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; img-src data:; style-src 'unsafe-inline'"]


def test_boxes_have_their_ledger_and_histograms_with_scales():
    values = StoredValues(records=90, shards=4, whole=False)
    places = values.objects["boxes"] = ObjectPlaces()
    places.heat[3, 4] = 2
    places.shares = {"cat": [0.001] * 8 + [0.004] * 3, EVIL[0]: [0.002]}
    statistics = ImageStatistics(annotated={"boxes": Counter({0: 2, 4: 1})})
    contents = make({"train": {"": 3}}, statistics, stored=values)
    splits = contents.marker.splits
    marker = replace(
        contents.marker,
        labels={"cat": 0, "lost": 1},
        splits={**splits, "train": replace(splits["train"], instances={"cat": 12})},
        annotations={
            "boxes": AnnotationEntry(
                unit="box",
                listed=15,
                written=12,
                dropped={"outside": 1, "unknown_class": 2},
                noted={"clipped": 1},
                dropped_classes={"outside": {EVIL[0]: 1}, "unknown_class": {"7": 2}},
                images_without=BareImages(no_file=1, all_dropped=1),
            ),
            "masks": AnnotationEntry(listed=14, written=14, dropped={}),
        },
        counted="boxes",
        named=NamedImages(3, 2),
    )
    parsed = page(replace(contents, marker=marker))
    assert (
        "3 images were named by 2 files. 3 files were found and each is accounted for"
        in parsed.text
    )
    ledger = (
        "15 boxes were listed, 12 written (1 of them clipped). Their sizes and places are those in "
        "90 images of 4 shards."
    )
    assert ledger in parsed.text
    assert f"unknown class 7 2 outside {EVIL[0]} 1" in parsed.text
    assert (
        "images without boxes 2 no annotation file 1 all their boxes were dropped 1" in parsed.text
    )
    assert "Masks 14 annotations were listed, 14 written, and none was dropped." in parsed.text
    assert "lost 0" in parsed.text
    assert "2 classes, by the number of boxes." in parsed.text
    # The scale of counts, columns, and their labels.
    assert "2 0 2 1 0 1 2 3 4 images by number of boxes" in parsed.text
    scale = "boxes by the share of the image that they cover (logarithmic scale)"
    assert f"8 0 8 1 3 0.1% 0.2% 0.3% 0.5% 0.7% {scale}" in parsed.text
    assert f"Sizes by class cat 0.1% {EVIL[0]} 0.2%" in parsed.text
    cells = [each for tag, each in parsed.elements if tag == "rect" and "fill-opacity" in each]
    assert [(each["x"], each["y"], each["fill-opacity"]) for each in cells] == [("4", "3", "1.0")]
    assert ("div", {"class": "up", "style": "width:1ch"}) in parsed.elements


def test_columns_say_what_they_hold():
    number = Column(Feature(EVIL[0], "float", "a", ""), missing=1, numbers=[1.0, 2.5, 2.5])
    text = Column(Feature("name", "bytes", "b", ""))
    values = StoredValues(records=4, shards=1, columns=[number, text], further=3)
    shown = page(make({"train": {"": 4}}, stored=values)).text
    assert "Based on all 4 images. 3 more columns are not shown." in shown
    assert f"{EVIL[0]} float smallest 1 largest 2.5 missing 1 (25%)" in shown
    assert "name bytes missing 0" in shown
    values = StoredValues(records=4, shards=2, whole=False, columns=[number])
    text = page(make({"train": {"": 9}}, stored=values)).text
    assert "Based on a sample: the first 4 rows of 2 shards." in text


def test_rejected_files_are_shown_where_something_can_be_seen_of_them():
    contents = make(
        {"train": {"cat": 4}},
        ledger=Ledger(6, 4, {"truncated": 2}, {}, {}),
        rejected={"truncated": [rejected(EVIL[0]), rejected("x.jpg")]},
        data=ReportData(rejected=(RejectedPicture(EVIL[0], "truncated", "AAAA"),)),
    )
    pictures = [each for tag, each in page(contents).elements if tag == "img"]
    assert pictures == [{"src": "data:image/jpeg;base64,AAAA", "alt": EVIL[0]}]


def test_each_section_stands_in_the_list_of_contents_once(tmp_path):
    parsed = page(evil_dataset(tmp_path))
    anchors = [each["id"] for tag, each in parsed.elements if tag == "section" and "id" in each]
    links = [each["href"] for tag, each in parsed.elements if tag == "a"]
    assert [link for link in links if not link.startswith("#picture")][: len(anchors)] == [
        f"#{anchor}" for anchor in anchors
    ]


@pytest.mark.usefixtures("with_pictures")
def test_a_click_enlarges_a_picture_and_shows_its_key(tmp_path):
    parsed = page(evil_dataset(tmp_path))
    figures = [each["id"] for tag, each in parsed.elements if tag == "figure"]
    assert figures == [f"picture{number}" for number in range(1, len(figures) + 1)]
    links = [each["href"] for tag, each in parsed.elements if tag == "a"]
    assert links.count("#sheet") >= len(EVIL)
    assert all(links.count(f"#{figure}") == 1 for figure in figures)


def test_boxes_are_drawn_over_their_picture_with_the_color_and_name_of_their_class(monkeypatch):
    shapes = (
        Shape(1, EVIL[0], (0.25, 0.5, 0.75, 1.0)),
        Shape(
            2, "dog", points=(ShapePoint(0.5, 0.5), ShapePoint(1.0, 0.5, False)), lines=((0, 1),)
        ),
        Shape(3, "emu", region=gray_png()),
        Shape(3, "emu", region=gray_png()),
    )
    picture = Thumbnail("data:image/jpeg;base64,AAAA", 40, 20, shapes)
    monkeypatch.setattr(
        module.thumbnails, "make_thumbnails", lambda _, places, side: [picture] * len(places)
    )
    place = (StoredShard("train", "", ""), row_from_json({**EVIL_ROW, "key": "a.jpg"}))
    statistics = ImageStatistics(samples={"cat": [place]})
    parsed = page(make({"train": {"cat": 1}}, statistics))
    (box,) = [each for tag, each in parsed.elements if tag == "rect" and each.get("fill") == "none"]
    assert [box[side] for side in ("x", "y", "width", "height")] == ["10.0", "10.0", "20.0", "10.0"]
    assert EVIL[0] in parsed.text
    (line,) = [each for tag, each in parsed.elements if tag == "line"]
    assert [line[end] for end in ("x1", "y1", "x2", "y2")] == ["20.0", "10.0", "40.0", "10.0"]
    points = [(each.get("fill"), each["r"]) for tag, each in parsed.elements if tag == "circle"]
    assert points == [(None, "0.5"), ("none", "0.5")]  # a part of the picture's width
    colors = [(each["fill"], each["stroke"]) for tag, each in parsed.elements if tag == "g"]
    assert colors == [(color_of_class(number),) * 2 for number in (1, 2, 3, 3)]
    names = [each["style"] for tag, each in parsed.elements if each.get("class") == "region"]
    assert names == [f"--c:{color_of_class(number)}" for number in (2, 3)]
    layers = [each["href"] for tag, each in parsed.elements if tag == "image"]
    assert [each.partition(",")[0] for each in layers] == [
        "data:image/jpeg;base64",
        "data:image/png;base64",
        "data:image/png;base64",
    ]


def test_classes_of_semantic_masks_are_listed_without_numbers_of_images():
    contents = make({"train": {"": 3}})
    entry = AnnotationEntry(unit="semantic mask", listed=3, written=3, dropped={})
    labels, annotations = {"sky": 0, "road": 1}, {"segmentation": entry}
    marker = replace(contents.marker, labels=labels, annotations=annotations, names_pixel_ids=True)
    parsed = page(replace(contents, marker=marker))
    assert "Classes 2 classes of the semantic masks. sky road Semantic masks 3" in parsed.text
    assert "every class is in every split" not in parsed.text


def gray_png():
    stream = io.BytesIO()
    Image.new("L", (40, 20), 1).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.usefixtures("with_pictures")
def test_the_name_of_a_class_is_above_its_pictures(tmp_path):
    tags = [tag for tag, _ in page(evil_dataset(tmp_path)).elements if tag in ("summary", "img")]
    assert tags[: 2 * len(EVIL)] == ["summary", "img"] * len(EVIL)


@pytest.mark.parametrize(("name", "title"), [("pets", "pets"), ("", "animals"), (EVIL[0], EVIL[0])])
def test_it_is_named_after_the_dataset_or_its_folder(name, title):
    parsed = page(make({"train": {"cat": 4}}, folder="/data/animals", name=name))
    assert parsed.text.startswith(
        f"{title} {title} 4 images in 1 class, as TFRecords in the convention default"
    )


@pytest.mark.usefixtures("with_pictures")
def test_very_many_classes_make_no_large_page():
    counts = {
        f"class {number:06} with a long name {'x' * 300}": 1 + number % 7
        for number in range(20_000)
    }
    place = (StoredShard("train", "", ""), row_from_json({**EVIL_ROW, "key": "a.jpg"}))
    statistics = ImageStatistics(samples={name: [place] * 3 for name in list(counts)[:24]})
    labels = "".join(f"- {name}\n" for name in counts)
    content = render_report(make({"train": counts, "test": {}}, statistics, configuration=labels))
    assert len(content) < 900_000
    text = Page(content.decode()).text
    assert "19,960 more classes between" in text
    assert "and 18,960 more" in text
    assert "Some images of 24 of 20,000 classes" in text
    assert "config.yaml has the rest" in text


def test_only_the_run_differs_between_two_runs():
    one = make({"train": {"cat": 4}})
    run = RunEntry(
        runner="DirectRunner", seconds={"listing": 1.0, "converting": 2.0}, inputs={"": "in"}
    )
    other = replace(one, marker=replace(one.marker, run=run))
    halves = []
    for dataset in (one, other):
        before, section, after = render_report(dataset).decode().partition('<section id="run">')
        assert section
        rest, seal, _ = after.partition("</section>")[2].partition("<!-- SHA-256")
        assert seal
        halves.append((before, rest))
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
        (0, 5, "0%"),
        (5, 5, "100%"),
        (1, 3, "33.3%"),
        (1, 10**6, "0.0001%"),
        (0, 0, "0%"),
    ],
)
def test_shares_have_three_digits(count, total, shown):
    assert show_percent(count, total) == shown


def test_reasons_show_no_backticks():
    ledger = Ledger(6, 3, {"name_mismatch": 1}, {"ignored": 1}, {"limit": 1})
    found = {"name_mismatch": [rejected("x.jpg", "name_mismatch", "no", "list")]}
    parsed = page(make({"train": {"cat": 3}}, rejected=found, ledger=ledger))
    assert "its name does not match source.pattern" in parsed.text
    titles = {attributes["title"] for _, attributes in parsed.elements if attributes.get("title")}
    assert {"it matches a pattern of ignore", "there are more than limit"} <= titles
    assert "`" not in parsed.text + "".join(titles)


def test_changes_and_reasons_come_with_their_meanings_the_most_frequent_first():
    ledger = Ledger(9, 4, {"empty": 1, "truncated": 4}, {}, {})
    contents = make(
        {"train": {"cat": 4}}, ledger=ledger, rejected={"truncated": [rejected("x.jpg")]}
    )
    marker = replace(contents.marker, changes={"reencoded": 1, "rotated": 3})
    text = page(replace(contents, marker=marker)).text
    assert "rotated the image was rotated as its metadata require 3 reencoded" in text
    assert "4 truncated the data ends before the image is complete x.jpg (9 B): " in text
    assert "and 3 more 1 empty and 1 more" in text


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (
            {},
            "when the same dataset is built again. runner DirectRunner input in input b = x",
        ),
        (
            {"listing": 1.0, "converting": 4.0, "publishing": 0.5},
            "publishing 0.5 s 5.5 s; while converting, 2 images and 1,000 B of them a second.",
        ),
    ],
)
def test_times_are_given_where_they_are_known(seconds, shown):
    run = {
        "runner": "DirectRunner",
        **({"seconds": seconds} if seconds else {}),
        "inputs": {"": "in", "b": "x"},
    }
    assert shown in page(make({"train": {"cat": 8}}, run=run, input_bytes=4000)).text


def split(**classes):
    return {"classes": classes}


def marker(**changed):
    basis = {
        "unit": "image",
        "splits": {"train": split(cat=10, dog=5), "test": split(cat=5)},
        "labels": {"cat": 0, "dog": 1},
        "changes": {"rotated": 1, "reencoded": 3},
    }
    return make_marker(**{**basis, **changed})


def test_the_ledger_has_a_bar_for_everything_listed():
    counts = {"train": {"cat": 10, "dog": 5}, "test": {"cat": 5}}
    ledger = Ledger(30, 20, {"empty": 1, "truncated": 4}, {"hidden": 3}, {"limit": 2})
    text = page(make(counts, ledger=ledger)).text
    assert (
        "written 20, 66.7% rejected: truncated 4, 13.3% rejected: empty 1, 3.33% ignored: "
        "hidden 3, 10% "
        "left out: limit 2, 6.67%"
    ) in text


def test_classes_are_ordered_by_size():
    classes = describe_classes(marker(labels={"cat": 0, "dog": 1, "emu": 2}))
    assert classes["largest"] == [("cat", [10, 5]), ("dog", [5, 0]), ("emu", [0, 0])]
    assert (classes["most"], classes["smallest"], classes["between"]) == (15, [], [])


def test_of_very_many_classes_some_are_shown_and_the_rest_counted():
    counts = {f"{number:05}": 1 + number for number in range(20_000)}
    classes = describe_classes(
        marker(splits={"train": split(**counts)}, labels=dict.fromkeys(counts, 0))
    )
    assert [name for name, _ in (classes["largest"][0], classes["smallest"][-1])] == [
        "19999",
        "00000",
    ]
    counted = [len(classes[part]) for part in ("largest", "between", "smallest")]
    assert (counted, classes["further"]) == ([30, 1_000, 10], 18_960)


@pytest.mark.parametrize(("kind", "unit"), [("boxes", "box"), ("labels", "label")])
def test_of_images_with_several_classes_these_are_counted(kind, unit):
    splits = {
        "train": {**split(**{"": 4}), "instances": {"cat": 20, "dog": 2}},
        "test": {**split(), "instances": {}},
    }
    entry = {"unit": unit, "listed": 9, "written": 9, "dropped": {}}
    dataset = marker(splits=splits, annotations={kind: entry}, counted=kind)
    assert describe_classes(dataset)["largest"] == [("cat", [20, 0]), ("dog", [2, 0])]
    contents = ReportContents(
        dataset=Dataset("", "recordmill", (), (), dataset.labels, dataset), marker=dataset
    )
    assert f"2 classes, by the number of {kind}." in page(contents).text


def statistics():
    found = ImageStatistics(images=4)
    found.sizes.update({(8, 6): 3, (6, 8): 1})
    found.widths[[12, 10]] = found.heights[[10, 12]] = 3, 1
    found.aspects[ASPECT_BINS // 2 + 2], found.aspects[ASPECT_BINS // 2 - 2] = 3, 1
    found.file_bytes[40] = 4
    return found


def test_sizes_are_given_in_pixels_and_bytes():
    sizes = describe_sizes(statistics())
    assert sizes["common"] == [((8, 6), 3), ((6, 8), 1)]
    assert [text for _, text in sizes["widths"].labels] == ["6", "7", "8", "9"]
    assert (sizes["widths"].counts, sizes["heights"].counts) == ([1, 0, 3], [3, 0, 1])
    assert [text for _, text in sizes["file_bytes"].labels] == ["1 KiB"]
    assert [text for _, text in sizes["aspects"].labels] == ["2:3", "1:1", "3:2"]


def test_sizes_beyond_the_most_frequent_are_counted():
    found = statistics()
    found.sizes.update({(9, number): 1 for number in range(1, 9)})
    found.images = 12
    assert len(describe_sizes(found)["common"]) == module.MOST_SIZES_SHOWN
    assert "others 4 33.3%" in page(make({"train": {"": 12}}, found)).text


def column(kind, values, missing=0, many=False):
    made = Column(Feature("a", kind, "a", "", many=many))
    for value in values:
        made.add(value if many else [value])
    made.missing = missing
    return made


@pytest.mark.parametrize(
    ("made", "facts"),
    [
        (column("int64", [3, 1_000, -5]), "int64 smallest -5 largest 1,000"),
        (column("float", [0.5, 1234.25]), "float smallest 0.5 largest 1,234.25"),
        (column("float", [1.0, float("nan")]), "float smallest 1 largest 1"),
        (column("float", [float("inf")]), "float"),
        (column("bytes", [b"x", b"y", b"x"]), "bytes"),
        (column("float", [[1.0], [2.0, 4.0]], many=True), "float list smallest 1 largest 4"),
        (column("int64", [], missing=3), "int64"),
    ],
)
def test_a_column_says_what_it_holds(made, facts):
    text = page(make({"train": {"": 3}}, stored=StoredValues(records=3, columns=[made]))).text
    assert f"a {facts} missing {made.missing}" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (17_031_832_200, "17,031,832,200"),
        (1_234.25, "1,234.25"),
        (0.0, "0"),
        (-0.00012, "-0.00012"),
        (3.4e38, "3.4e+38"),
        (100.0, "100"),
    ],
)
def test_integers_are_shown_in_full_and_other_numbers_with_six_digits(value, shown):
    assert show_value(value) == shown
