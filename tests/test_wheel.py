"""The wheel in an environment of its own, used next to files that are called as our folders are."""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from installed_wheel import environment_without_the_checkout
from PIL import Image

REPO = Path(__file__).parents[1]

HOSTILE = "raise RuntimeError('this is the module of the user')\n"

TYPED_PROGRAM = """
from collections.abc import Iterator
from pathlib import Path
from typing import Any, assert_type

import recordmill


def convert(photos: Path, folder: Path) -> dict[str, int | None]:
    dataset = recordmill.convert(
        {"new": photos}, folder, reuse=[folder.parent / "earlier"], images={"quality": 90}
    )
    print(dataset.marker.ledger.written)
    return dataset.counts


def ledgers(folder: Path) -> tuple[int, int]:
    described = recordmill.open_dataset(folder).marker
    return described.ledger.listed, recordmill.open(folder).marker.ledger.written


def verify(folder: Path) -> list[str]:
    by_path = recordmill.verify_dataset(folder, "pixels")
    by_dataset = recordmill.verify_dataset(recordmill.open_dataset(folder))
    return [str(finding) for finding in (*by_path.findings, *by_dataset.findings)]


def read(folder: Path) -> Iterator[bytes]:
    with recordmill.StoredFile(folder / "train-00000-of-00001.tfrecord") as stored:
        for _, record in recordmill.RecordFile(stored):
            if not isinstance(record, recordmill.Damage):
                yield bytes(record)


def describe(folder: Path) -> tuple[int, tuple[str, ...]]:
    info = recordmill.describe_split(folder, ["train", "test"])
    return info.num_examples, info.class_names


def train(folder: Path) -> None:
    records = recordmill.open(folder, form="numpy")["train"]
    assert_type(records[0:2], list[Any])
    first: dict[str, Any] = records[0]
    print(first, len(records), recordmill.load(folder, batch_size=32), recordmill.__version__)
    for example in recordmill.examples_as_numpy(folder / "train-*"):
        print(example["image/encoded"].shape)


recordmill.open_dataset(3)  # type: ignore[arg-type]  # unused, and so an error, if all were Any
"""


