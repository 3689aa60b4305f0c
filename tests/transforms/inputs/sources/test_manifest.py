import pytest

from recordmill.annotations.attributes import Attributes
from recordmill.annotations.segmentation import Segmentation
from recordmill.imaging.masks.mask_file import pack_color
from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import ImageRef, Notice, SourceFile
from recordmill.transforms.inputs.sources.manifest import Manifest
from recordmill.transforms.inputs.sources.source import list_file
from recordmill.transforms.inputs.tables.manifest_columns import Columns, FeatureColumn

COLUMNS = Columns(uri="path", label="class")


def refer(folder, content, name="list.csv", columns=COLUMNS, **settings):
    (folder / name).write_bytes(content)
    source = Manifest(columns=columns, **settings)
    return list(list_file(source, name, ImageRef(name, str(folder / name), len(content), "1")))


@pytest.fixture
def folder(tmp_path):
    for name in ("a.jpg", "b, c.jpg"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


def test_one_image_a_row(folder):
    refs = refer(folder, b'\xef\xbb\xbfpath,class\r\na.jpg,cat\r\n"b, c.jpg",dog\r\n')
    assert [(ref.key, ref.uri, ref.label, ref.size, ref.status) for ref in refs] == [
        ("a.jpg", str(folder / "a.jpg"), "cat", 5, ""),
        ("b, c.jpg", str(folder / "b, c.jpg"), "dog", 8, ""),
    ]
    assert Manifest(columns=COLUMNS).read(refs[0], 100).data == b"a.jpg"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (
            "list.csv",
            b"path,x\n",
            "it has no column 'class' (source.columns.label), only 'path', 'x': correct the name; "
            "CSV may need "
            "source.delimiter, or source.names if it has no header",
        ),
        (
            "list.csv",
            b'path,class\na.jpg,"cat\n',
            "row 2: a quote is opened and never closed: close it",
        ),
        (
            "list.dat",
            b"a",
            "its name does not say what it is: set source.format: csv, tsv, jsonl or parquet",
        ),
    ],
)
def test_a_manifest_that_cannot_be_read_fails_the_run(name, content, sentence, folder):
    refs = refer(folder, content, name)
    assert [(ref.key, ref.status, ref.reason, ref.detail) for ref in refs if ref.status] == [
        (name, "fatal", "bad_manifest", sentence)
    ]


def test_a_column_that_no_line_of_json_has_fails_the_run_as_in_csv(folder):
    content = b'{"path": "a.jpg", "class": "cat", "grp": 1}\n{"path": "b.jpg"}\n'
    columns = Columns(uri="path", label="class", group="group")
    assert [
        (ref.status, ref.detail)
        for ref in refer(folder, content, "list.jsonl", columns)
        if ref.status
    ] == [
        ("rejected", "list.jsonl, row 2: column 'class' is empty"),
        (
            "fatal",
            "it has no column 'group' (source.columns.group), only 'class', 'grp', 'path': correct "
            "the name; CSV may "
            "need source.delimiter, or source.names if it has no header",
        ),
    ]


@pytest.mark.parametrize(
    "content", [b"path,class\na.jpg, 65\n", b"path,class\na.jpg,7\n 1.jpg,7\na.jpg, 8\n"]
)
def test_cells_that_begin_with_a_blank_are_noted_once(folder, content):
    *_, note = refer(folder, content)
    shown = "' 65'" if b"65" in content else "' 1.jpg'"
    advice = "set source.blanks=skip, or keep if it belongs to them"
    assert (note.status, note.detail) == (
        "warning",
        f"cells begin with a blank, such as {shown}: {advice}",
    )
    for blanks in ("keep", "skip"):
        assert not [ref for ref in refer(folder, content, blanks=blanks) if ref.status == "warning"]
    (one,) = refer(folder, b"path, class\na.jpg, 65\n")
    assert one.label == "65"


SIDES = {side: side for side in ("xmin", "ymin", "xmax", "ymax")}


