"""Files in archives that no source claims: they stop a recognized run, as those in folders do."""

import itertools
import random

import pytest
from packed_inputs import pack
from paired_inputs import photo
from plan_in_process import content_of, plan
from printed_commands import printed_flags

CLASSES = {f"{label}/{at}.jpg": photo((label, at)) for label in ("cat", "dog") for at in range(3)}
CVAT = b'<?xml version="1.0"?>\n<annotations><image name="1.jpg"><tag label="cat"/></image>'
PATHS = b"".join(f"{path}\n".encode() for path in CLASSES)
PROSE = b"The pets were photographed by hand in the spring of last year. Some are blurred.\n"


def follow(folder):
    """What the first plan says, and what comes of the command that it prints."""
    first = plan(folder)
    assert first.exit_code == 2, first.message
    ((flag, *values),) = printed_flags(first.message)
    assert flag == "--set"
    return first.message, plan(folder, *(value for value in values if value != "--set"))


EXTRAS = {
    "annotations.xml": (CVAT, "CVAT's XML"),
    "labels.csv": (b"name,label\n1.jpg,cat\n", "tables"),
    "train.txt": (PATHS, "names of images"),
    "classes.txt": (b"cat\ndog\n", "files of an unknown kind"),
    "train": (PATHS, "names of images"),
    "via.json": (b'{"1.jpg9": {"regions": []}}', "VIA's JSON"),
    "setid.mat": (b"MATLAB 5.0", "arrays"),
    "masks.npz": (b"PK\3\4", "arrays"),
    "boxes.pkl": (b"\x80\4", "arrays"),
    "labels.db": (b"SQLite format 3\0", "arrays"),
    "depth.exr": (b"v/1\1", "second images"),
    "more.zip": (b"PK\3\4", "archives"),
    "[a]* 'b'!.xml": (CVAT, "CVAT's XML"),
}


@pytest.mark.parametrize(
    ("name", "ending"),
    [(name, ("zip", "tar", "tar.gz")[at % 3]) for at, name in enumerate(EXTRAS)],
)
def test_a_member_that_may_carry_labels_stops_the_run(name, ending, tmp_path):
    data, said = EXTRAS[name]
    draw = random.Random(f"{name} {ending}")
    for at in ("", "cat/", "dog/more/", "other/"):
        number = draw.randint(0, 99)
        archive = tmp_path / f"{number}{at.replace('/', '-')}" / f"pets.{ending}"
        pack(archive, {**CLASSES, f"{at}{name}": data})
        message, after = follow(archive.parent)
        assert f"pets.{ending}/{at}{name} ({said})" in message
        assert (after.exit_code, content_of(after)) == (0, (6, 0, ["cat", "dog"], {}))


def test_several_archives_and_several_members(tmp_path):
    cows = {path.replace("cat", "cow"): data for path, data in CLASSES.items()}
    pack(tmp_path / "a.zip", {**CLASSES, "cat/labels.csv": b"a,b\n"})
    pack(tmp_path / "b.zip", {**cows, "x/annotations.xml": CVAT, "notes.txt": PROSE})
    message, after = follow(tmp_path)
    assert "b.zip/x/annotations.xml (CVAT's XML), a.zip/cat/labels.csv (tables)" in message
    assert content_of(after)[:3] == (12, 0, ["cat", "cow", "dog"])


@pytest.mark.parametrize("folder", ["", "cat/", "labels/", "cat/labels/"])
@pytest.mark.parametrize("ending", [".xml", ".txt", ""])
def test_any_number_of_members_is_left_out(folder, ending, tmp_path):
    texts = {f"{folder}text{number}{ending}": b"a cat\n" for number in range(100)}
    pack(tmp_path / "pets.zip", {**CLASSES, **texts})
    _, after = follow(tmp_path)
    assert (after.exit_code, content_of(after)) == (0, (6, 0, ["cat", "dog"], {}))


def samples(*more):
    parts = (
        (f"{at:03}.{part}", b"1" if part == "cls" else photo(at))
        for at, part in itertools.product(range(5), ("cls", "jpg"))
    )
    return {**dict(more), **dict(parts)}


@pytest.mark.parametrize("name", ["labels.csv", "annotations.xml", "train.txt", "meta.json"])
def test_a_member_next_to_the_samples_of_webdataset_stops_the_run(name, tmp_path):
    data = {"train.txt": b"000.jpg\n", "meta.json": b"{}"}.get(name, b"a,b\n1,2\n")
    pack(tmp_path / "pets-0.tar", samples((name, data)))
    message, after = follow(tmp_path)
    assert f"pets-0.tar/{name}" in message
    assert (after.exit_code, content_of(after)) == (0, (5, 0, ["1"], {}))


def test_what_is_left_of_a_sample_is_rejected_and_does_not_stop_the_run(tmp_path):
    pack(tmp_path / "pets-0.tar", {**samples(), "900.cls": b"1", "901.txt": b"a cat"})
    planned = plan(tmp_path)
    assert (planned.exit_code, content_of(planned)[3]) == (0, {"bad_sample": 2})


@pytest.mark.parametrize("ending", ["zip", "tar", "tar.gz"])
def test_members_that_describe_a_collection_are_ignored(ending, tmp_path):
    texts = {"README.md": b"# Pets", "LICENSE": PROSE, "cat/README.txt": PROSE}
    pack(tmp_path / f"pets.{ending}", {**CLASSES, **texts})
    planned = plan(tmp_path)
    assert (planned.exit_code, content_of(planned)) == (0, (6, 0, ["cat", "dog"], {}))
    assert planned.summary.ignored == {"description": 3}


def test_prose_and_images_without_an_extension_do_not_stop_the_run(tmp_path):
    bare = {path.removesuffix(".jpg"): data for path, data in CLASSES.items()}
    pack(tmp_path / "pets.zip", {**CLASSES, **bare, "notes.txt": PROSE})
    planned = plan(tmp_path)
    assert (planned.exit_code, planned.message) == (0, planned.message)
    assert content_of(planned)[:3] == (12, 0, ["cat", "dog"])


def test_members_that_the_user_chooses_are_not_missed(tmp_path):
    pack(tmp_path / "pets.zip", {**CLASSES, "labels.csv": b"a,b\n"})
    assert plan(tmp_path, 'source.members=["cat/", "dog/"]').exit_code == 0
