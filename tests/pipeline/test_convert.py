"""`recordmill.convert`: the command's work from Python, in a process that belongs to somebody
else."""

import contextlib
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections import OrderedDict
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from PIL import Image

import recordmill
from recordmill import ConversionError
from recordmill.pipeline import convert as module
from recordmill.schemas.dataset.outcome import Outcome
from recordmill.schemas.errors import UsageError

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")

REPO = Path(__file__).parents[2]
HALVES = {"train": 0.5, "test": 0.5}


@pytest.fixture(scope="module")
def converted(tmp_path_factory, class_folders):
    """Ten images, converted with settings of every shape: the dataset and its folder's parent."""
    folder = tmp_path_factory.mktemp("python")
    photos = class_folders(folder / "photos", {"cat": 6, "dog": 4})
    dataset = recordmill.convert(
        photos,
        folder / "dataset",
        quiet=True,
        seed=3,
        images={"quality": 80, "resize": {"longest": 12}},
        splits={"fractions": OrderedDict(HALVES), "stratify": True},
        ignore=("drafts/", "*.psd"),
    )
    return dataset, folder


def test_the_dataset_is_opened(converted):
    dataset, folder = converted
    assert isinstance(dataset, recordmill.Dataset)
    assert (dataset.folder, dataset.counts) == (str(folder / "dataset"), {"train": 5, "test": 5})
    assert dataset.labels == {"cat": 0, "dog": 1}
    assert [shard.records for shard in dataset.splits["train"]] == [5]
    assert all(isinstance(note, str) for note in dataset.notes)
    assert repr(dataset) == f"<dataset {folder}/dataset (train: 5, test: 5; 2 classes)>"
    assert len(list(dataset.rows())) == 10


def test_it_is_the_dataset_that_the_command_makes(converted, convert):
    dataset, folder = converted
    settings = {
        "seed": 3, "images.quality": 80, "images.resize.longest": 12, "splits.fractions": HALVES,
        "splits.stratify": True, "ignore": ["drafts/", "*.psd"],
    }  # fmt: skip
    done = convert(folder / "photos", output=folder / "by-command", settings=settings)
    assert done.code == 0
    assert done.marker["plan"]["id"] == dataset.marker.plan.id
    for path in done.shards():
        assert path.read_bytes() == (folder / "dataset" / path.name).read_bytes()


def test_the_callers_process_is_left_as_it_was(converted, capsys):
    _, folder = converted
    beam, root = logging.getLogger("apache_beam"), logging.getLogger()

    def state():
        handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
        return handlers, beam.level, root.filters[:], threading.excepthook, os.getcwd()

    before = state()
    recordmill.convert(folder / "photos", folder / "again")
    assert state() == before
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1] == f"10 images are in {folder / 'again'}"


def test_quiet_is_quiet_and_a_dataset_that_is_there_is_kept(converted, capsys, state_of):
    _, folder = converted
    first = recordmill.convert(str(folder / "photos"), str(folder / "kept"), quiet=True)
    before = state_of(folder / "kept")
    assert recordmill.convert(str(folder / "photos"), str(folder / "kept"), quiet=True) == first
    assert capsys.readouterr() == ("", "")
    assert state_of(folder / "kept") == before


def test_in_a_thread_and_with_a_stdout_that_is_not_a_file(converted, tmp_path):
    _, folder = converted
    found = []

    class Notebook:
        """As ipykernel's: what is written goes elsewhere, and there is no file descriptor."""

        written = ""

        def write(self, text):
            self.written += text

        def flush(self):
            pass

    cell = Notebook()

    def work():
        found.append(recordmill.convert(folder / "photos", tmp_path / "threaded", quiet=True))

    with contextlib.redirect_stdout(cell):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found[0].counts == {"train": 9, "test": 1}
    assert cell.written == ""


def test_a_callers_process_is_never_forked(converted, tmp_path, monkeypatch):
    _, folder = converted
    seen = []

    def attempt(flags, *_):
        seen.append(flags.owns_process)
        return Outcome("failed", "seen", 1), None

    monkeypatch.setattr(module, "attempt", attempt)
    with pytest.raises(ConversionError, match="seen"):
        recordmill.convert(folder / "photos", tmp_path / "dataset")
    assert seen == [False]


def test_libraries_are_quiet_for_one_call_at_a_time(converted, tmp_path, monkeypatch):
    _, folder = converted
    held = []

    def check_options(options, prog):
        held.append(module._ONE_AT_A_TIME.locked())
        raise UsageError("seen")

    monkeypatch.setattr(module, "check_options", check_options)
    with pytest.raises(ConversionError, match="seen"):
        recordmill.convert(folder / "photos", tmp_path / "dataset")
    assert (held, module._ONE_AT_A_TIME.locked()) == ([True], False)