@pytest.mark.parametrize(
    ("columns", "content", "largest"),
    [
        (Columns(uri="path", box_label="class", **SIDES),
         b"path,class,xmin,ymin,xmax,ymax\na.jpg,cat,0.1,0.2,0.5,0.75\na.jpg,,,,,\n", "0.75"),
        (Columns(uri="path", box_label="class", **SIDES), b"path,class,xmin,ymin,xmax,ymax\n"
                                                          b"a.jpg,cat,0,0,1,1\n", "1"),
        (Columns(uri="path", boxes="b", box_labels="class"),
         b'path,class,b\na.jpg,cat|dog,"[[0,0,0.5,0.5],[0,0,0.25,0.5]]"\n', "0.5"),
        (Columns(uri="path", box_label="class", **SIDES),
         b"path,class,xmin,ymin,xmax,ymax\na.jpg,cat,0.1,0.2,0.5,0.75\na.jpg,cat,0,0,1,2\n", ""),
        (Columns(uri="path", box_label="class", **SIDES), b"path,class,xmin,ymin,xmax,ymax\n"
                                                          b"a.jpg,,,,,\n", ""),
    ],
)  # fmt: skip
def test_boxes_of_less_than_a_pixel_stop_the_run(folder, columns, content, largest):
    advice = (
        "add --set source.boxes_unit=fraction if they are parts of the image's width and height, "
        "or write them in pixels"
    )
    expected = (
        [f"the largest coordinate of its boxes in pixels is {largest}: {advice}"] if largest else []
    )
    for unit, remarks in (("pixels", expected), ("fraction", [])):
        found = refer(folder, content, columns=columns, boxes_unit=unit)
        assert [
            ref.detail for ref in found if isinstance(ref, Notice) and ref.status == "fatal"
        ] == remarks


def attributes_in(ref):
    packed = dict(ref.annotations).get("attributes")
    return None if packed is None else Attributes.unpack(packed).values


def test_rows_of_boxes_have_the_attributes_in_their_columns(folder):
    columns = Columns(uri="path", box_label="class", **SIDES)
    content = (
        b"path,class,xmin,ymin,xmax,ymax,IsOccluded,hue\n"
        b'a.jpg,cat,1,2,3,4,1,red\n"b, c.jpg",,,,,,0,blue\na.jpg,dog,1,2,3,4,,\n'
    )
    attributes = {"occluded": "IsOccluded", "color": "hue"}
    found = refer(folder, content, columns=columns, attributes_from=attributes)
    first, second = [ref for ref in found if type(ref) is ImageRef]
    assert attributes_in(first) == [{"occluded": "1", "color": "red"}, {}]
    assert attributes_in(second) is None
    assert [ref for ref in found if isinstance(ref, Notice)] == []


def test_lists_of_boxes_have_lists_of_attributes(folder):
    columns = Columns(uri="path", boxes="b", box_labels="class")
    content = (
        b"path,class,b,hue,on\n"
        b'a.jpg,cat|dog,"[[0,0,5,5],[0,0,2,5]]",red|blue,"[true, null]"\n'
        b'"b, c.jpg",cat,"[[0,0,5,5]]",red|blue,[true]\n'
    )
    attributes = {"color": "hue", "on": "on"}
    found = refer(folder, content, columns=columns, attributes_from=attributes)
    first, second = [ref for ref in found if isinstance(ref, ImageRef)]
    assert attributes_in(first) == [{"color": "red", "on": "true"}, {"color": "blue"}]
    where = "list.csv, row 3: column 'hue': there are 2 values for 1 box"
    assert (second.status, second.detail) == ("rejected", where)


def test_columns_of_attributes_must_exist_and_need_boxes(folder):
    columns = Columns(uri="path", box_label="class", **SIDES)
    content = b"path,class,xmin,ymin,xmax,ymax\na.jpg,cat,1,2,3,4\n"
    (fault,) = refer(folder, content, columns=columns, attributes_from={"color": "hue"})
    assert fault.detail.startswith("it has no column 'hue' (source.attributes_from.color), only")
    source = Manifest(columns=columns, attributes_from={"color": "hue"})
    assert source.annotations()["attributes"] == "source.attributes_from"
    idle = Manifest(columns=COLUMNS, attributes_from={"color": "hue"}).idle_settings()
    assert idle["attributes_from"] == "no column of boxes is named"
    with pytest.raises(SettingError, match=r"source\.attributes_from\.color is empty: name"):
        Manifest(columns=columns, attributes_from={"color": ""})


