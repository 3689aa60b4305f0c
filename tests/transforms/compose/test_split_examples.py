import apache_beam as beam
import pytest
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.testing.util import assert_that, equal_to

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.settings.splits import SplitSettings
from recordmill.transforms.compose.split_examples import SplitExamples
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs

EXAMPLES = [(f"cat/{number}", b"%d" % number) for number in range(200)]


@pytest.mark.parametrize("fractions", [{"train": 0.8, "test": 0.2}, {"train": 0.5, "validation": 0.2}, {"all": 1.0}])
def test_examples_are_split_as_the_main_job_splits(fractions):
    splitter = ImageSplitter(4, SplitSettings(fractions=fractions), SplitCutoffs())
    expected = {name: [] for name in fractions}
    for key, example in EXAMPLES:
        if split := splitter.place(ImageRef(key, key))[1]:
            expected[split].append(example)
    assert all(expected.values())
    with beam.Pipeline(runner=FnApiRunner()) as root:
        splits = root | beam.Create(EXAMPLES) | SplitExamples(fractions, seed=4)
        assert list(splits) == list(fractions)
        for name, examples in splits.items():
            assert_that(examples, equal_to(expected[name]), label=name)


def test_impossible_fractions_raise_when_the_pipeline_is_built():
    pipeline = beam.Pipeline(runner=FnApiRunner())
    with pytest.raises(ValueError, match=r"sum to 1\.5"):
        pipeline | beam.Create(EXAMPLES) | SplitExamples({"a": 0.9, "b": 0.6})
