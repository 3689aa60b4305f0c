"""Mask files are source files, as images are: updates, `exclude`, and files that cannot be read."""

import errno
import hashlib
import io
import os

import numpy as np
import pytest
from PIL import Image

from recordmill import storage
from recordmill.pipeline.verify import main as verify
from tests.pipeline.conftest import encode_picture

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

TIME = 1_700_000_000
NOT_COMPARED = {"recordmill.json", "records.versions", "report.html", "config.yaml"}
SETTINGS = {
    "name": "masks",
    "shards.count": 2,
    "splits.fractions": {"train": 1},
    "report": False,
    "max_rejected.share": 0.5,
    "max_rejected.segmentation.share": 0.5,
    "max_rejected.masks.share": 0.5,
    "max_rejected.boxes.share": 0.5,
}
OBJECTS = SETTINGS | {"source.kind": "voc", "convention": "tf_object_detection", "masks": "png"}
del OBJECTS["max_rejected.segmentation.share"]
COLORS = {
    "source": {
        "kind": "manifest",
        "columns": {"uri": "image", "mask": "mask"},
        "mask_colors": "colors.txt",
    },
    "convention": "deeplab",
}
SEMANTIC = {key: value for key, value in SETTINGS.items() if "boxes" not in key} | COLORS
del SEMANTIC["max_rejected.masks.share"]
TABLE = "0 0 0 ground\n1 0 0 tree\n2 0 0 car\n"


def write(path, content, time=TIME):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.utime(path, (time, time))


def draw(number, low=1):
    """Two objects in the image of a number, or two classes; all masks have the same size."""
    values = np.zeros((16, 24), np.uint8)
    values[2 : 8 + number % 4, 3:9] = low
    values[4:12, 12:20] = low + 1
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG", compress_level=0)
    return file.getvalue()


XML = """<annotation><filename>{0}.jpg</filename>
<size><width>24</width><height>16</height></size>
<object><name>cat</name><bndbox><xmin>3</xmin><ymin>2</ymin><xmax>9</xmax><ymax>12</ymax></bndbox>
</object><object><name>dog</name>
<bndbox><xmin>12</xmin><ymin>4</ymin><xmax>20</xmax><ymax>12</ymax></bndbox></object></annotation>
"""


@pytest.fixture(params=["objects", "semantic"])
def collection(request, tmp_path):
    """Six images with a mask file each: the settings, the root, and the folder of the masks."""
    root = tmp_path / "collection"
    folder = root / "SegmentationObject" if request.param == "objects" else root / "masks"
    images = root / "JPEGImages" if request.param == "objects" else root / "images"
    rows = ["image,mask"]
    for number in range(6):
        write(images / f"{number}.jpg", encode_picture(number))
        write(folder / f"{number}.png", draw(number))
        if request.param == "objects":
            write(root / f"Annotations/{number}.xml", XML.format(number))
        rows.append(f"images/{number}.jpg,masks/{number}.png")
    if request.param == "semantic":
        write(root / "list.csv", "\n".join(rows))
        write(root / "colors.txt", TABLE)
    return (OBJECTS if request.param == "objects" else SEMANTIC), root, folder


def contents(done):
    """All that a rebuild must give again."""
    files = {name: (done.output / name).read_bytes() for name in done.files - NOT_COMPARED}
    return files | {"recordmill.json": done.lasting_marker}