@pytest.fixture(scope="module")
def run(installed):
    """Runs `python` or `recordmill` of an environment with the wheel."""

    def run(folder, program, *words):
        command = [installed / program, *map(str, words)]
        variables = environment_without_the_checkout()
        return subprocess.run(
            command,
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def make_photos(folder):
    for name in ("cat", "dog"):
        (folder / "photos" / name).mkdir(parents=True)
        for number in range(6):
            Image.new("RGB", (40, 30), (40 * number, ord(name[0]), 90)).save(
                folder / f"photos/{name}/{number}.jpg"
            )
    return folder


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's folder with modules and packages of our folders' names."""
    folder = make_photos(tmp_path_factory.mktemp("project"))
    for name in ("transforms", "reading", "pipeline"):
        (folder / f"{name}.py").write_text(HOSTILE)
    for name in ("schemas", "configs", "tests"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(HOSTILE)
    return folder


@pytest.fixture(scope="module")
def dataset(run, project):
    """What the command makes there, by a configuration that Recordmill ships."""
    done = run(
        project,
        "recordmill",
        "--config",
        "configs/class_folders.yaml",
        "--input=photos",
        "--output=dataset",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ledger"]["written"] == 12
    return project / "dataset"


def test_the_wheel_installs_only_below_the_package(wheel):
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    (information,) = {name.partition("/")[0] for name in names} - {"recordmill"}
    assert re.fullmatch(r"recordmill-.+\.dist-info", information)
    assert archive.read(f"{information}/top_level.txt") == b"recordmill\n"
    recorded = archive.read(f"{information}/RECORD").decode().splitlines()
    assert {line.partition("/")[0] for line in recorded} == {"recordmill", information}
    assert {
        "recordmill/__init__.pyi",
        "recordmill/__main__.py",
        "recordmill/pipeline/run.py",
        "recordmill/py.typed",
        "recordmill/reading/dataset.py",
        "recordmill/configs/coco.yaml",
        "recordmill/docs/fix_rejected.md",
        "recordmill/docs/json_summary.schema.json",
        "recordmill/schemas/conventions/slim.yaml",
    } < set(names)
    assert {
        f"recordmill/reading/report/{name}" for name in ("report.css", "report.html.jinja")
    } < set(names)
    templates = {
        "README.md.jinja",
        "reading.py.jinja",
        "schema.pbtxt.jinja",
        "croissant_context.json",
    }
    assert {f"recordmill/transforms/publishing/companions/{name}" for name in templates} < set(
        names
    )


@pytest.mark.parametrize("words", [["run", "--help"], ["--version"]])
def test_the_command_says_what_it_does(run, project, words):
    done = run(project, "recordmill", *words)
    assert (done.returncode, done.stderr) == (0, "")
    assert "recordmill" in done.stdout


def test_a_message_names_a_page_that_is_installed(run, project):
    done = run(project, "recordmill", "--input=photos", "--output=x", "--set=zzz=1")
    (page,) = re.findall(r"zzz is not a setting: (\S+/settings\.md) lists all", done.stderr)
    assert (project / page).read_text(encoding="utf-8").startswith("# Settings")


def test_a_training_script_next_to_its_own_modules(run, project, dataset):
    (project / "transforms.py").write_text("def augment(x): return x\n")
    (project / "train.py").write_text(
        "import recordmill, transforms\n"
        "info = recordmill.describe_split('dataset', 'train')\n"
        "print(transforms.augment(info.num_examples), info.class_names)\n"
    )
    done = run(project, "python", "train.py")
    (project / "transforms.py").write_text(HOSTILE)
    train = json.loads((dataset / "recordmill.json").read_bytes())["splits"]["train"]["records"]
    assert (done.returncode, done.stdout) == (0, f"{train} ('cat', 'dog')\n"), done.stderr


def test_verify_and_inspect(run, project, dataset):
    # In a process of its own.
    verified = run(project, "recordmill", "verify", dataset, "--level=pixels")
    assert (verified.returncode, json.loads(verified.stdout)["findings"]) == (0, []), (
        verified.stderr
    )
    assert run(project, "recordmill", "inspect", "dataset", "--record=train:0").returncode == 0


@pytest.mark.slow
def test_the_processes_of_large_datasets_and_of_the_analysis(run, project, dataset):
    (project / "processes.py").write_text(
        "from recordmill.pipeline.attempt import _run_analysis\n"
        "from recordmill.reading.dataset import open_dataset\n"
        "from recordmill.reading.example import expect\n"
        "from recordmill.reading.verify_processes import ShardWorkers\n"
        "dataset = open_dataset('dataset')\n"
        "with ShardWorkers(1) as workers:\n"
        "    for shard in dataset.shards:\n"
        "        print(workers.verify(shard, expect(dataset), 'frames', False, lambda records: "
        "None).findings)\n"
        "print(_run_analysis('dataset', False))\n"
    )
    done = run(project, "python", "processes.py")
    assert done.returncode == 0, done.stderr
    *findings, code = done.stdout.splitlines()
    assert (set(findings), code) == ({"[]"}, "1")
    assert done.stderr.startswith("error: dataset was converted without channel statistics")


@pytest.mark.slow
def test_the_examples_of_functions(run, project):
    shutil.copy(REPO / "examples/hooks.py", project / "hooks.py")
    (project / "own.py").write_text(
        "import recordmill\n"
        "images = {'function': 'hooks:crop_square'}\n"
        "recordmill.convert('photos', 'own', images=images, keep='hooks:is_colorful')\n"
    )
    done = run(project, "python", "own.py")
    assert done.returncode == 0, done.stderr
    sidecars = "".join(path.read_text() for path in (project / "own/sidecars").iterdir())
    assert sidecars.count('"height":30,"width":30') == 12


@pytest.mark.slow
def test_convert_from_python(run, project):
    (project / "convert.py").write_text(
        "import recordmill\nprint(recordmill.convert('photos', 'by-python').counts)\n"
    )
    done = run(project, "python", "convert.py")
    assert done.returncode == 0, done.stderr
    assert sum(json.loads(done.stdout.replace("'", '"')).values()) == 12


@pytest.mark.slow
def test_the_package_runs_next_to_the_users_own_modules(run, project, dataset):
    assert run(project, "python", "-m", "recordmill", "--help").stdout.startswith(
        "usage: python -m recordmill "
    )
    words = ["run", "--input=photos", "--output=by-package", "--processes=2"]
    done = run(project, "python", "-m", "recordmill", *words)
    assert (done.returncode, json.loads(done.stdout)["ledger"]["written"]) == (0, 12), done.stderr
    done = run(project, "python", "-m", "recordmill", "diff", "dataset", "by-package")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "same"), done.stderr


def test_a_users_own_pipeline_is_the_one_that_runs(run, tmp_path):
    (tmp_path / "pipeline").mkdir()
    (tmp_path / "pipeline" / "run.py").write_text("print('mine')\n")
    assert run(tmp_path, "python", "-m", "pipeline.run").stdout == "mine\n"


@pytest.mark.slow
def test_mypy_finds_the_types(run, tmp_path):
    (tmp_path / "program.py").write_text(TYPED_PROGRAM)
    done = run(tmp_path, "python", "-m", "mypy", "--strict", "program.py")
    assert (done.returncode, done.stdout) == (0, "Success: no issues found in 1 source file\n")


def test_pyright_finds_the_types(run, installed, tmp_path):
    command = ["-m", "pyright", "--pythonpath", installed / "python", "program.py"]
    (tmp_path / "program.py").write_text(TYPED_PROGRAM)
    done = run(tmp_path, "python", *command)
    assert (done.returncode, done.stdout) == (0, "0 errors, 0 warnings, 0 informations\n")
    # If all types were unknown, nothing would be wrong.
    (tmp_path / "program.py").write_text("import recordmill\n\nrecordmill.open_dataset(3)\n")
    done = run(tmp_path, "python", *command)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        1,
        "1 error, 0 warnings, 0 informations",
    )
