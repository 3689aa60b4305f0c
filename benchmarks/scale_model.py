"""Predicts what a run of any size costs from what small ones did.

It has straight lines, and the arithmetic of docs/scale.md, whose table `python -m
benchmarks.scale_model` prints. It measures nothing itself. Times are in seconds, memory in bytes,
prices in any currency.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

Figures = Mapping[str, float]
"""What was measured of one run, by name."""


@dataclass(frozen=True, slots=True)
class Line:
    """A cost that has a fixed part and one for each reference."""

    fixed: float
    each: float

    def at(self, references: int) -> float:
        """The cost of so many."""
        return self.fixed + self.each * references


def fit(points: Mapping[int, Sequence[float]]) -> Line:
    """Returns the line through the medians at each size.

    It has the least squares of relative errors, and two sizes determine it.

    Args:
        points: measured values, all above 0, by number of references.

    Raises:
        ValueError: there are fewer than two sizes.
    """
    if len(points) < 2:
        raise ValueError(f"a line needs two sizes, and there are {len(points)}")
    medians = {count: statistics.median(values) for count, values in points.items()}
    # Weighted by 1 / y^2, so that the small size decides the fixed part as much as the large one
    # the slope.
    weights = {count: 1 / value**2 for count, value in medians.items()}
    total = sum(weights.values())
    mean_x = sum(weights[count] * count for count in medians) / total
    mean_y = sum(weights[count] * value for count, value in medians.items()) / total
    spread = sum(weights[count] * (count - mean_x) ** 2 for count in medians)
    each = (
        sum(
            weights[count] * (count - mean_x) * (value - mean_y) for count, value in medians.items()
        )
        / spread
    )
    return Line(mean_y - each * mean_x, each)


def fit_all(runs: Mapping[int, Sequence[Figures]]) -> dict[str, Line]:
    """A line for each figure that all runs have."""
    names = [
        name
        for name in next(iter(runs.values()))[0]
        if all(name in run for own in runs.values() for run in own)
    ]
    return {
        name: fit({count: [run[name] for run in own] for count, own in runs.items()})
        for name in names
    }


def predict(lines: Mapping[str, Line], references: int) -> dict[str, float]:
    """Each figure of a run of so many references."""
    return {name: line.at(references) for name, line in lines.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was measured of one image or shard, on a core of the measuring machine.

    Attributes:
        listing: CPU seconds of a reference until the plan is made: found, summarized.
        shuffling: CPU seconds of a reference from the plan to its shard's group.
        converting: CPU seconds of an image from its group to its finished shard.
        publishing: CPU seconds of an image while the dataset is published.
        output_bytes: of its record and its row.
        shuffled_bytes: of its reference with its shard.
        shard_memory: bytes of memory of a shard in the process that publishes.
    """

    listing: float
    shuffling: float
    converting: float
    publishing: float
    output_bytes: float
    shuffled_bytes: float
    shard_memory: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Where it runs: all of it assumed, none of it measured.

    Attributes:
        workers: machines.
        vcpus: of each, with a process each.
        memory_gb: of each.
        slowness: seconds of a vCPU for one second of a core of the measuring machine.
        start: seconds until workers work.
        page: seconds in which a store lists 1,000 names.
        request: seconds in which a store answers.
        reads: images that one process reads at once.
        listings: parts of the input that are listed side by side.
    """

    workers: int
    vcpus: int
    memory_gb: float
    slowness: float
    start: float
    page: float
    request: float
    reads: int
    listings: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What you pay.

    Attributes:
        vcpu_hour: for a vCPU and hour.
        gb_hour: for a GB of memory and hour.
        shuffled_gb: for a GB shuffled.
        thousand_reads: for 1,000 reads of a store.
    """

    vcpu_hour: float
    gb_hour: float
    shuffled_gb: float
    thousand_reads: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The predicted time, memory and money of one run.

    Seconds are by stage and of all stages, memory is in the process that publishes, and money is by
    what it is for.
    """

    listing: float
    shuffling: float
    converting: float
    publishing: float
    seconds: float
    shards: int
    publishing_memory: float
    vcpu_cost: float
    memory_cost: float
    read_cost: float
    shuffle_cost: float

    @property
    def cost(self) -> float:
        """All of it."""
        return self.vcpu_cost + self.memory_cost + self.read_cost + self.shuffle_cost


MOVES_AT_ONCE = 16
"""Files that are moved at a time on a store (docs/object_stores.md)."""

PUBLISHER = 400e6
"""Bytes of the process that publishes, without what it holds of each shard: 100 MB of them for
digests, at most."""


def estimate(
    images: float, costs: Costs, cluster: Cluster, prices: Prices, shard_bytes: float
) -> Estimate:
    """What so many images cost on a cluster.

    Listing is one thread's work for each input, and publishing one process's; the rest is shared by
    all vCPUs. Where a store answers slowly, converting waits for it rather than for the CPU.

    Args:
        images: how many.
        costs: of one of them.
        cluster: where it runs.
        prices: what that costs.
        shard_bytes: of a shard.
    """
    processes = cluster.workers * cluster.vcpus
    shards = math.ceil(images * costs.output_bytes / shard_bytes)
    listing = images / cluster.listings * (cluster.page / 1_000 + costs.listing * cluster.slowness)
    shuffling = images * costs.shuffling * cluster.slowness / processes
    waiting = images * cluster.request / (processes * cluster.reads)
    converting = max(images * costs.converting * cluster.slowness / processes, waiting)
    # A sidecar is read; two files are copied and deleted.
    requests = shards * (1 + 2 * 2 / MOVES_AT_ONCE)
    publishing = images * costs.publishing * cluster.slowness + requests * cluster.request
    seconds = cluster.start + listing + shuffling + converting + publishing
    hours = seconds / 3_600
    return Estimate(
        listing=listing,
        shuffling=shuffling,
        converting=converting,
        publishing=publishing,
        seconds=seconds,
        shards=shards,
        publishing_memory=PUBLISHER + shards * costs.shard_memory,
        vcpu_cost=processes * hours * prices.vcpu_hour,
        memory_cost=cluster.workers * cluster.memory_gb * hours * prices.gb_hour,
        read_cost=images / 1_000 * prices.thousand_reads,
        shuffle_cost=images * costs.shuffled_bytes / 1e9 * prices.shuffled_gb,
    )


MEASURED = Costs(
    listing=24e-6,
    shuffling=7e-6,
    converting=2.6e-3,
    publishing=6.3e-6,
    output_bytes=108.4e3,
    shuffled_bytes=172,
    shard_memory=11e3,
)
"""Photographs of 108 KB that are checked and copied, on a core of the measuring machine."""

ASSUMED = Cluster(
    workers=10,
    vcpus=4,
    memory_gb=16,
    slowness=2,
    start=240,
    page=0.2,
    request=0.05,
    reads=128,
    listings=1,
)
"""A cluster that was never run."""

REMEMBERED = Prices(vcpu_hour=0.056, gb_hour=0.0036, shuffled_gb=0.011, thousand_reads=0.0004)
"""Approximate list prices of a US region, in dollars."""

CASES = (
    (1e6, ASSUMED, 2**27),
    (1e6, replace(ASSUMED, workers=100), 2**27),
    (1e8, replace(ASSUMED, workers=100), 2**30),
    (1e8, replace(ASSUMED, workers=100, listings=50), 2**30),
    (1e9, replace(ASSUMED, workers=100, listings=50), 2**31),
    (1e9, replace(ASSUMED, workers=1_000, listings=500), 2**31),
)
"""The images, the cluster and the bytes of a shard in each row of the page's table."""


def main() -> None:
    """Prints the rows of the table."""
    for images, cluster, shard_bytes in CASES:
        found = estimate(images, MEASURED, cluster, REMEMBERED, shard_bytes)
        stages = (found.listing, found.converting, found.publishing, found.seconds)
        print(
            f"| {images:,.0f} | {cluster.workers:,} | {cluster.listings} | {found.shards:,} | "
            + " | ".join(f"{seconds / 60:,.1f}" for seconds in stages)
            + f" | {found.cost:,.2f} |"
        )


if __name__ == "__main__":
    main()
