"""Public functions take a path as a `str` and as any `os.PathLike`, and do the same with both."""

import inspect
from dataclasses import replace
from pathlib import Path

import apache_beam as beam
import pytest
from eager_beam import assert_that, new_pipeline
from PIL import Image

import recordmill

pytestmark = pytest.mark.usefixtures("eager_pipeline", "cheap_fsync")


class PlainPath:
    """A path that is only an `os.PathLike`: `str()` of it is not the path."""

    def __init__(self, path):
        self._path = path

    def __fspath__(self):
        return self._path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with photos, a configuration, and the dataset that is made of them."""
    root = tmp_path_factory.mktemp("paths")
    for number in range(8):
        path = root / "photos" / ("cat", "dog")[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 3), (number, 20, 30)).save(path)
    (root / "own.yaml").write_text("expect: {class_drift: 1.0}\n")
    splits = {"fractions": {"train": 1.0}}
    recordmill.convert(str(root / "photos"), str(root / "dataset"), splits=splits, quiet=True)
    return root


@pytest.fixture(autouse=True)
def _in_this_process(choose_runner):
    """Lets a pipeline fill a list of this process, which no runner does."""
    choose_runner(False)


def convert(root, kind):
    paths = {name: kind(str(root / name)) for name in ("photos", "dataset", "own.yaml")}
    made = recordmill.convert(
        {"all": paths["photos"]},
        kind(str(root / f"made-{kind.__name__}")),
        config=paths["own.yaml"],
        against=paths["dataset"],
        reuse=[paths["dataset"]],
        quiet=True,
    )
    return replace(made, folder="", shards=(), marker_or_none=None), made.require_marker().plan.id


def read_images(root, kind):
    paths = [kind(str(root / "photos/cat/0.png"))]
    found = []
    with new_pipeline() as pipeline:
        step = recordmill.ReadImages(kind(str(root / "photos")), "folder")
        images = pipeline | beam.Create(paths) | step
        assert_that(images, found.extend)
    return [(image.key, image.label, len(image.data)) for image in found]


def convert_in_pipeline(root, kind):
    places = {name: kind(str(root / name)) for name in ("photos", "dataset", "own.yaml")}
    found = []
    with new_pipeline() as pipeline:
        step = recordmill.Convert(
            {"all": places["photos"]},
            kind(str(root / f"step-{kind.__name__}")),
            config=places["own.yaml"],
            against=places["dataset"],
            reuse=[places["dataset"]],
        )
        assert_that((pipeline | step).outcome, found.extend)
    return found[0].status, found[0].plan_id


def list_references(root, kind):
    step = recordmill.ListReferences(recordmill.ClassFolders(), recordmill.ListingSettings())
    listed = recordmill.Input(kind(str(root / "photos")), "all")
    return listed, [ref.key for batch in step._list(listed) for ref in batch.refs]


def load(root, kind):
    elements = recordmill.load(kind(str(root / "dataset"))).as_numpy_iterator()
    return [(image.tobytes(), label) for image, label in elements]


def read_stored(root, kind):
    (shard,) = (root / "dataset").glob("train-*")
    with recordmill.StoredFile(kind(str(shard)), digest=True) as stored:
        return stored.size, stored.sha256()


def verify_dataset(root, kind):
    verification = recordmill.verify_dataset(kind(str(root / "dataset")), "pixels")
    return verification.as_dict()


def examples_as_numpy(root, kind):
    examples = recordmill.examples_as_numpy(kind(str(root / "dataset")), "train")
    return [{key: values.tolist() for key, values in each.items()} for each in examples]


def open_records(root, kind):
    opened = recordmill.open(kind(str(root / "dataset")), form="raw")
    return {split: list(records) for split, records in opened.items()}


CASES = {
    "Convert": convert_in_pipeline,
    "Input": list_references,
    "ReadImages": read_images,
    "StoredFile": read_stored,
    "convert": convert,
    "describe_split": lambda root, kind: recordmill.describe_split(kind(str(root / "dataset"))),
    "examples_as_numpy": examples_as_numpy,
    "load": load,
    "open": open_records,
    "open_dataset": lambda root, kind: recordmill.open_dataset(kind(str(root / "dataset"))),
    "verify_dataset": verify_dataset,
}


@pytest.mark.parametrize("name", CASES)
def test_a_path_may_be_a_str_or_any_path_like_object(folder, name):
    expected = CASES[name](folder, str)
    assert CASES[name](folder, Path) == expected
    assert CASES[name](folder, PlainPath) == expected


def test_every_public_function_that_takes_a_path_is_tested():
    annotated = {}
    for name in recordmill.__all__:
        public = getattr(recordmill, name)
        if inspect.isfunction(public) or (inspect.isclass(public) and "__init__" in vars(public)):
            annotated[name] = inspect.getfullargspec(public).annotations
    taken = {
        name
        for name, annotations in annotated.items()
        if any("PathLike" in str(each) for key, each in annotations.items() if key != "return")
    }
    assert taken == {*CASES}


def test_an_open_dataset_can_be_verified_as_well(folder):
    dataset = recordmill.open_dataset(folder / "dataset")
    by_path = recordmill.verify_dataset(folder / "dataset")
    assert recordmill.verify_dataset(dataset).as_dict() == by_path.as_dict()


def test_a_path_without_a_dataset_cannot_be_verified(tmp_path):
    with pytest.raises(recordmill.LoadError, match="does not exist or is empty"):
        recordmill.verify_dataset(tmp_path / "absent")


def test_what_is_not_a_path_is_a_type_error():
    with pytest.raises(TypeError, match=r"expected str, bytes or os.PathLike object, not int"):
        recordmill.open_dataset(3)
