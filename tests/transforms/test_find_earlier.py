from dataclasses import replace

import pytest
from eager_beam import assert_that, new_pipeline
from make_settings import make_settings

from recordmill.pipeline.configuration.resolve_settings import make_recipe
from recordmill.schemas.settings.dataset import ShardSettings, SplitSettings
from recordmill.transforms.find_earlier import FindEarlier
from recordmill.transforms.planning.earlier_dataset import EarlierDatasets, EarlierNames

SETTINGS = make_settings(
    shards=ShardSettings(count=1), splits=SplitSettings(fractions={"train": 1.0})
)


@pytest.fixture
def dataset(pictures, run, run_steps):
    """The folder of a dataset."""
    pictures(4)
    assert run_steps(SETTINGS, run)["status"] == "published"
    return run.output


def find(names, settings=SETTINGS):
    found = []
    with new_pipeline() as pipeline:
        earlier = pipeline | FindEarlier(names, settings, make_recipe(settings))
        assert_that(earlier, found.extend)
    return found[0]


def test_the_named_datasets_are_opened_when_the_pipeline_runs(dataset):
    found = find(EarlierNames((dataset,), dataset, dataset))
    assert [each.folder for each in found.reuse] == [dataset]
    assert (found.updated.folder, found.against.folder) == (dataset, dataset)
    assert [each.dataset.folder for each in found.reusable] == [dataset]
    assert (found.notes, found.problem) == ((), None)


def test_an_output_without_a_dataset_is_not_updated(tmp_path):
    assert find(EarlierNames(updated=str(tmp_path))) == EarlierDatasets()


def test_a_dataset_that_does_not_fit_is_noted(dataset):
    other = replace(SETTINGS, images=replace(SETTINGS.images, quality=50, reencode="always"))
    found = find(EarlierNames((dataset,)), other)
    assert found.reusable == ()
    assert found.notes[0].startswith(f"no image of {dataset} could be reused: ")


def test_what_cannot_be_opened_is_a_problem(dataset, tmp_path):
    missing = find(EarlierNames((str(tmp_path / "missing"),)))
    assert missing.problem == (
        f"--reuse: {tmp_path}/missing holds no finished dataset: name one, or remove the flag"
    )
    seeded = find(EarlierNames((dataset,)), replace(SETTINGS, seed=3))
    assert seeded.problem == (
        f"--reuse: unit and seed of {dataset} are ('image', 0), not ('image', 3): set seed, or "
        "remove --reuse"
    )
