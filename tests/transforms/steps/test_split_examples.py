import apache_beam as beam
import pytest
from apache_beam.typehints.decorators import TypeCheckError
from eager_beam import assert_that, new_pipeline

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.steps.elements import BuiltExample
from recordmill.transforms.steps.split_examples import SplitExamples

EXAMPLES = [BuiltExample(f"{n}.jpg", f"g{n % 7}" * (n % 2), str(n).encode()) for n in range(60)]


def run_split(examples, step):
    found = {}
    with new_pipeline() as pipeline:
        outputs = pipeline | beam.Create(examples) | step
        for number, records in enumerate(outputs):
            assert_that(records, found.setdefault(number, []).extend)
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("fractions", [{"train": 0.8, "test": 0.2}, {"b": 0.5, "a": 0.2}])
def test_the_splits_are_those_of_the_main_job(fractions, seed):
    splitter = ImageSplitter(seed, SplitSettings(fractions=fractions), SplitCutoffs())
    expected = {name: [] for name in fractions}
    for each in EXAMPLES:
        split = splitter.place(ImageRef(each.key, "", group=each.group))[1]
        expected.setdefault(split, []).append(each.record)
    expected.pop("", None)
    assert all(expected.values())
    assert run_split(EXAMPLES, SplitExamples(fractions, seed)) == list(expected.values())


def test_a_split_that_is_decided_already_stays():
    example = BuiltExample("a", "", b"r", "test")
    assert run_split([example], SplitExamples({"train": 1.0, "test": 1e-9})) == [[], [b"r"]]


def test_a_split_without_a_fraction_is_an_error():
    with pytest.raises(ValueError, match="the split of a is 'x', which is not one of train: add"):
        run_split([BuiltExample("a", "", b"r", "x")], SplitExamples({"train": 1.0}))


@pytest.mark.parametrize("fractions", [{}, {"train": 1.1}, {"a/b": 1.0}, {"train": -1.0}])
def test_impossible_fractions_are_errors(fractions):
    with pytest.raises(ValueError, match="fractions"):
        SplitExamples(fractions)


def test_wrong_types_are_found_when_the_pipeline_is_built():
    with pytest.raises(TypeCheckError, match="Input type hint violation at SplitExamples"):
        beam.Pipeline() | beam.Create([b"record"]) | SplitExamples({"train": 1.0})


def test_its_settings_are_display_data():
    shown = SplitExamples({"train": 1.0}, 3).display_data()
    assert shown == {"fractions": "{'train': 1.0}", "seed": "3"}
