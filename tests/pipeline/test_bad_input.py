"""What a user can get wrong, or a machine: one sentence, the right exit code, an earlier dataset as it was."""

import ctypes
import json
import os
import subprocess
import unicodedata

import pytest

from transforms.list_images import list_images
from transforms.sources import source_names

ALL = {"splits.fractions": {"train": 1.0}}


def told(done, code, *sentences):
    """One sentence an error, on stderr and in the line, and no traceback."""
    assert done.errors == list(sentences)
    assert (done.code, done.line["exit_code"], done.line["sentence"]) == (code, code, "\n".join(sentences))
    assert "Traceback" not in done.stderr


@pytest.fixture
def earlier(convert, photos, state_of):
    """A dataset that was there before; whatever the test does, it is the same afterwards."""
    done = convert(photos, settings=ALL)
    before = state_of(done.output)
    yield done
    after = {name: state for name, state in state_of(done.output).items() if ".staging" not in name}
    assert after == before


# Places


def test_a_missing_input(convert, earlier, tmp_path):
    missing = tmp_path / "missing"
    told(convert(missing), 1, f"the input {missing} does not exist: check the path")


def test_no_output(convert_in_child, photos, spawn):
    process = spawn(f"--input={photos}")
    stdout, stderr = process.communicate()
    assert process.returncode == 2
    assert stderr == "error: --output is missing: name the folder for the dataset\n"
    assert json.loads(stdout)["exit_code"] == 2


def test_no_input(convert, earlier):
    told(convert(None), 2, "--input is missing: name the folder with the images")


@pytest.mark.parametrize("where", ["", "sub", "sub/../sub2", "link"])
def test_an_output_inside_the_input(convert, photos, tmp_path, where):
    (photos / "sub").mkdir()
    (tmp_path / "linked").symlink_to(photos)
    output = tmp_path / "linked/sub" if where == "link" else photos / where
    told(
        convert(photos, output=output),
        1,
        f"the output {output} lies inside the input {photos} and would become part of it: choose a folder outside it",
    )


def test_an_output_beside_the_input_of_a_similar_name(convert, photos):
    assert convert(photos, output=photos.with_name("photos2"), settings=ALL).code == 0


def test_an_output_that_is_a_file(convert, photos, tmp_path):
    (tmp_path / "file").write_text("mine")
    told(convert(photos, output=tmp_path / "file"), 1, f"the output {tmp_path / 'file'} is a file: choose a folder")
    inside = tmp_path / "file/dataset"
    told(convert(photos, output=inside), 1, f"the output {inside} cannot be made: {tmp_path / 'file'} is a file")
    assert (tmp_path / "file").read_text() == "mine"


def test_an_empty_path(convert, photos):
    told(convert(""), 2, "a path is empty: name a folder")
    told(convert(photos, "--output="), 2, "--output is missing: name the folder for the dataset")


def drop_privileges():
    """Root reads and writes everything; without these two capabilities it is held to permissions like anyone."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        if os.geteuid() == 0 and libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
            raise OSError(ctypes.get_errno())


@pytest.fixture
def convert_as_anyone(convert_in_child):
    return lambda *arguments, **options: convert_in_child(*arguments, **options, preexec_fn=drop_privileges)


def test_a_read_only_output(convert_as_anyone, convert, earlier):
    earlier.output.chmod(0o555)
    try:
        done = convert_as_anyone(earlier.output.parent / "photos", "--overwrite", settings={**ALL, "seed": 1})
    finally:
        earlier.output.chmod(0o755)
    told(done, 1, f"the output {earlier.output} cannot be written: {earlier.output} is read-only")


def test_an_unreadable_input(convert_as_anyone, photos, tmp_path):
    photos.chmod(0)
    done = convert_as_anyone(photos)
    photos.chmod(0o755)
    told(done, 1, f"the input {photos} cannot be read: check its permissions")


def test_an_unreadable_folder_fails_and_an_unreadable_file_is_rejected(convert_as_anyone, photos, tmp_path):
    (photos / "cat/00.jpg").chmod(0)
    done = convert_as_anyone(photos, settings=ALL)
    assert (done.code, done.marker["ledger"]["written"]) == (0, 9)
    assert [(row["key"], row["stage"], row["reason"], row["detail"], row["sha256"]) for row in done.rejected] == [
        ("cat/00.jpg", "read", "unreadable", "the file cannot be read (permission denied)", None)
    ]
    (photos / "dog").chmod(0)
    failed = convert_as_anyone(photos, settings=ALL, output=tmp_path / "other")
    (photos / "dog").chmod(0o755)
    told(failed, 1, f"{photos / 'dog'}: the folder cannot be read (permission denied)")


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a small file system: `small_disk(size)` gives its folder."""
    mounted = []

    def mount(size, *options):
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", ",".join([f"size={size}", *options]), "tmpfs", str(place)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root can mount the small disk that this needs")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_read_only_disk(convert, photos, small_disk):
    disk = small_disk("64k", "ro")
    told(
        convert(photos, output=disk / "dataset"),
        1,
        f"the output {disk / 'dataset'} cannot be written: {disk} is read-only",
    )


