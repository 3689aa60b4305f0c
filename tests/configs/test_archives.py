"""One collection in archives of every kind gives the Examples of the same files in folders."""

import io
import json
import tarfile
import zipfile

import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

IMAGES = [f"{label}/{number}.jpg" for label in ("cat", "dög") for number in range(6)]


def write_tar(path, files, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def write_zip(path, files, method):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)


WRITERS = {
    "pets.tar": write_tar,
    "pets.tar.gz": lambda path, files: write_tar(path, files, "w:gz"),
    "stored.zip": lambda path, files: write_zip(path, files, zipfile.ZIP_STORED),
    "deflated.zip": lambda path, files: write_zip(path, files, zipfile.ZIP_DEFLATED),
}


@pytest.fixture
def pets(picture):
    return {name: picture(name) for name in IMAGES}


@pytest.mark.parametrize("archive", WRITERS)
def test_an_archive_gives_what_is_in_it(archive, pets, tmp_path, convert):
    WRITERS[archive](tmp_path / archive, pets)
    marker, examples = convert(
        "archives.yaml", tmp_path / archive, "--set", "splits.fractions={train: 1.0}"
    )
    assert marker["labels"] == {"cat": 0, "dög": 1}
    assert marker["ledger"]["listed"] == marker["ledger"]["written"] == len(pets)
    found = {
        (each["image/class/text"][0].decode(), each["image/encoded"][0])
        for each in examples["train"]
    }
    assert found == {(name.partition("/")[0], data) for name, data in pets.items()}
    keys = [
        json.loads(line)["key"] for line in sidecar_lines(tmp_path / "dataset-of-archives.yaml")
    ]
    assert sorted(keys) == sorted(f"{archive}/{name}" for name in pets)


def test_a_folder_around_everything_is_in_a_note(pets, tmp_path, convert):
    write_zip(
        tmp_path / "pets.zip",
        {f"pets/{name}": data for name, data in pets.items()},
        zipfile.ZIP_STORED,
    )
    marker, _ = convert(
        "archives.yaml", tmp_path / "pets.zip", "--set", "splits.fractions={train: 1.0}"
    )
    (note,) = [note for note in marker["notes"] if "class pets" in note]
    assert note.endswith("if those are the classes, set source.class_from=last_folder")


def sidecar_lines(folder):
    return [
        line
        for path in folder.rglob("*.jsonl")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def test_a_folder_of_archives_is_read_whole_and_the_rest_of_it_ignored(pets, tmp_path, convert):
    folder = tmp_path / "folder"
    (folder / "more").mkdir(parents=True)
    for name, write in WRITERS.items():
        write(folder / "more" / name, {f"{name}/{member}": data for member, data in pets.items()})
    (folder / "README.txt").write_text("read me", encoding="utf-8")
    marker, _ = convert("archives.yaml", folder, "--set", "source.class_from=last_folder")
    assert marker["ledger"]["written"] == 4 * len(pets)
    assert marker["ledger"]["ignored"] == {"description": 1}


# Of decoders, about what is wrong with some of the files.
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_tar_of_real_images_gives_what_their_folder_gives(shared_data, tmp_path, convert):
    folder = shared_data / "odd-images"
    names = sorted(
        f"{path.parent.name}/{path.name}" for path in folder.glob("*/*.*") if path.is_file()
    )
    names = [name for name in names if "/." not in name][::6]
    write_tar(tmp_path / "odd.tar", {name: (folder / name).read_bytes() for name in names})
    for name in names:
        (tmp_path / "odd" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "odd" / name).write_bytes((folder / name).read_bytes())
    settings = (
        "--set",
        "splits.fractions={train: 1.0}",
        "--set",
        "max_rejected={count: 9999, lost_classes: 99}",
    )
    in_tar, of_tar = convert("archives.yaml", tmp_path / "odd.tar", *settings)
    in_folder, of_folder = convert("class_folders.yaml", tmp_path / "odd", *settings)
    assert in_tar["ledger"] == in_folder["ledger"]
    assert in_tar["ledger"]["listed"] == len(names) > 300
    assert sorted(of_tar["train"], key=repr) == sorted(of_folder["train"], key=repr)


def test_webdatasets_shards_keep_labels_captions_and_splits(picture, tmp_path, convert):
    shards = tmp_path / "shards"
    shards.mkdir()
    expected = {"train": {}, "validation": {}}
    for shard, split in (
        ("pets-train-000", "train"),
        ("pets-train-001", "train"),
        ("pets-val-000", "validation"),
    ):
        files = {}
        for number in range(3):
            name = f"{number:03}"
            files[f"{name}.jpg"] = picture((shard, number))
            files[f"{name}.cls"] = f"{10 * number}\n".encode()
            if number:
                files[f"{name}.txt"] = f"ein Bild, Nr. {number} ü".encode()
            files[f"{name}.json"] = json.dumps({"score": number / 2}).encode()
            caption = f"ein Bild, Nr. {number} ü".encode() if number else b""
            expected[split][files[f"{name}.jpg"]] = (10 * number, caption, number / 2)
        write_tar(shards / f"{shard}.tar", files)
    feature = "source.features_from.image/score={part: json.score, type: float}"
    marker, examples = convert("webdataset.yaml", shards, "--set", feature)
    keys = ("image/class/label", "image/caption", "image/score")
    assert {
        split: {each["image/encoded"][0]: tuple(each[key][0] for key in keys) for each in found}
        for split, found in examples.items()
    } == expected
    assert marker["labels"] == {"0": 0, "10": 10, "20": 20}


def test_what_cannot_be_read_is_rejected_and_the_rest_is_written(pets, tmp_path, convert):
    folder = tmp_path / "folder"
    folder.mkdir()
    bad = {
        "cat/notes.txt": b"no image",
        "cat/../../dog/x.jpg": b"",
        "/etc/x.jpg": b"",
        "top.jpg": b"x",
    }
    write_tar(folder / "good.tar", {**pets, **bad, "__MACOSX/cat/1.jpg": b"x", "cat/._1.jpg": b"x"})
    write_tar(folder / "cut.tar", pets)
    cut_inside_fifth_image(folder / "cut.tar")
    (folder / "none.zip").write_bytes(b"PK\x03\x04 and nothing else")
    marker, examples = convert(
        "archives.yaml",
        folder,
        "--set",
        "max_rejected={count: 20, containers: 2}",
        "--set",
        "splits.fractions={train: 1.0}",
    )
    assert marker["ledger"]["ignored"] == {"hidden": 1, "not_an_image": 1, "system_file": 1}
    assert marker["ledger"]["rejected"] == {
        "bad_archive": 2,
        "bad_member": 2,
        "no_class": 1,
    }
    written = sorted(each["image/encoded"][0] for each in examples["train"])
    assert written == sorted([*pets.values(), *list(pets.values())[:4]])


def cut_inside_fifth_image(path):
    with tarfile.open(path) as tar:
        end = tar.getmembers()[4].offset_data + 20
    path.write_bytes(path.read_bytes()[:end])
