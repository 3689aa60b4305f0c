"""Grain takes the records as a random-access source, with its own checkpoints."""

import pytest

REASON = "needs an environment of its own: make test-interop"
grain = pytest.importorskip("grain", reason=REASON)
pytest.importorskip("simplejpeg", reason=REASON)

pytestmark = pytest.mark.filterwarnings("ignore")


def make_epoch(opened):
    return grain.MapDataset.source(opened).shuffle(seed=5)


def test_it_is_a_source_that_grain_shuffles(opened):
    assert isinstance(opened, grain.sources.RandomAccessDataSource)
    epoch = list(make_epoch(opened))
    assert sorted(epoch) == sorted(opened)
    assert epoch != list(opened)


def test_its_checkpoints_go_on_from_every_place(opened):
    dataset = make_epoch(opened).to_iter_dataset()
    whole = list(dataset)
    places = range(0, len(whole), max(1, len(whole) // 50))
    iterator, states = iter(dataset), []
    for _ in whole:
        states.append(iterator.get_state())
        next(iterator)
    for place in places:
        other = iter(dataset)
        other.set_state(states[place])
        assert list(other) == whole[place:]


def test_its_processes_read_the_same(opened):
    dataset = make_epoch(opened).to_iter_dataset()
    options = grain.MultiprocessingOptions(num_workers=2)
    assert sorted(dataset.mp_prefetch(options)) == sorted(opened)


def test_its_data_loader_and_sampler(opened):
    options = grain.sharding.NoSharding()
    sampler = grain.samplers.IndexSampler(len(opened), options, shuffle=True, num_epochs=1, seed=1)
    found = list(grain.DataLoader(data_source=opened, sampler=sampler, worker_count=0))
    assert sorted(found) == sorted(opened)
    assert found != list(opened)


def test_the_page_is_true(run_block):
    assert run_block("train_grain.py").startswith("(8, 64, 64, 3) (8,) {")