def test_one_manifest_per_split_has_its_split_by_its_name(folder):
    settings = {"split": r"(?P<split>[a-z]+)\.(csv|txt)", "names": ("path", "class")}
    for name, content in (
        ("train.txt", b"a.jpg 3\n"),
        ("val.txt", b"a.jpg, 3\n"),
        ("test.csv", b"a.jpg,3\n"),
    ):
        (ref,) = refer(folder, content, name, **settings)
        assert (ref.key, ref.label, ref.split) == ("a.jpg", "3", name.partition(".")[0])
    (ref,) = refer(folder, b"a b\n", "README.txt", **settings)
    assert (ref.status, ref.reason) == ("ignored", "not_annotations")
    assert {"*.csv", "*.txt"} <= {*Manifest(columns=COLUMNS, **settings).files}
    assert "*.txt" not in Manifest(columns=COLUMNS).files


@pytest.mark.parametrize("name", ["list.csv", "list.tsv", "list.jsonl"])
def test_images_in_a_table_of_text_are_refused(folder, name):
    (ref,) = refer(folder, b'"data"\n"aGVsbG8="\n', name, Columns(bytes="data"))
    assert (ref.status, ref.reason, ref.detail) == (
        "fatal",
        "bad_manifest",
        "column 'data' (source.columns.bytes): images in cells are read from Parquet only: store "
        "them as files, and "
        "name their paths in uri",
    )


def test_a_missing_image_says_that_a_template_has_one_extension(folder):
    why = "column '{path}.jpg': 'x.jpg': no such file or directory"
    *_, bad, lost = refer(
        folder, b"path,class\na,cat\nx,cat\n", columns=Columns(uri="{path}.jpg", label="class")
    )
    assert (lost.status, lost.reason) == ("lost_label", "cat")
    assert (bad.reason, bad.detail) == (
        "vanished",
        f"list.csv, row 3: {why} (source.columns.uri gives all images the same extension)",
    )


def test_a_parquet_that_is_none_fails_the_run(folder):
    (ref,) = refer(folder, b"path,class\n", "list.parquet")
    assert (ref.status, ref.detail[:40]) == ("fatal", "it is not Parquet, or it is damaged: Par")


def test_a_manifest_without_rows_is_in_the_ledger(folder):
    (ref,) = refer(folder, b"path,class\n")
    assert (ref.status, ref.reason) == ("ignored", "no_rows")


def test_features_from_columns(folder):
    features = {"x/age": FeatureColumn(column="age", type="int64")}
    good, bad = refer(folder, b"path,class,age\na.jpg,cat,7\na.jpg,cat,x\n", features_from=features)
    assert good.features == '{"x/age":7}'
    assert bad.detail == "list.csv, row 3: column 'age': 'x' (str) is not a 64-bit integer"
    assert [each.key for each in Manifest(columns=COLUMNS, features_from=features).features()] == [
        "x/age"
    ]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"columns": Columns()}, "source.columns names either"),
        ({"preset": "vertex", "columns": COLUMNS}, "source.preset vertex knows its columns"),
        (
            {"columns": Columns(uri="a", boxes="b", box_labels="c", objects="d")},
            "source.columns.boxes and obj",
        ),
        (
            {"columns": COLUMNS, "class_names": ("a", "a")},
            "source.class_names: two classes are named 'a'",
        ),
        ({"columns": COLUMNS, "delimiter": "ab"}, "source.delimiter is 'ab': give one character"),
        ({"columns": COLUMNS, "quote": "\n"}, "source.quote is '\\\\n': give one character"),
        ({"columns": COLUMNS, "separator": ""}, "source.separator is empty"),
        ({"columns": COLUMNS, "split": "(a"}, r"source.split '\(a' is not a regular expression"),
        ({"columns": COLUMNS, "split": "a"}, "source.split 'a' has no group"),
        (
            {"columns": COLUMNS, "encoding": "utf-99"},
            "source.encoding 'utf-99' is not a known encoding",
        ),
    ],
)
def test_settings_that_cannot_be(settings, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        Manifest(**settings)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (Manifest(), {}),
        (Manifest(columns=Columns(uri="u", label="l")), {}),
        (Manifest(columns=Columns(uri="u", labels="l")), {"labels": "source.columns.labels"}),
        (Manifest(columns=Columns(uri="u", objects="o")), {"boxes": "source.columns.objects"}),
        (
            Manifest(columns=Columns(uri="u", boxes="b", box_labels="l")),
            {"boxes": "source.columns.boxes"},
        ),
        (
            Manifest(
                columns=Columns(uri="u", xmin="a", ymin="b", xmax="c", ymax="d", box_label="e")
            ),
            {"boxes": "source.columns.xmin"},
        ),
        (Manifest(preset="vertex"), {"boxes": "", "labels": ""}),
        (Manifest(preset="automl"), {"boxes": "", "labels": ""}),
    ],
)
def test_it_says_what_its_images_may_have(source, expected):
    assert source.annotations() == expected