@pytest.mark.parametrize("size", ["0k", "16k", "52k", "60k", "76k", "96k"])
def test_a_full_disk(convert, class_folders, small_disk, state_of, tmp_path, size):
    root = class_folders(tmp_path / "photos", {"cat": 8}, size=(200, 200))
    noise = sum(path.stat().st_size for path in root.rglob("*.jpg"))
    assert noise < 150_000
    disk = small_disk("240k")
    first = class_folders(tmp_path / "first", {"cat": 1})
    earlier = convert(first, settings=ALL, output=disk / "dataset")
    assert earlier.code == 0
    before = state_of(earlier.output)
    filler = disk / "filler"
    free = os.statvfs(disk)
    filler.write_bytes(bytes(free.f_bavail * free.f_bsize - int(size[:-1]) * 1024))
    done = convert(root, "--overwrite", settings=ALL, output=disk / "dataset")
    assert "Traceback" not in done.stderr
    if size in ("0k", "16k", "52k"):
        assert done.code == 1
    if done.code:
        (sentence,) = done.errors
        assert "no space left on device" in sentence.lower()
        assert sentence.startswith(f"the output {done.output} cannot be written: no space left on device")
        after = {name: state for name, state in state_of(done.output).items() if ".staging" not in name}
        assert after == before
    filler.unlink()
    again = convert(root, "--overwrite", settings={**ALL}, output=disk / "dataset")
    if again.code:  # there is too little room for both at once
        (sentence,) = again.errors
        assert sentence.startswith(f"the output {done.output} cannot be written: no space left on device")


# What is listed


def test_no_images(convert, earlier, tmp_path):
    (tmp_path / "void").mkdir()
    told(convert(tmp_path / "void", "--overwrite"), 1, "no images were found in the input")
    (tmp_path / "void/.DS_Store").touch()
    told(
        convert(tmp_path / "void", "--overwrite"),
        1,
        "no images were found in the input: all 1 files there are ignored (1 system_file)",
    )


def test_fewer_images_than_splits(convert, class_folders, tmp_path):
    root = class_folders(tmp_path / "photos", {"cat": 2})
    told(
        convert(root, settings={"splits.fractions": {"train": 0.8, "validation": 0.1, "test": 0.1}}),
        1,
        "there are too few images (2 images) for the 3 splits train, validation, test: train would be empty",
    )


def test_two_images_with_one_key(convert, photos, picture):
    for form in ("NFC", "NFD"):
        (photos / "cat" / unicodedata.normalize(form, "é.jpg")).write_bytes(picture(form))
    done = convert(photos, settings=ALL)
    (sentence,) = done.errors
    assert done.code == 1
    assert sentence.startswith("two images have the key 'cat/é.jpg': ")
    for form in ("NFC", "NFD"):
        assert str(photos / "cat" / unicodedata.normalize(form, "é.jpg")) in sentence
    assert "; rename one, or give inputs names" in sentence
    assert not (done.output / "recordmill.json").exists()


@pytest.mark.parametrize("settings", [{}, {"splits.stratify": True}, {"shards.count": 3}])
def test_two_images_with_one_key_wherever_they_go(convert, photos, picture, settings):
    for form in ("NFC", "NFD"):
        (photos / "cat" / unicodedata.normalize(form, "é.jpg")).write_bytes(picture(form))
    assert convert(photos, settings=settings).errors[0].startswith("two images have the key 'cat/é.jpg'")


