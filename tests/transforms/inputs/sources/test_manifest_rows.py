import pytest
from carried_annotations import boxes_in, labels_in

from recordmill.annotations.boxes import boxes_of
from recordmill.schemas.image_ref import ClassNames, ImageRef
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.sources.manifest import Manifest, RowReader
from recordmill.transforms.inputs.tables.cells import TableRow
from recordmill.transforms.inputs.tables.manifest_columns import Columns, ManifestEntry


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in" / "images").mkdir(parents=True)
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / "in" / "images" / name).write_bytes(name.encode())
    return tmp_path


COLUMNS = Columns(uri="path")
BOXES = Columns(uri="path", xmin="xmin", ymin="ymin", xmax="xmax", ymax="ymax", box_label="class")


def refer(folder, *entries, word="", columns=COLUMNS, **settings):
    file = ImageRef("pets/in/list.csv", str(folder / "in/list.csv"), 99, "1", split="train")
    referrer = RowReader(Manifest(columns=columns, **settings), file, "in/list.csv", word)
    return list(
        referrer.list_references(
            (TableRow(n, entry) for n, entry in enumerate(entries, 2)), lambda entry: entry
        )
    )


def test_paths_are_below_the_manifest_and_keys_below_the_input(folder):
    (ref,) = refer(
        folder,
        ManifestEntry(uri="images/./a.jpg", label="cat", group="g", split="test", sha256="AB" * 32),
    )
    path = folder / "in" / "images" / "a.jpg"
    version = str(path.stat().st_mtime_ns)
    assert ref == ImageRef(
        "pets/in/images/a.jpg",
        str(path),
        5,
        version,
        label="cat",
        group="g",
        split="test",
        sha256="ab" * 32,
    )


def test_the_split_of_the_folder_stays_where_the_row_has_none(folder):
    assert [ref.split for ref in refer(folder, ManifestEntry(uri="images/a.jpg"))] == ["train"]


@pytest.mark.parametrize("root", ["images", "{}/in/images", "../in/images/"])
def test_a_root_of_its_own(root, folder):
    root = root.format(folder)
    whole = ManifestEntry(uri=str(folder / "in/images/b.jpg"))
    refs = refer(folder, ManifestEntry(uri="a.jpg"), whole, root=root)
    assert [(ref.key, ref.uri) for ref in refs] == [
        ("pets/a.jpg", str(folder / "in/images/a.jpg")),
        ("pets/b.jpg", str(folder / "in/images/b.jpg")),
    ]


def test_files_on_a_store_are_not_checked(folder):
    (ref, bad) = refer(
        folder,
        ManifestEntry(uri="gs://bucket/x/a.jpg"),
        ManifestEntry(uri="gs://other/a.jpg"),
        root="gs://bucket/x/",
    )
    assert (ref.key, ref.uri, ref.size, ref.version) == (
        "pets/a.jpg",
        "gs://bucket/x/a.jpg",
        -1,
        "",
    )
    assert bad.reason == "outside_root"


def test_given_keys_are_in_nfc(folder):
    (ref,) = refer(folder, ManifestEntry(uri="images/a.jpg", key="e\u0301/1"))
    assert ref.key == "pets/\u00e9/1"


@pytest.mark.parametrize(
    "uri",
    ["../in/images/a.jpg", "/etc/passwd", "http://x/a.jpg", "file:///etc/passwd", "link", "."],
)
def test_nothing_outside_the_root_is_touched(uri, folder):
    (folder / "in" / "link").symlink_to("/etc/passwd")
    (ref,) = refer(folder, ManifestEntry(uri=uri))
    assert (ref.status, ref.reason, ref.key, ref.size) == (
        "rejected",
        "outside_root",
        "pets/in/list.csv/000002",
        -1,
    )
    assert ref.detail.startswith("list.csv, row 2: ")


def test_bad_rows_say_where_they_are(folder):
    def reader(cells):
        raise Rejected("list", "bad_row", "column 'x' is empty")

    file = ImageRef("list.csv", str(folder / "list.csv"), 9)
    rows = [TableRow(2, {}), TableRow(3, None, fault="it is none")]
    refs = list(RowReader(Manifest(), file, "list.csv").list_references(rows, reader))
    assert [(ref.key, ref.status, ref.reason, ref.detail) for ref in refs] == [
        ("list.csv/000002", "rejected", "bad_row", "list.csv, row 2: column 'x' is empty"),
        ("list.csv/000003", "rejected", "bad_row", "list.csv, row 3: it is none"),
    ]