def check_update(convert, first, root, settings, decoded, tmp_path):
    """Checks that an update equals a rebuild and decodes nothing; returns it."""
    before = contents(first)
    rebuilt = convert(root, settings=settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(root, "--update", settings=settings, output=first.output)
    assert updated.code == rebuilt.code == 0, updated.stderr
    assert contents(updated) == contents(rebuilt) != before
    assert decoded == []
    return updated


def test_an_update_after_an_edited_mask_equals_a_rebuild(collection, convert, decoded, tmp_path):
    settings, root, folder = collection
    first = convert(root, settings=settings, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    assert len(first.rows()) == 6
    write(folder / "2.png", draw(3), TIME + 1)
    check_update(convert, first, root, settings, decoded, tmp_path)


def test_an_update_after_a_mask_was_removed_and_added_equals_a_rebuild(
    collection, convert, decoded, tmp_path
):
    settings, root, folder = collection
    mask = (folder / "2.png").read_bytes()
    (folder / "2.png").unlink()
    first = convert(root, settings=settings, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    write(folder / "2.png", mask)
    (folder / "3.png").unlink()
    before = contents(first)
    rebuilt = convert(root, settings=settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(root, "--update", settings=settings, output=first.output)
    assert contents(updated) == contents(rebuilt) != before
    assert len(decoded) <= 2


def test_an_update_after_an_edited_image_equals_a_rebuild(collection, convert, decoded, tmp_path):
    settings, root, _ = collection
    first = convert(root, settings=settings, output=tmp_path / "dataset")
    image = next(root.rglob("2.jpg"))
    write(image, encode_picture("other"), TIME + 1)
    rebuilt = convert(root, settings=settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(root, "--update", settings=settings, output=first.output)
    assert contents(updated) == contents(rebuilt)
    assert len(decoded) == 1


def test_a_mask_that_changed_within_two_seconds_is_read_again(collection, convert, tmp_path):
    """Its modification time may be the same, where file systems have coarse timestamps."""
    settings, root, folder = collection
    times = os.stat(root).st_mtime_ns
    os.utime(folder / "2.png", ns=(times, times))
    first = convert(root, settings=settings, output=tmp_path / "dataset")
    (folder / "2.png").write_bytes(draw(3))
    os.utime(folder / "2.png", ns=(times, times))
    rebuilt = convert(root, settings=settings, output=tmp_path / "rebuilt")
    updated = convert(root, "--update", settings=settings, output=first.output)
    assert contents(updated) == contents(rebuilt)


@pytest.mark.parametrize("collection", ["semantic"], indirect=True)
@pytest.mark.parametrize("table", [TABLE.replace("1 0 0", "9 0 0"), f"{TABLE}3 0 0 sky\n"])
def test_an_update_after_an_edited_color_table_equals_a_rebuild(
    collection, table, convert, decoded, tmp_path
):
    settings, root, folder = collection
    write(folder / "2.png", draw(2, low=2))  # its values are 2 and 3
    write(folder / "3.png", draw(2, low=8))  # its values are 8 and 9
    first = convert(root, settings=settings, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    write(root / "colors.txt", table, TIME + 1)
    before = contents(first)
    rebuilt = convert(root, settings=settings, output=tmp_path / "rebuilt")
    decoded.clear()
    updated = convert(root, "--update", settings=settings, output=first.output)
    assert updated.code == rebuilt.code, updated.stderr
    if updated.code == 0:
        assert contents(updated) == contents(rebuilt) != before
        assert len(decoded) <= 2  # those that were rejected


@pytest.mark.parametrize("collection", ["objects"], indirect=True)
@pytest.mark.parametrize(
    "changed", [{"labels.classes": ["dog", "cat"]}, {"labels.rename": {"cat": "lynx"}}]
)
def test_an_update_after_edited_classes_equals_a_rebuild(
    collection, changed, convert, decoded, tmp_path
):
    settings, root, _ = collection
    first = convert(root, settings=settings, output=tmp_path / "dataset")
    assert first.code == 0, first.stderr
    check_update(convert, first, root, settings | changed, decoded, tmp_path)


LINES = {
    "key": lambda path, root: f"key:{path.relative_to(root)}",
    "digest": lambda path, root: f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}",
}


@pytest.mark.parametrize(
    ("line", "is_faulty"), [*zip(LINES, (False, True), strict=True)], ids=["intact", "faulty"]
)
def test_exclude_leaves_out_the_image_of_a_mask_without_a_trace(
    collection, line, is_faulty, convert, tmp_path, capsys
):
    settings, root, folder = collection
    write(folder / "2.png", draw(3))  # unlike that of any other image
    write(folder / "3.png", draw(0))
    if is_faulty:
        write(folder / "2.png", b"no mask")
    digest = hashlib.sha256((folder / "2.png").read_bytes()).hexdigest()
    key = str((folder / "2.png").relative_to(root))
    removed = tmp_path / "removed.txt"
    removed.write_text(f"{LINES[line](folder / '2.png', root)}\n", encoding="utf-8")
    kept = convert(root, settings=settings, output=tmp_path / "dataset")
    assert kept.code == 0, kept.stderr
    has_trace = line == "key" or not is_faulty  # nothing was read from a faulty mask
    if has_trace and not (is_faulty and settings is OBJECTS):
        assert verify([str(kept.output), f"--absent={removed}", "--level=frames"]) == 1
        assert key in capsys.readouterr().out or line == "digest"
    excluding = settings | {"exclude": str(removed)}
    done = convert(root, settings=excluding, output=tmp_path / "excluded")
    assert done.code == 0, done.stderr
    assert done.marker["ledger"]["left_out"] == {"excluded": 1}
    for path in (each for each in done.output.rglob("*") if each.is_file()):
        content = path.read_bytes()
        assert key.encode() not in content, path
        assert digest.encode() not in content, path
    assert verify([str(done.output), f"--absent={removed}", "--level=frames"]) == 0
    updated = convert(root, "--update", settings=excluding, output=kept.output)
    assert contents(updated) == contents(done)


@pytest.mark.parametrize("policy", ["together", "drop"])
def test_copies_of_an_image_whose_mask_is_excluded_change_nothing(
    collection, policy, convert, tmp_path
):
    settings, root, folder = collection
    image = next(root.rglob("2.jpg"))
    write(image.with_name("3.jpg"), image.read_bytes())
    removed = tmp_path / "removed.txt"
    removed.write_text(f"key:{(folder / '2.png').relative_to(root)}\n", encoding="utf-8")
    settings = settings | {"exclude": str(removed), "duplicates": policy}
    if policy == "together":
        settings["splits.fractions"] = {"train": 0.5, "test": 0.5}
    done = convert(root, settings=settings, output=tmp_path / "dataset")
    assert done.code == 0, done.stderr
    assert done.marker["ledger"]["left_out"] == {"excluded": 1}
    written = {row["key"] for row in done.rows() if row["key"]}
    assert {key.rpartition("/")[2] for key in written} == {f"{n}.jpg" for n in (0, 1, 3, 4, 5)}


@pytest.mark.parametrize("policy", ["keep", "drop"])
@pytest.mark.parametrize("number", [2, 3], ids=["the same mask", "another mask"])
def test_copies_of_an_image_conflict_if_their_mask_files_differ(
    collection, policy, number, convert, tmp_path
):
    settings, root, folder = collection
    image = next(root.rglob("2.jpg"))
    write(image.with_name("3.jpg"), image.read_bytes())
    write(folder / "3.png", draw(number))
    if policy == "drop":
        settings = settings | {"duplicates": policy}
    done = convert(root, settings=settings, output=tmp_path / "dataset")
    assert done.code == 0, done.stderr
    kinds = "semantic masks" if "source" in settings else "masks"
    same = done.marker["duplicates"]["same_bytes"]
    said = [note for note in done.line["notes"] if "its copy" in note]
    copy = str(image.with_name("3.jpg").relative_to(root))
    first = str(image.relative_to(root))
    what = f"{first}: its copy {copy}, which was dropped, has other {kinds}"
    differs = number == 3
    assert said == ([what] if differs and policy == "drop" else [])
    assert same.get("conflicting_annotations") == (1 if differs and policy == "keep" else None)


FAILURES = {
    "unreadable": (PermissionError(errno.EACCES, "no"), "unreadable"),
    "vanished": (FileNotFoundError(errno.ENOENT, "gone"), "vanished"),
}


@pytest.mark.parametrize(
    ("collection", "failure"),
    [*zip(("objects", "semantic", "objects"), (*FAILURES, "changed"), strict=True)],
    indirect=["collection"],
)
def test_a_mask_that_cannot_be_read_for_a_while_is_read_by_the_next_run(
    collection, failure, convert, decoded, monkeypatch, tmp_path
):
    settings, root, _ = collection
    rebuilt = convert(root, settings=settings, output=tmp_path / "rebuilt")
    read = storage.read_range

    def fail(path, *arguments):
        if not path.endswith("2.png"):
            return read(path, *arguments)
        if failure == "changed":
            return read(path, *arguments)[:-1]
        raise FAILURES[failure][0]

    monkeypatch.setattr(storage, "read_range", fail)
    first = convert(root, settings=settings, output=tmp_path / "dataset")
    monkeypatch.setattr(storage, "read_range", read)
    assert first.code == 0, first.stderr
    assert first.marker["ledger"]["rejected"] == {failure: 1}
    (row,) = [row for row in first.rows() if "rejected" in row]
    assert (row["stage"], row["rejected"]) == ("read", failure)
    assert row["detail"].startswith(
        "SegmentationObject/2.png: " if settings is OBJECTS else "masks/2.png: "
    )
    decoded.clear()
    again = convert(root, "--update", settings=settings, output=first.output)
    assert contents(again) == contents(rebuilt)
    assert len(decoded) == 1


def test_a_store_that_fails_while_a_mask_is_read_fails_the_run(
    collection, convert, monkeypatch, tmp_path
):
    settings, root, _ = collection
    read = storage.read_range

    def fail(path, *arguments):
        if path.endswith("2.png"):
            raise OSError(errno.EIO, "the disk is broken", path)
        return read(path, *arguments)

    monkeypatch.setattr("recordmill.storage.packed_files.RETRY_SECONDS", ())
    monkeypatch.setattr(storage, "read_range", fail)
    done = convert(root, settings=settings, output=tmp_path / "dataset")
    assert done.code not in (0, 3)
    assert "the disk is broken" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "dataset" / "recordmill.json").exists()
    assert done.line["status"] == "failed"