def test_a_file_that_vanishes_or_changes_after_listing(convert, photos, monkeypatch):
    sizes = {name: (photos / name).stat().st_size for name in ("cat/00.jpg", "cat/01.jpg", "cat/02.jpg")}

    def list_then_change(*arguments):
        yield from list(list_images(*arguments))
        (photos / "cat/00.jpg").unlink()
        (photos / "cat/01.jpg").write_bytes((photos / "cat/01.jpg").read_bytes() + b"more")
        (photos / "cat/02.jpg").write_bytes((photos / "cat/02.jpg").read_bytes()[:-1])

    monkeypatch.setattr("transforms.list_images.list_images", list_then_change)
    done = convert(photos, settings=ALL)
    assert (done.code, done.marker["ledger"]["rejected"]) == (0, {"changed": 2, "vanished": 1})
    assert sorted((row["key"], row["stage"], row["reason"], row["bytes"], row["detail"]) for row in done.rejected) == [
        ("cat/00.jpg", "read", "vanished", sizes["cat/00.jpg"], "the file was listed, and was gone when it was read"),
        *(
            ("cat/" + name, "read", "changed", sizes["cat/" + name],
             f"{sizes['cat/' + name]} bytes when it was listed, {more} when it was read")
            for name, more in (("01.jpg", "more"), ("02.jpg", "less"))
        ),
    ]  # fmt: skip
    assert done.marker["ledger"]["written"] == 7


ODD_NAMES = [
    "a b.jpg",
    "a,b.jpg",
    "[x].jpg",
    "*.jpg",
    "?.jpg",
    "new\nline.jpg",
    "ünï.jpg",
    "-dash.jpg",
    "#.jpg",
    "%41.jpg",
    "'q'.jpg",
    '"q".jpg',
    "back\\slash.jpg",
    "{a}.jpg",
    "~.jpg",
    "x=y.jpg",
    "no_extension",
    "tab\t.jpg",
]


def test_odd_names_are_images_like_others(convert, picture, tmp_path):
    folder = tmp_path / "[odd] *photos,\n{a}" / "c l,a[s]s\n*"
    folder.mkdir(parents=True)
    for name in ODD_NAMES:
        (folder / name).write_bytes(picture(name))
    done = convert(folder.parent, settings=ALL, output=tmp_path / "[out] *put,\n{b}")
    assert (done.code, done.errors) == (0, [])
    assert {example["image/filename"].decode(): example["image/encoded"] for example in done.examples()} == {
        unicodedata.normalize("NFC", name): picture(name) for name in ODD_NAMES
    }
    assert done.marker["labels"] == {"c l,a[s]s\n*": 0}
    assert (done.output / "labels.txt").read_text() == "0:c l,a[s]s\\n*\n"
    assert convert(folder.parent, settings=ALL, output=done.output).line["status"] == "kept"


def test_a_name_that_is_not_utf_8_is_rejected(convert, photos, picture):
    with open(os.fsencode(photos / "cat") + b"/caf\xe9.jpg", "wb") as file:
        file.write(picture(1))
    done = convert(photos, settings=ALL)
    assert (done.code, done.marker["ledger"]["written"]) == (0, 10)
    assert [(row["key"], row["stage"], row["reason"]) for row in done.rejected] == [
        (r"cat/caf\xe9.jpg", "list", "bad_name")
    ]


def test_an_output_whose_name_is_not_utf_8(convert_in_child, photos):
    done = convert_in_child(photos, settings=ALL, output=photos.with_name(os.fsdecode(b"caf\xe9")))
    told(done, 2, rf"the path {photos.parent}/caf\xe9 is not UTF-8: rename it, or give a link to it")


def test_links_are_followed_once_and_a_loop_is_an_error(convert, photos, tmp_path, class_folders):
    elsewhere = class_folders(tmp_path / "elsewhere", {"emu": 2})
    (photos / "emu").symlink_to(elsewhere / "emu")
    (photos / "cat/linked.jpg").symlink_to(elsewhere / "emu/00.jpg")
    (photos / "cat/nowhere.jpg").symlink_to(tmp_path / "nowhere")
    done = convert(photos, settings=ALL)
    assert done.marker["ledger"]["written"] == 13
    assert done.marker["splits"]["train"]["classes"] == {"cat": 7, "dog": 4, "emu": 2}
    assert [(row["key"], row["reason"]) for row in done.rejected] == [("cat/nowhere.jpg", "vanished")]
    (photos / "cat/up").symlink_to(photos)
    looped = convert(photos, settings=ALL, output=tmp_path / "other")
    told(looped, 1, f"{photos / 'cat/up'}: the link leads back to a folder that holds it")
    (photos / "cat/up").unlink()
    (photos / "cat/self.jpg").symlink_to("self.jpg")
    told(
        convert(photos, settings=ALL, output=tmp_path / "other"),
        1,
        f"{photos / 'cat/self.jpg'}: the link leads to itself",
    )


def test_a_pipe_is_rejected_and_does_not_block(convert, photos):
    os.mkfifo(photos / "cat/pipe.jpg")
    done = convert(photos, settings=ALL)
    assert [(row["key"], row["reason"]) for row in done.rejected] == [("cat/pipe.jpg", "not_a_file")]