# Without `if __name__ == "__main__"`, and with a thread, as notebooks and scripts are.
SCRIPT = """
import sys, threading, time
import recordmill

threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
made = recordmill.convert(
    sys.argv[1], sys.argv[2], quiet=True, processes=2, shards={"count": 4}
)
print(made.counts)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are used on Linux only")
def test_a_script_without_a_guard_can_use_processes(converted, tmp_path):
    _, folder = converted
    photos = shutil.copytree(folder / "photos", tmp_path / "photos")
    for path in photos.rglob("*.jpg"):  # with Exif that is cut: Pillow warns of it
        Image.open(path).save(path, exif=b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, tmp_path / "script.py", photos, tmp_path / "dataset"]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("{'train': 9, 'test': 1}\n", "")


def test_functions_that_are_only_in_the_callers_main_module_are_called_in_its_process(
    converted, tmp_path, monkeypatch
):
    _, folder = converted
    main = sys.modules["__main__"]
    # A worker of pytest-xdist has no script.
    monkeypatch.setattr(main, "__file__", __file__, raising=False)
    monkeypatch.setattr(main, "__loader__", SourceFileLoader("__main__", __file__))
    monkeypatch.setattr(main, "brightness", lambda image: float(image.mean()), raising=False)
    monkeypatch.setattr("recordmill.pipeline.attempt.default_processes", lambda: 2)
    monkeypatch.setattr("recordmill.pipeline.attempt.fewest_for_processes", lambda _: 0)
    feature = {"function": "__main__:brightness", "of": "image", "type": "float", "shape": []}
    dataset = recordmill.convert(
        folder / "photos", tmp_path / "out", quiet=True, features={"brightness": feature}
    )
    assert dataset.counts == {"train": 9, "test": 1}


def test_several_inputs_and_a_configuration(converted, class_folders, tmp_path):
    _, folder = converted
    more = class_folders(tmp_path / "more", {"cat": 3})
    (tmp_path / "own.yaml").write_text(
        "images: {quality: 70, subsampling: '4:4:4'}\nlabels: {classes: [cat, dog]}\n"
    )
    dataset = recordmill.convert(
        {"old": folder / "photos", "new": more},
        tmp_path / "both",
        config=tmp_path / "own.yaml",
        quiet=True,
        source={"class_from": "last_folder"},
        images={"quality": 90},
    )
    assert {row.key.partition("/")[0] for _, row in dataset.rows()} == {"old", "new"}
    images = dataset.marker.plan.recipe["images"]
    assert (images["quality"], images["subsampling"]) == (90, "4:4:4")


@pytest.mark.parametrize(
    ("changes", "code", "sentence"),
    [
        (
            {"inputs": ["a", "b"]},
            2,
            "several inputs need names, which their images' keys begin with: write --input "
            "NAME=DIR",
        ),
        ({"inputs": {"a b": "x"}}, 1, "the input a b=x does not exist: check the path"),
        ({"inputs": []}, 2, "--input is missing: name the folder with the images, or try --sample"),
        ({"inputs": "nowhere"}, 1, "the input nowhere does not exist: check the path"),
        ({"threads": -1}, 2, "argument --threads: -1 is not a number of 1 or more: see --help"),
        (
            {"seed": object()},
            2,
            "argument seed is of type object: give text, numbers, true or false, lists or mappings",
        ),
        (
            {"images": {"quality": 0}},
            2,
            "argument images.quality is 0: it should be greater than or equal to 1",
        ),
        ({"imagez": {"quality": 90}}, 2, "argument imagez is not a setting: did you mean images?"),
        (
            {"source": {"kind": "voc"}},
            2,
            "convention is not set: source.kind gives boxes, and the default convention stores "
            "none: add convention=tf_object_detection or convention=tfds; convention=default "
            "leaves the boxes out",
        ),
        (
            {"splits": {"fractions": {"train": 1}, "from_folders": {"a": "b"}}},
            2,
            "argument splits.from_folders and splits.fractions contradict each other: remove one "
            "of them (splits={from_folders: {a: b}} replaces both)",
        ),
        ({"runner_options": {"zzz": 1}}, 2, "there is no flag --zzz=1: see --help"),
    ],
)
def test_errors_are_one_sentence(converted, tmp_path, capsys, changes, code, sentence):
    arguments = {"inputs": converted[1] / "photos", "output": tmp_path / "dataset", **changes}
    with pytest.raises(ConversionError) as caught:
        recordmill.convert(**arguments)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)
    assert "--set" not in str(caught.value)
    assert (caught.value.outcome.exit_code, caught.value.outcome.status) == (code, "failed")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line for line in printed.err.splitlines() if not line.startswith("recognized ")] == []
    assert not (tmp_path / "dataset").exists()


def test_a_refusal_and_too_many_rejected(converted, tmp_path):
    _, folder = converted
    recordmill.convert(folder / "photos", tmp_path / "dataset", quiet=True)
    with pytest.raises(ConversionError, match="overwrite") as caught:
        recordmill.convert(folder / "photos", tmp_path / "dataset", quiet=True, seed=9)
    assert caught.value.outcome.status == "refused"
    replaced = recordmill.convert(
        folder / "photos", tmp_path / "dataset", quiet=True, seed=9, overwrite=True
    )
    assert replaced.marker.plan.recipe["seed"] == 9
    bad = tmp_path / "bad" / "cat"
    bad.mkdir(parents=True)
    Path(bad / "1.jpg").write_bytes(b"no image")
    with pytest.raises(ConversionError) as caught:
        recordmill.convert(
            tmp_path / "bad", tmp_path / "none", quiet=True, splits={"fractions": {"train": 1}}
        )
    assert caught.value.outcome.exit_code == 3


def test_an_interruption_is_one(converted, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("recordmill.transforms.shards.shard_writer.convert_image", interrupt)
    with pytest.raises(KeyboardInterrupt, match="run the same command again"):
        recordmill.convert(converted[1] / "photos", tmp_path / "dataset", quiet=True)


def test_the_error_can_be_pickled():
    error = pickle.loads(pickle.dumps(ConversionError(Outcome("failed", "why", 1))))
    assert (str(error), error.outcome.exit_code) == ("why", 1)
