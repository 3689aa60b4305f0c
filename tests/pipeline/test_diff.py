"""`recordmill diff`: ten kinds of edits, each named rightly; two datasets, or a dataset and a
folder."""

import io
import json
import os
import random
import shutil

import golden_inputs
import pytest
from PIL import Image

from recordmill.pipeline.diff import main
from recordmill.pipeline.launch import launch
from recordmill.pipeline.run import build
from recordmill.reading.compare_datasets import KINDS
from tests.pipeline.conftest import encode_picture, write_class_folders

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

SEEDS = [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 20))]
LISTED = {
    "source": {"kind": "manifest", "columns": {"uri": "path", "label": "class", "split": "set"}},
    "splits": {"from_source": {"train": "train", "test": "test"}},
    "images": {"moments": True},
}
BOXES = {
    "source": {"kind": "yolo"},
    "convention": "tf_object_detection",
    "splits": {"fractions": {"all": 1.0}},
}


class Rows:
    """The rows of a manifest, by path."""

    def __init__(self, root):
        self.root = root
        self.rows = [line.split(",") for line in (root / "list.csv").read_text().splitlines()[1:]]

    def save(self):
        (self.root / "list.csv").unlink()
        (self.root / "list.csv").write_text(
            "path,class,set\n" + "".join(f"{','.join(row)}\n" for row in self.rows)
        )


def rewrite(path, content):
    path.unlink()  # the other night's input is a hard link
    path.write_bytes(content)


def add(root, chance):
    listed = Rows(root)
    path = f"new-{chance.randrange(99)}.jpg"
    (root / path).write_bytes(encode_picture((path, chance.random()), (8, 8)))
    listed.rows.append([path, "cat", "train"])
    listed.save()
    return {"added": [path]}


def remove(root, chance):
    listed = Rows(root)
    path, *_ = listed.rows.pop(chance.randrange(len(listed.rows)))
    listed.save()
    return {"removed": [path]}


def rename(root, chance):
    listed = Rows(root)
    row = chance.choice(listed.rows)
    old, row[0] = row[0], f"renamed-{row[0]}"
    (root / old).rename(root / row[0])
    listed.save()
    return {"renamed": [f"{old} -> {row[0]}"]}


def comment(root, chance):
    path = root / chance.choice(Rows(root).rows)[0]
    content = path.read_bytes()
    rewrite(path, content[:2] + b"\xff\xfe\x00\x07hello" + content[2:])
    return {"same_pixels": [path.name]}


def redraw(root, chance):
    path = root / chance.choice(Rows(root).rows)[0]
    rewrite(path, encode_picture((path.name, chance.random()), (8, 8)))
    return {"other_pixels": [path.name]}


def relabel(root, chance):
    listed = Rows(root)
    row = chance.choice(listed.rows)
    old, row[1] = row[1], "dog" if row[1] == "cat" else "cat"
    listed.save()
    return {"relabeled": [f"{row[0]}: {old} -> {row[1]}"]}


def move(root, chance):
    listed = Rows(root)
    row = chance.choice(listed.rows)
    old, row[2] = row[2], "train" if row[2] == "test" else "test"
    listed.save()
    return {"moved": [f"{row[0]}: {old} -> {row[2]}"]}


def enlarge_a_box(root, chance):
    number = chance.randrange(12)
    rewrite(
        root / f"labels/{number}.txt",
        f"{number % 2} 0.4 0.5 0.2 0.{chance.randrange(31, 60)}\n".encode(),
    )
    return {"annotations": [f"images/{number}.jpg: boxes"]}


def comment_unseen(root, chance):
    path = root / f"images/{chance.randrange(12)}.jpg"
    content = path.read_bytes()
    rewrite(path, content[:2] + b"\xff\xfe\x00\x07hello" + content[2:])
    return {"other_bytes": [f"images/{path.name}"]}


def change_a_setting(root, chance):
    return {"settings": [f"images.max_side: 65500 -> {chance.randrange(100, 65500)}"]}


EDITS = {
    **dict.fromkeys(
        (add, remove, rename, comment, redraw, relabel, move, change_a_setting), "listed"
    ),
    **dict.fromkeys((enlarge_a_box, comment_unseen), "boxes"),
}