def test_an_empty_class_folder_is_a_warning_and_no_class(convert, photos):
    (photos / "bird").mkdir()
    done = convert(photos, settings=ALL)
    assert (done.code, done.marker["notes"]) == (0, ["bird: the folder is empty"])
    assert "note: bird: the folder is empty" in done.stderr
    assert done.marker["labels"] == {"cat": 0, "dog": 1}


def test_an_earlier_dataset_is_left_alone_by_what_a_worker_finds(convert, earlier, photos):
    (photos / "cat/up").symlink_to(photos)
    assert convert(photos, "--overwrite", settings=ALL).code == 1


# Configuration


@pytest.mark.parametrize(
    ("yaml", "sentences"),
    [
        ("images: {qualty: 90}", ["images.qualty is no setting: remove it or correct its name"]),
        ("imagez: {}\nseeed: 1", ["imagez is no setting: remove it or correct its name",
                                  "seeed is no setting: remove it or correct its name"]),
        ("source: {kind: class_folders, class_form: path}",
         ["source.class_form is no setting: remove it or correct its name"]),
        ("splits: {fractions: {train: 0.9, test: 0.2}}", ["splits.fractions sum to 1.1, which is over 1: lower them"]),
        ("images: {quality: 200}", ["images.quality: must be 1 to 100"]),
        ("images: {resize: {longest: 0}}", ["images.resize.longest: a side has 1 to 65,500 pixels"]),
        ("source: {kind: zip}", [f"there is no source 'zip': choose one of {', '.join(source_names())}"]),
    ],
)  # fmt: skip
def test_a_wrong_configuration(convert, earlier, photos, tmp_path, yaml, sentences):
    config = tmp_path / "wrong.yaml"
    config.write_text(yaml)
    told(convert(photos, f"--config={config}"), 2, *(f"{config}: {sentence}" for sentence in sentences))


def test_a_configuration_that_is_no_yaml(convert, earlier, photos, tmp_path):
    config = tmp_path / "wrong.yaml"
    config.write_text("images: {quality: 90\nsplits: [")
    done = convert(photos, f"--config={config}")
    (sentence,) = done.errors
    assert done.code == 2
    assert sentence.startswith(f"the configuration {config} is no YAML: ")
    assert "line 2" in sentence


def test_a_configuration_that_is_not_there(convert, earlier, photos, tmp_path):
    missing = tmp_path / "missing.yaml"
    told(
        convert(photos, f"--config={missing}"),
        2,
        f"the configuration {missing} cannot be read: no such file or directory",
    )


@pytest.mark.parametrize("text", ["images.quality", "=90", "images..quality=90"])
def test_a_malformed_set(convert, earlier, photos, text):
    told(convert(photos, f"--set={text}"), 2, f"--set {text}: write key.path=value, such as images.quality=90")


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("--ouput=x", "there is no flag --ouput=x: did you mean --output?"),
        ("--thread=3", "there is no flag --thread=3: did you mean --threads?"),
        ("--overwriet", "there is no flag --overwriet: did you mean --overwrite?"),
        ("--zzz", "there is no flag --zzz: see --help"),
        ("photos", "there is no flag photos: see --help"),
    ],
)
def test_an_unknown_flag(convert, earlier, photos, flag, sentence):
    told(convert(photos, flag), 2, sentence)


def test_several_inputs_without_names(convert, earlier, photos):
    told(
        convert(photos, f"--input={photos}"),
        2,
        "several inputs need names, which their images' keys begin with: write --input NAME=DIR",
    )


def test_a_summary_file_that_cannot_be_written(convert, earlier, photos, tmp_path):
    (tmp_path / "file").touch()
    done = convert(photos, f"--summary_json={tmp_path / 'file/summary.json'}", settings=ALL)
    assert (done.code, done.line["status"]) == (1, "kept")
    assert done.errors == [f"the summary {tmp_path / 'file/summary.json'} cannot be written: file exists"]


def test_an_output_named_like_a_pattern_touches_no_other(convert, photos, state_of, tmp_path):
    neighbour = convert(photos, settings=ALL, output=tmp_path / "set1")
    before = state_of(neighbour.output)
    for seed in (0, 1):
        assert convert(photos, "--overwrite", settings={**ALL, "seed": seed}, output=tmp_path / "set*").code == 0
        assert convert(photos, "--overwrite", settings={**ALL, "seed": seed}, output=tmp_path / "set[1]").code == 0
    assert state_of(neighbour.output) == before