def test_a_digest_that_is_none(folder):
    (ref,) = refer(folder, ManifestEntry(uri="images/a.jpg", sha256="abc"))
    assert (ref.reason, ref.detail) == (
        "bad_row",
        "list.csv, row 2: its digest 'abc' is not a SHA-256 in hex",
    )


def test_images_in_rows(folder):
    one, other = refer(
        folder, ManifestEntry(label="a"), ManifestEntry(key="k"), columns=Columns(bytes="image")
    )
    assert (one.key, one.offset, one.length, one.packing, one.size) == (
        "pets/in/list.csv/000002",
        1,
        -1,
        "parquet",
        -1,
    )
    assert (other.key, other.uri) == ("pets/k", str(folder / "in/list.csv"))


def test_classes_of_several_labels_are_announced_once_each(folder):
    entries = [
        ManifestEntry(uri="images/a.jpg", labels=["x", "y", "x"], features={"n": 1}),
        ManifestEntry(uri="images/b.jpg", boxes=[[0, 0, 1, 1]], box_labels=["y"]),
    ]
    announced, one, other = refer(folder, *entries, boxes_unit="fraction")
    assert announced == ClassNames.of(
        ImageRef("pets/in/list.csv", str(folder / "in/list.csv")), ["x", "y"]
    )
    assert (one.features, labels_in(one), boxes_in(one)) == ('{"n":1}', ["x", "y"], None)
    assert other.features == ""
    assert boxes_in(other) == boxes_of([[0, 0, 1, 1]], ["y"], fractions=True)


def box(name, label, **more):
    return ManifestEntry(uri=f"images/{name}.jpg", boxes=[[0, 0, 1, 1]], box_labels=[label], **more)


def test_rows_of_boxes_of_one_image_are_joined_wherever_they_stand(folder):
    entries = (box("a", "x", size=(4, 3)), box("b", "x"), box("a", "y", size=(4, 3)))
    a, b = (ref for ref in refer(folder, *entries, columns=BOXES) if not ref.status)
    assert (a.key, b.key) == ("pets/in/images/a.jpg", "pets/in/images/b.jpg")
    assert boxes_in(a) == boxes_of([[0, 0, 1, 1]] * 2, ["x", "y"], drawn_on_size=(4, 3))
    assert boxes_in(b) == boxes_of([[0, 0, 1, 1]], ["x"])


@pytest.mark.parametrize(
    ("entries", "detail"),
    [
        (
            (
                box("a", "x"),
                ManifestEntry(uri="images/a.jpg", boxes=[], fault="no box"),
                box("a", "y"),
            ),
            "row 3: no box",
        ),
        (
            (ManifestEntry(uri="images/a.jpg", boxes=[], fault="no box"), box("a", "y")),
            "row 2: no box",
        ),
        (
            (box("a", "x"), box("a", "y"), box("a", "y", split="t")),
            "row 4: its split is 't', and an earlier row of 'images/a.jpg' has ''",
        ),
    ],
)
def test_a_bad_row_of_a_box_rejects_its_image(folder, entries, detail):
    refs = [
        ref
        for ref in refer(folder, *entries, box("b", "x"), columns=BOXES)
        if ref.status in ("", "rejected")
    ]
    assert [(ref.status, ref.reason, ref.detail) for ref in refs] == [
        ("rejected", "bad_row", f"list.csv, {detail}"),
        ("", "", ""),
    ]


def test_the_word_of_the_manifest_is_for_rows_without_a_split(folder):
    refs = refer(
        folder,
        ManifestEntry(uri="images/a.jpg"),
        ManifestEntry(uri="images/b.jpg", split="test"),
        word="val",
    )
    assert [ref.split for ref in refs] == ["val", "test"]


def test_a_path_may_be_written_as_on_windows(folder):
    (ref,) = refer(folder, ManifestEntry(uri="images\\a.jpg"))
    assert (ref.status, ref.key) == ("", "pets/in/images/a.jpg")
    (folder / "in" / "c\\d.jpg").write_bytes(b"d")
    (own,) = refer(folder, ManifestEntry(uri="c\\d.jpg"))
    assert own.uri.endswith("/in/c\\d.jpg")
    (gone,) = refer(folder, ManifestEntry(uri="images\\..\\..\\..\\x.jpg"))
    assert (gone.status, gone.reason) == ("rejected", "outside_root")


def test_boxes_of_a_missing_image_are_in_the_ledger(folder):
    entry = ManifestEntry(
        uri="images/gone.jpg", boxes=[[1, 2, 3, 4]] * 2, box_labels=["cat", "dog"]
    )
    (ref,) = refer(folder, entry, columns=BOXES)
    assert (ref.status, ref.reason, boxes_in(ref).count) == ("rejected", "vanished", 2)
