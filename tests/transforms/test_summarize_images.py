import random
from collections import Counter
from dataclasses import replace

import apache_beam as beam
import pytest
from apache_beam.pvalue import AsSingleton
from apache_beam.testing.util import equal_to
from eager_beam import assert_that, new_pipeline
from make_settings import make_settings

from recordmill.schemas.digests import HASH_RANGE
from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import SplitSettings
from recordmill.transforms.inputs.sources.class_folders import ClassFolders
from recordmill.transforms.inputs.sources.coco import Coco
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import Summary
from recordmill.transforms.summarize_images import SummarizeImages

SPLITS = SplitSettings(fractions={"train": 0.7, "test": 0.3})
HALF = SplitCutoffs(cutoff=HASH_RANGE // 2)
REFS = [
    *(ImageRef(f"cat/{index}", "", size=index, label="cat") for index in range(100)),
    ImageRef("a", "a").notice("rejected", "no_class"),
]


def summarize(source, selection):
    return SummarizeImages(make_settings(seed=3, splits=SPLITS, source=source), selection)


def summary_of(refs, selection=HALF):
    total = Summary()
    for ref in refs:
        total.add(ReferenceBatch.of([ref]), ImageSplitter(3, SPLITS, selection))
    return total


@pytest.mark.parametrize("seed", range(3))
def test_a_shuffled_collection_gives_the_same_one_summary(seed):
    shuffled = random.Random(seed).sample(REFS, len(REFS))
    with new_pipeline() as root:
        selection = AsSingleton(root | "SplitCutoffs" >> beam.Create([HALF]))
        batches = (
            root | beam.Create([ReferenceBatch.of([ref]) for ref in shuffled]) | beam.Reshuffle()
        )
        assert_that(
            batches | summarize(ClassFolders(), selection),
            equal_to([summary_of(REFS)]),
        )


@pytest.mark.runner
def test_files_that_references_name_are_not_listed_besides():
    files = [
        ImageRef(f"{n}.jpg", f"/x/{n}.jpg").notice("ignored", "taken_only_by_name")
        for n in range(9)
    ]
    refs = [*(ImageRef(f"{n}.jpg", f"/x/{n}.jpg", label="cat") for n in range(6)), *files]
    with new_pipeline() as root:
        batches = root | beam.Create([ReferenceBatch.of([ref]) for ref in refs]) | beam.Reshuffle()
        expected = replace(summary_of(refs), listed=9, ignored=Counter(without_annotation=3))
        assert_that(batches | summarize(Coco(), HALF), equal_to([expected]))


@pytest.mark.parametrize("source", [ClassFolders(), Coco()])
def test_nothing_listed_gives_an_empty_summary(source):
    with new_pipeline() as root:
        batches = (
            root | beam.Create([]) | beam.Map(lambda batch: batch).with_output_types(ReferenceBatch)
        )
        assert_that(
            batches | summarize(source, SplitCutoffs()),
            equal_to([Summary()]),
        )


def test_merged_parts_are_the_whole_in_any_order():
    parts = [summary_of(REFS[at : at + 17]) for at in range(0, len(REFS), 17)]
    assert Summary.sum_of([Summary.sum_of(parts[3:]), *reversed(parts[:3])]) == summary_of(REFS)
