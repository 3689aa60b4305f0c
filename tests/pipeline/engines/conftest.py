"""The engines on which jobs run: Prism, Flink and Spark, each where its make target asks for it."""

from collections.abc import Callable, Iterator

import pytest
from engines import ENGINES, FLINK, SPARK, Cluster, Engine, marks_of


@pytest.fixture(params=[pytest.param(name, marks=marks_of(name)) for name in ENGINES])
def engine(request: pytest.FixtureRequest, start_engine: Callable[[str], Engine]) -> Engine:
    return start_engine(request.param)


@pytest.fixture(
    params=[pytest.param(each.name, marks=marks_of(each.name)) for each in (FLINK, SPARK)]
)
def cluster(request: pytest.FixtureRequest, start_engine: Callable[[str], Cluster]) -> Cluster:
    return start_engine(request.param)


@pytest.fixture(params=["LOOPBACK", "EXTERNAL"])
def flags(request: pytest.FixtureRequest, engine: Engine) -> tuple[str, ...]:
    """The flags that send a job to each engine, with each kind of workers that it has."""
    if request.param == "EXTERNAL" and not isinstance(engine, Cluster):
        pytest.skip(f"{engine.name} has no pool of workers here")
    return engine.flags(request.param)


@pytest.fixture
def flink(start_engine: Callable[[str], Cluster]) -> Cluster:
    """One task manager of two slots."""
    return start_engine("flink")


@pytest.fixture
def spark(start_engine: Callable[[str], Cluster]) -> Cluster:
    """One worker of two cores."""
    return start_engine("spark")


@pytest.fixture
def four_slots(flink: Cluster) -> Iterator[Callable[[], None]]:
    """Two task managers of two slots each; called, it starts those that do not run."""

    def start() -> None:
        flink.up("--task-managers", "2")

    flink.down()
    start()
    yield start
    flink.down()
