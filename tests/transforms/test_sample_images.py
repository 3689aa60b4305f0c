from collections import Counter
from types import SimpleNamespace

import pytest
from make_settings import make_settings

from recordmill.schemas.image_ref import ImageRef
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.settings.dataset import ShardSettings, SplitSettings
from recordmill.transforms.plan_shards import (
    convert_sample,
    growth_of,
    predict_seconds,
    price_run,
)
from recordmill.transforms.planning.progress import Progress
from recordmill.transforms.planning.splitting import ImageSplitter, SplitCutoffs
from recordmill.transforms.planning.summary import SplitSummary, Summary

SETTINGS = make_settings(
    shards=ShardSettings(count=1), splits=SplitSettings(fractions={"train": 1.0})
)


def summary_of(refs):
    summary = Summary()
    summary.add(ReferenceBatch.of(refs), ImageSplitter(0, SETTINGS.splits, SplitCutoffs()))
    return summary


def sample_of(sizes, seconds):
    return [
        (ImageRef("a", "/a", size), SimpleNamespace(seconds=each))
        for size, each in zip(sizes, seconds, strict=True)
    ]


@pytest.mark.parametrize(
    ("sizes", "values", "total"),
    [
        ([10, 20, 30], [105, 205, 305], 10 * 1_000 + 100 * 5),  # 10 a byte, and 5 an image
        ([10, 10, 10], [1, 2, 3], 100 * 2),  # of one size: the mean
        ([10, 20, 30], [3, 2, 1], 100 * 2),  # larger files do not cost less
        ([50], [7], 100 * 7),
    ],
)
def test_seconds_follow_the_sizes_of_the_files(sizes, values, total):
    summary = Summary(splits={"train": SplitSummary(Counter(cat=100), 1_000)})
    assert predict_seconds(sample_of(sizes, values), summary) == pytest.approx(total)


def test_of_a_sample_of_all_images_the_bytes_are_exact(pictures):
    refs = pictures(6)
    summary = summary_of(refs)
    sample = convert_sample(summary, SETTINGS)
    price = price_run(sample, summary, SETTINGS, 1, Progress())
    assert (len(sample), price.bytes_read) == (6, sum(ref.size for ref in refs))
    assert price.bytes_written == sum(image.size() + 16 for _, image in sample)
    assert price.bytes_written == round(growth_of(sample) * price.bytes_read)
    assert 100 < price.bytes_shuffled / 6 < 500


def test_the_price_holds_what_was_spent_and_more_processes_are_faster(pictures, monkeypatch):
    monkeypatch.setattr(Progress, "cpu_seconds", lambda _: 1_000.0)
    summary = summary_of(pictures(6))
    sample = convert_sample(summary, SETTINGS)
    one, four = (
        price_run(sample, summary, SETTINGS, processes, Progress()) for processes in (1, 4)
    )
    assert 1_000 < one.cpu_seconds < four.cpu_seconds < 1_010
    assert one.minutes == pytest.approx(one.cpu_seconds / 60, abs=0.01)


def test_gzip_is_part_of_the_price(pictures):
    summary = summary_of(pictures(6))
    packed = make_settings(shards=SETTINGS.shards, splits=SETTINGS.splits, compression="gzip")
    plain, gzip = (
        price_run(convert_sample(summary, each), summary, each, 1, Progress()).bytes_written
        for each in (SETTINGS, packed)
    )
    assert gzip < plain