def test_a_row_names_its_semantic_mask(folder):
    (folder / "m").mkdir()
    (folder / "m" / "a.png").write_bytes(b"mask")
    rows = b"path,mask\na.jpg,m/a.png\na.jpg,m/none.png\na.jpg,\na.jpg,../m.png\n"
    columns = Columns(uri="path", mask="mask")
    refs = refer(folder, rows, columns=columns, mask_threshold=9)
    found, missing, *rejected = refs
    version = str((folder / "m" / "a.png").stat().st_mtime_ns)
    assert found.files == (SourceFile("m/a.png", str(folder / "m" / "a.png"), 4, version),)
    assert dict(found.annotations) == {"segmentation": Segmentation("m/a.png", 9).pack()}
    uri, named_by = str(folder / "m" / "none.png"), "column 'mask' of list.csv, row 3"
    assert missing.files == (SourceFile("m/none.png", uri, named_by=named_by),)
    assert [(each.reason, each.detail) for each in rejected] == [
        ("bad_row", "list.csv, row 4: column 'mask' is empty"),
        ("outside_root", "list.csv, row 5: column 'mask': '../m.png' is not below source.root"),
    ]


def test_a_mask_is_lost_with_an_image_that_is_missing(folder):
    columns = Columns(uri="path", mask="mask")
    (lost,) = refer(folder, b"path,mask\nx.jpg,m.png\n", columns=columns)
    assert (lost.reason, dict(lost.annotations).keys()) == ("vanished", {"segmentation"})


def test_a_threshold_needs_a_column_of_masks():
    assert "mask_threshold" in Manifest(columns=COLUMNS).idle_settings()
    assert "mask_threshold" not in Manifest(columns=Columns(uri="u", mask="m")).idle_settings()


MASKED = Columns(uri="path", mask="mask")


def test_a_table_gives_the_colors_of_ids(folder):
    (folder / "colors.txt").write_text("128 0 0 cat\n0 0 0 other\n", encoding="utf-8")
    rows = b"path,mask\na.jpg,m.png\n"
    (ref,) = refer(folder, rows, columns=MASKED, mask_colors="colors.txt")
    packed = Segmentation("m.png", None, (pack_color(128, 0, 0), 0)).pack()
    assert dict(ref.annotations) == {"segmentation": packed}


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (None, "colors.txt (source.mask_colors): colors.txt: there is no such file"),
        (
            "cat\n",
            "colors.txt (source.mask_colors): line 1 of the table of colors is not R G B name",
        ),
    ],
)
def test_a_table_of_colors_that_cannot_be_used_fails_the_run(table, sentence, folder):
    if table is not None:
        (folder / "colors.txt").write_text(table, encoding="utf-8")
    rows = b"path,mask\na.jpg,m.png\n"
    (ref,) = refer(folder, rows, columns=MASKED, mask_colors="colors.txt")
    assert (ref.status, ref.reason, ref.detail) == ("fatal", "bad_manifest", sentence)


def test_colors_and_a_threshold_contradict_each_other():
    with pytest.raises(SettingError, match=r"^source\.mask_threshold is for masks of two levels"):
        Manifest(columns=MASKED, mask_colors="colors.txt", mask_threshold=3)
    assert "mask_colors" in Manifest(columns=COLUMNS).idle_settings()