def run(root, output, settings, *flags):
    given = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
    return launch(
        [f"--input={root}", f"--output={output}", "--set=report=false", *given, *flags], build
    )


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """`base(name)`: a folder with a collection, `input`, and its dataset; and its settings."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            pictures = folder / "input" / "images" if name == "boxes" else folder / "input"
            pictures.mkdir(parents=True)
            for number in range(12):
                (pictures / f"{number}.jpg").write_bytes(encode_picture(number, (8, 8)))
            if name == "boxes":
                (folder / "input" / "labels").mkdir()
                for number in range(12):
                    (folder / "input" / f"labels/{number}.txt").write_text(
                        f"{number % 2} 0.4 0.5 0.2 0.3\n"
                    )
                (folder / "input" / "data.yaml").write_text("names: [ship, boat]\n")
            else:
                places = ("cat,train", "dog,train", "cat,test", "dog,test")
                rows = "".join(f"{number}.jpg,{places[number % 4]}\n" for number in range(12))
                (pictures / "list.csv").write_text(f"path,class,set\n{rows}")
            settings = BOXES if name == "boxes" else LISTED
            assert run(folder / "input", folder / "dataset", settings) == 0
            made[name] = folder, settings
        return made[name]

    return make


@pytest.fixture
def diff(capsys):
    """`diff(path, other)`: the exit code, the kinds with their examples, and the settings."""

    def compare(path, other):
        capsys.readouterr()
        code = main([str(path), str(other), "--json"])
        said = capsys.readouterr()
        line = json.loads(said.out)
        found = {key: each for key, each in line["examples"].items() if key in KINDS}
        assert {kind: line[kind] for kind in found} == {
            kind: len(each) for kind, each in found.items()
        }
        if line["settings"]:
            found["settings"] = line["settings"]
        assert line["status"] == ("different" if found else "same")
        return code, found

    return compare


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_each_kind_of_edit_is_named(base, diff, tmp_path, edit, seed):
    folder, settings = base(EDITS[edit])
    changed = shutil.copytree(folder / "input", tmp_path / "input", copy_function=os.link)
    expected = edit(changed, random.Random(f"{edit.__name__} {seed}"))
    flags = [f"--set={each.replace(': 65500 -> ', '=')}" for each in expected.get("settings", ())]
    assert run(changed, tmp_path / "dataset", settings, *flags) == 0
    assert diff(folder / "dataset", tmp_path / "dataset") == (1, expected)


@pytest.mark.parametrize(
    "edit", [add, remove, rename, redraw, relabel, move], ids=lambda edit: edit.__name__
)
def test_a_dataset_is_compared_with_a_folder(base, diff, tmp_path, edit):
    folder, _ = base("listed")
    changed = shutil.copytree(folder / "input", tmp_path / "input", copy_function=os.link)
    assert diff(folder / "dataset", changed) == (0, {})
    expected = edit(changed, random.Random("folder"))
    if edit is redraw:
        expected = {"other_bytes": expected["other_pixels"]}
    assert diff(folder / "dataset", changed) == (1, expected)


def test_a_rejected_file_of_the_folder_is_not_new(convert, photos, diff):
    (photos / "cat" / "bad.jpg").write_bytes(b"no picture")
    assert convert(photos).code == 0
    assert diff(photos.parent / "dataset", photos) == (0, {})
    (photos / "cat" / "bad.jpg").write_bytes(encode_picture("new"))
    assert diff(photos.parent / "dataset", photos) == (1, {"added": ["cat/bad.jpg"]})


@pytest.mark.parametrize("name", ["photos.txt", "cat/00.jpg", "model.bin"])
def test_a_file_without_an_image_is_not_everything_removed(convert, photos, capsys, name):
    first = convert(photos)
    other = photos / name
    other.touch()
    capsys.readouterr()
    assert main([str(first.output), str(other), "--json"]) == 2
    sentence = json.loads(capsys.readouterr().out)["message"]
    assert (
        sentence == f"no image was read from the file {other}: name a folder of images or a dataset"
    )


def test_a_dataset_is_compared_with_a_file_that_lists_images(base, diff, tmp_path):
    folder, _ = base("listed")
    shutil.copytree(folder / "input", tmp_path / "input")
    assert diff(folder / "dataset", tmp_path / "input/list.csv") == (0, {})
    listed = Rows(tmp_path / "input")
    path, *_ = listed.rows.pop()
    listed.save()
    assert diff(folder / "dataset", tmp_path / "input/list.csv") == (1, {"removed": [path]})


def test_all_images_of_a_folder_may_be_removed(convert, photos, diff, tmp_path):
    first = convert(photos)
    (tmp_path / "empty").mkdir()
    code, found = diff(first.output, tmp_path / "empty")
    assert (code, found.keys()) == (1, {"removed"})


def test_a_note_says_that_a_folder_is_not_decoded(convert, photos, capsys):
    output = convert(photos).output
    (photos / "cat" / "bad.jpg").write_bytes(b"no picture")
    assert main([str(output), str(photos), "--no_json"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "added: 1 image",
        "  cat/bad.jpg",
        f"note: the images in {photos} were not decoded, nor filtered or limited, and what is "
        "drawn on them is not compared: "
        "for an exact answer, convert it and compare the datasets",
        "they differ: 10 images before, 11 after",
    ]


def test_a_file_moved_to_another_class_folder_is_renamed_and_relabeled(
    convert, photos, diff, tmp_path
):
    settings = {"splits.fractions": {"all": 1.0}}
    first = convert(photos, settings=settings)
    (photos / "cat/00.jpg").rename(photos / "dog/moved.jpg")
    shutil.copy(photos / "cat/01.jpg", photos / "cat/copy-1.jpg")
    (photos / "cat/01.jpg").rename(photos / "cat/copy-2.jpg")
    second = convert(photos, output=tmp_path / "second", settings=settings)
    assert diff(first.output, second.output) == (
        1,
        {
            "renamed": ["cat/00.jpg -> dog/moved.jpg"],
            "relabeled": ["dog/moved.jpg: cat -> dog"],
            "removed": ["cat/01.jpg"],
            "added": ["cat/copy-2.jpg", "cat/copy-1.jpg"],
        },
    )


def test_other_seeds_shards_and_ids_are_seen_through(convert, photos, diff, tmp_path):
    first = convert(photos, settings={"splits.fractions": {"all": 1.0}})
    others = {
        "splits.fractions": {"all": 1.0},
        "seed": 5,
        "shards.count": 3,
        "labels.classes": ["dog", "cat"],
    }
    second = convert(photos, output=tmp_path / "second", settings=others)
    code, found = diff(first.output, second.output)
    assert (code, found.keys()) == (1, {"settings"})
    assert found["settings"] == [
        "labels.classes: [] -> ['dog', 'cat']",
        "seed: 0 -> 5",
        "shards.count: not set -> 3",
        "labels.cat: 0 -> 1",
        "labels.dog: 1 -> 0",
    ]


def test_the_same_dataset_made_again(convert, photos, diff, tmp_path, capsys):
    first = convert(photos)
    second = convert(photos, output=tmp_path / "second")
    assert diff(first.output, second.output) == (0, {})
    assert main([str(first.output), str(second.output), "--no_json"]) == 0
    assert capsys.readouterr().err == "no differences: 10 images before, 10 after\n"


def test_numbers_of_classes_are_compared_by_their_names(convert, diff, tmp_path):
    folder = tmp_path / "cifar"
    folder.mkdir()
    for name, content in golden_inputs.cifar10().items():
        (folder / name).write_bytes(content)
    done = convert(folder, "--config=configs/cifar10.yaml")
    assert diff(done.output, folder) == (0, {})
    batch = folder / "data_batch_1.bin"
    batch.write_bytes(bytes([(batch.read_bytes()[0] + 1) % 10]) + batch.read_bytes()[1:])
    code, found = diff(done.output, folder)
    # The label is a byte of the record.
    assert (code, found.keys()) == (
        1,
        {"other_bytes", "relabeled"},
    )


def test_diff_prints_each_change_in_a_line(convert, tmp_path, capsys):
    photos = write_class_folders(tmp_path / "many", {"cat": 20})
    first = convert(photos, settings={"splits.fractions": {"all": 1.0}})
    for number in range(12):
        (photos / "cat" / f"{number:02}.jpg").unlink()
    settings = {"splits.fractions": {"all": 1.0}, "images.quality": 80}
    second = convert(photos, output=tmp_path / "second", settings=settings)
    assert main([str(first.output), str(second.output), "--no_json"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert (lines[0], lines[11:]) == (
        "removed: 12 images",
        [
            "  and 2 more",
            "setting images.quality: 95 -> 80",
            "they differ: 20 images before, 8 after",
        ],
    )


def test_pixels_are_compared_where_both_were_decoded(convert, photos, diff, tmp_path):
    (photos / "cat/00.png").write_bytes(encode_picture("png", kind="PNG"))
    first = convert(photos)
    with Image.open(photos / "cat/00.png") as image:
        stream = io.BytesIO()
        image.save(stream, "PNG", compress_level=0)
    (photos / "cat/00.png").write_bytes(stream.getvalue())
    second = convert(photos, output=tmp_path / "second")
    assert diff(first.output, second.output) == (1, {"same_pixels": ["cat/00.png"]})


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ("nowhere", "{} cannot be compared: the input cannot be read (no such file or directory)"),
        ("damaged", "the sidecar {}/sidecars/{} cannot be understood ('key'): restore it"),
        ("unordered", "the rows of {}/sidecars/{} are not in order: verify the dataset"),
    ],
)
def test_what_cannot_be_read_is_neither_same_nor_different(
    convert, photos, tmp_path, capsys, other, sentence
):
    first = convert(photos, settings={"splits.fractions": {"all": 1.0}})
    path = tmp_path / other
    (name,) = os.listdir(first.output / "sidecars")
    if other != "nowhere":
        shutil.copytree(first.output, path)
        lines = (path / "sidecars" / name).read_bytes().splitlines(keepends=True)
        lines = [b"{}\n", *lines] if other == "damaged" else lines[::-1]
        (path / "sidecars" / name).write_bytes(b"".join(lines))
    capsys.readouterr()
    assert main([str(first.output), str(path), "--json"]) == 2
    line = json.loads(capsys.readouterr().out)
    assert (line["exit_code"], line["message"]) == (2, sentence.format(path, name))
