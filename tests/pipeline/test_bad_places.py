"""Places that are missing, forbidden or full: one sentence, the right exit code, an earlier dataset
as it was."""

import json
import os
import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

ALL = {"splits.fractions": {"train": 1.0}}


def test_a_missing_input(convert, earlier, tmp_path):
    missing = tmp_path / "missing"
    assert convert(missing).answer == (1, f"the input {missing} does not exist: check the path")


def test_a_missing_input_is_named_before_settings_that_only_its_files_explain(convert, tmp_path):
    missing = tmp_path / "missing"
    answer = convert(missing, settings={"source.columns.uri": "path"}).answer
    assert answer == (1, f"the input {missing} does not exist: check the path")


def test_no_output(photos, spawn):
    process = spawn(f"--input={photos}")
    stdout, stderr = process.communicate()
    assert process.returncode == 2
    assert stderr == "error: --output is missing: name the folder for the dataset\n"
    assert json.loads(stdout)["exit_code"] == 2


def test_no_input(convert, earlier):
    assert convert(None).answer == (
        2,
        "--input is missing: name the folder with the images, or try --sample",
    )


@pytest.mark.parametrize("where", ["", "sub", "sub/../sub2", "link"])
def test_an_output_inside_the_input(convert, photos, tmp_path, where):
    (photos / "sub").mkdir()
    (tmp_path / "linked").symlink_to(photos)
    output = tmp_path / "linked/sub" if where == "link" else photos / where
    assert convert(photos, output=output).answer == (
        1,
        f"the output {output} is inside the input {photos}: choose a folder outside it",
    )


def test_an_output_next_to_an_input_of_a_similar_name(convert, photos):
    assert convert(photos, output=photos.with_name("photos2"), settings=ALL).code == 0


def test_an_output_that_is_a_file(convert, photos, tmp_path):
    (tmp_path / "file").write_text("mine")
    for output in (tmp_path / "file", tmp_path / "file/dataset"):
        code, sentence = convert(photos, output=output).answer
        assert (
            code,
            sentence.startswith(f"the output {output} cannot be written: not a directory"),
        ) == (1, True)
    assert (tmp_path / "file").read_text() == "mine"


def test_an_output_whose_name_is_not_utf_8(convert, photos):
    done = convert(photos, settings=ALL, output=photos.with_name(os.fsdecode(b"caf\xe9")))
    assert done.answer == (
        2,
        rf"the path {photos.parent}/caf\xe9 is not UTF-8: rename it, or give a link to it",
    )


def test_an_empty_path(convert, photos):
    assert convert("").answer == (2, "a path is empty: name a folder")
    assert convert(photos, "--output=").answer == (
        2,
        "--output is missing: name the folder for the dataset",
    )


# Root reads and writes everything; without two capabilities it is held to permissions like anyone.
AS_ANYONE = """
import ctypes, os, runpy

libc = ctypes.CDLL(None, use_errno=True)
# Of the sets, effective and permitted come first.
header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(header, sets) == 0, os.strerror(ctypes.get_errno())
for number in (0, 1):
    sets[number] &= ~(1 << 1 | 1 << 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
assert libc.capset(header, sets) == 0, os.strerror(ctypes.get_errno())
runpy.run_module("pipeline.run", run_name="__main__", alter_sys=True)
"""


@pytest.fixture
def convert_as_anyone(convert_in_child):
    return lambda *arguments, **options: convert_in_child(*arguments, **options, script=AS_ANYONE)


def test_a_read_only_output(convert_as_anyone, convert, earlier):
    earlier.output.chmod(0o555)
    try:
        done = convert_as_anyone(
            earlier.output.parent / "photos", "--overwrite", settings={**ALL, "seed": 1}
        )
    finally:
        earlier.output.chmod(0o755)
    assert done.answer == (1, f"the output {earlier.output} cannot be written: permission denied")


def test_an_unreadable_input(convert_as_anyone, photos, tmp_path):
    photos.chmod(0)
    done = convert_as_anyone(photos)
    photos.chmod(0o755)
    assert done.answer == (1, f"the input {photos} cannot be read: check its permissions")


def test_an_unreadable_folder_fails_and_an_unreadable_file_is_rejected(
    convert_as_anyone, photos, tmp_path
):
    (photos / "cat/00.jpg").chmod(0)
    done = convert_as_anyone(photos, settings=ALL)
    assert (done.code, done.marker["ledger"]["written"]) == (0, 9)
    assert [
        (row["key"], row["stage"], row["reason"], row["detail"], row["sha256"])
        for row in done.rejected
    ] == [("cat/00.jpg", "read", "unreadable", "the file cannot be read (permission denied)", None)]
    (photos / "dog").chmod(0)
    failed = convert_as_anyone(photos, settings=ALL, output=tmp_path / "other")
    (photos / "dog").chmod(0o755)
    advice = "make it readable, or add it to ignore"
    assert failed.answer == (
        1,
        f"{photos / 'dog'}: the folder cannot be read (permission denied): {advice}",
    )


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a small file system: `small_disk(size)` gives its folder."""
    mounted = []

    def mount(size, *options):
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        command = [
            "mount",
            "-t",
            "tmpfs",
            "-o",
            ",".join([f"size={size}", *options]),
            "tmpfs",
            str(place),
        ]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("only root can mount the small disk that this needs")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_read_only_disk(convert, photos, small_disk):
    disk = small_disk("64k", "ro")
    assert convert(photos, output=disk / "dataset").answer == (
        1,
        f"the output {disk / 'dataset'} cannot be written: read-only file system",
    )


@pytest.mark.parametrize("size", ["0k", "52k", "96k"])
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
        assert sentence.startswith(
            f"the output {done.output} cannot be written: no space left on device"
        )
        after = {
            name: state for name, state in state_of(done.output).items() if ".staging" not in name
        }
        assert after == before
    filler.unlink()
    again = convert(root, "--overwrite", settings={**ALL}, output=disk / "dataset")
    if again.code:  # there is too little room for both at once
        (sentence,) = again.errors
        assert sentence.startswith(
            f"the output {done.output} cannot be written: no space left on device"
        )


def test_an_input_without_a_file_system_is_one_sentence(convert, tmp_path):
    done = convert("nowhere://a/b", output=tmp_path / "dataset")
    start = "the input nowhere://a/b cannot be read: Unable to get filesystem"
    assert (done.code, done.answer[1][: len(start)]) == (1, start)
