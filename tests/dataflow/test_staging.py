"""A template staged to a local object store, unpacked, and its worker code run in a fresh
environment."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
SETTINGS = ["--set=shards.count=2", "--set=images.resize.longest=40"]


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory):
    """An environment with Beam and nothing of ours; the registry fills it, as it does a
    worker's."""
    folder = tmp_path_factory.mktemp("fresh")
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    install = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        "--constraint",
        REPO / "requirements.lock",
    ]
    subprocess.run([*install, "apache-beam[gcp]", "setuptools"], check=True)
    return python, [*install, "--no-build-isolation"]


def draw(folder):
    from PIL import Image

    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
        for number in range(8):
            shade = (30 * number, ord(label[0]), 90)
            Image.new("RGB", (60, 30 + number), shade).save(folder / label / f"{number}.png")
    (folder / "cat" / "broken.jpg").write_bytes(b"no picture")
    return folder


@pytest.mark.slow
def test_what_is_staged_converts_in_a_fresh_environment(
    dataflow_flags, store, bucket, launch_offline, fresh_python, run_command, tmp_path
):
    photos = draw(tmp_path / "photos")
    for file in photos.rglob("*.*"):
        bucket.blob(f"photos/{file.relative_to(photos)}").upload_from_filename(file)
    flags = ["--input=gs://recordmill/photos", "--output=gs://recordmill/dataset", *SETTINGS]
    template = "gs://recordmill/templates/nightly"
    more = [
        f"--template_location={template}",
        "--outcome_file=gs://recordmill/outcome.json",
        "--labels=team=vision",
    ]

    # The launcher of a flex template does the same: it calls main.py with a template_location, then
    # starts the job.
    done = launch_offline(
        "deploy/dataflow/main.py", *dataflow_flags, *flags, *more, "--overwrite=true"
    )
    line = json.loads(done.stdout)
    assert (done.returncode, line["status"]) == (0, "built"), done.stderr
    assert line["message"] == f"the Dataflow job was built and is a template in {template}"
    assert not bucket.blob("outcome.json").exists()  # the job's to write, once there is one

    described = json.loads(bucket.blob("templates/nightly").download_as_bytes())
    assert described["labels"] == {"team": "vision"}
    (pool,) = described["environment"][
        "worker_pools" if "worker_pools" in described["environment"] else "workerPools"
    ]
    packages = {package["name"]: package["location"] for package in pool["packages"]}
    assert set(packages) == {"workflow.tar.gz", "submission_environment_dependencies.txt"}
    staged = {
        name.rpartition("/")[2]: name
        for name in (blob.name for blob in bucket.list_blobs(prefix="temp/"))
    }
    assert set(staged) == {*packages, "pipeline.pb"}
    assert (
        packages["workflow.tar.gz"]
        == f"storage.googleapis.com/recordmill/{staged['workflow.tar.gz']}"
    )

    python, install = fresh_python
    for name in ("workflow.tar.gz", "pipeline.pb"):
        bucket.blob(staged[name]).download_to_filename(tmp_path / name)
    with tarfile.open(tmp_path / "workflow.tar.gz") as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert not [name for name in names if name.startswith(("tests/", "../shared", ".venv"))]
    subprocess.run([*install, tmp_path / "workflow.tar.gz"], check=True)
    where = [
        python,
        "-c",
        "from recordmill import configs, pipeline, schemas, transforms; print(pipeline.__file__)",
    ]
    found = subprocess.run(where, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert found.startswith(str(python.parents[1]))  # not the checkout

    done = launch_offline("", str(tmp_path / "pipeline.pb"), python=str(python))
    assert done.returncode == 0, done.stderr
    outcome = json.loads(bucket.blob("outcome.json").download_as_bytes())
    assert (outcome["status"], outcome["exit_code"]) == ("published", 0), outcome
    ledger = {
        "listed": 17,
        "written": 16,
        "rejected": {"unknown_format": 1},
        "ignored": {},
        "left_out": {},
    }
    assert outcome["numbers"]["ledger"] == ledger

    # The same bytes as from this checkout on this machine.
    here = run_command(
        " ".join(["recordmill run --input photos --output here", *SETTINGS]), tmp_path
    )
    assert here.returncode == 0, here.stderr
    there = {
        blob.name.removeprefix("dataset/"): blob for blob in bucket.list_blobs(prefix="dataset/")
    }
    shards = sorted(path.name for path in (tmp_path / "here").glob("*.tfrecord"))
    assert len(shards) >= 3
    assert shards == sorted(name for name in there if name.endswith(".tfrecord"))
    for name in [*shards, "labels.txt"]:
        assert there[name].download_as_bytes() == (tmp_path / "here" / name).read_bytes(), name
