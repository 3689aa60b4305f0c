from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.scale_model import (
    MOVES_AT_ONCE,
    PUBLISHER,
    Cluster,
    Costs,
    Line,
    Prices,
    estimate,
    fit,
    fit_all,
    predict,
)

POSITIVE = st.floats(1e-3, 1e6)


@given(POSITIVE, POSITIVE, st.lists(st.integers(1, 10**6), min_size=2, max_size=5, unique=True))
def test_points_of_a_line_give_the_line(fixed, each, counts):
    line = Line(fixed, each)
    found = fit({count: [line.at(count)] for count in counts})
    for count in counts:
        assert found.at(count) == pytest.approx(line.at(count), rel=1e-6)


def test_a_size_counts_by_its_median():
    assert fit({10: [20, 900, 19], 20: [30]}) == Line(pytest.approx(10), pytest.approx(1))


def test_a_line_needs_two_sizes():
    with pytest.raises(ValueError, match="a line needs two sizes, and there are 1"):
        fit({10: [1.0]})


def test_only_what_all_runs_have_is_predicted():
    lines = fit_all({10: [{"a": 11, "b": 3}], 20: [{"a": 21, "c": 4}]})
    assert predict(lines, 100) == {"a": pytest.approx(101)}


COSTS = Costs(
    listing=1e-5,
    shuffling=2e-6,
    converting=1e-3,
    publishing=3e-6,
    output_bytes=1.1e5,
    shuffled_bytes=200,
    shard_memory=2_000,
)
CLUSTER = Cluster(
    workers=5, vcpus=4, memory_gb=16, slowness=2, start=100, page=0.2, request=0.05, reads=64
)  # fmt: skip
PRICES = Prices(vcpu_hour=0.05, gb_hour=0.004, shuffled_gb=0.01, thousand_reads=0.0004)


def test_an_estimate_is_the_sum_of_its_stages():
    found = estimate(1_000_000, COSTS, CLUSTER, PRICES, shard_bytes=1.1e8)
    assert found.shards == 1_000
    assert found.listing == pytest.approx(200 + 20)  # a thousand pages, and the CPU of one thread
    assert found.shuffling == pytest.approx(1e6 * 2e-6 * 2 / 20)
    assert found.converting == pytest.approx(1e6 * 1e-3 * 2 / 20)  # not the wait of 39 s
    assert found.publishing == pytest.approx(6 + 1_000 * (1 + 4 / MOVES_AT_ONCE) * 0.05)
    stages = found.listing + found.shuffling + found.converting + found.publishing
    assert found.seconds == pytest.approx(100 + stages)
    assert found.publishing_memory == pytest.approx(PUBLISHER + 2e6)
    hours = found.seconds / 3_600
    assert found.vcpu_cost == pytest.approx(20 * hours * 0.05)
    assert found.memory_cost == pytest.approx(80 * hours * 0.004)
    assert (found.read_cost, found.shuffle_cost) == (pytest.approx(0.4), pytest.approx(0.2 * 0.01))
    assert found.cost == pytest.approx(found.vcpu_cost + found.memory_cost + 0.4 + 0.002)


def test_a_slow_store_is_waited_for():
    found = estimate(1_000_000, COSTS, replace(CLUSTER, request=1.0), PRICES, shard_bytes=1e8)
    assert found.converting == pytest.approx(1_000_000 / (20 * 64))


def test_only_inputs_divide_the_listing_and_only_workers_the_conversion():
    one = estimate(1_000_000, COSTS, CLUSTER, PRICES, shard_bytes=1e8)
    listed = estimate(1_000_000, COSTS, replace(CLUSTER, listings=10), PRICES, shard_bytes=1e8)
    assert (listed.listing, listed.converting) == (pytest.approx(one.listing / 10), one.converting)
    more = estimate(1_000_000, COSTS, replace(CLUSTER, workers=10), PRICES, shard_bytes=1e8)
    assert (more.listing, more.publishing) == (one.listing, one.publishing)
    assert (more.converting, more.shuffling) == (one.converting / 2, one.shuffling / 2)
