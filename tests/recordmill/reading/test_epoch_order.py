"""An order goes on from anywhere, with any number of ranks and any batch size."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.reading.epoch_order import EpochOrder, shuffle
from recordmill.schemas.errors import LoadError


def read(records, ranks, batch_size, state=None, steps=None, **more):
    """The numbers that all ranks read, step by step and in the order within a step, and the
    position after it."""
    orders = [
        EpochOrder(records=records, rank=rank, ranks=ranks, batch_size=batch_size, **more)
        for rank in range(ranks)
    ]
    for order in orders:
        if state:
            order.resume(state)
    batches = [list(itertools.islice(order, steps)) for order in orders]
    assert [len(each) for each in batches] == [
        min(len(order), steps or len(order)) for order in orders
    ]
    read = [
        number
        for step in itertools.zip_longest(*batches, fillvalue=[])
        for turn in itertools.zip_longest(*step)
        for number in turn
        if number is not None
    ]
    states = [order.position(steps or max(map(len, batches))) for order in orders]
    assert all(each == states[0] for each in states)
    return read, states[0]


@given(st.integers(0, 300), st.integers(0, 2**63), st.integers(0, 5))
def test_each_epoch_is_a_permutation(count, seed, epoch):
    assert sorted(shuffle(count, seed, epoch).tolist()) == list(range(count))


def test_an_order_never_changes():
    assert shuffle(10, 1, 2).tolist() == [0, 8, 3, 9, 4, 1, 5, 2, 6, 7]


def test_seeds_and_epochs_give_other_orders():
    orders = {
        tuple(shuffle(100, seed, epoch).tolist()) for seed in range(20) for epoch in range(20)
    }
    assert len(orders) == 400


@given(st.data())
def test_going_on_gives_the_rest_of_the_epoch_for_other_ranks_and_batches(data):
    records, seed = data.draw(st.integers(1, 400)), data.draw(st.integers(0, 9))
    whole, _ = read(records, 1, 1, seed=seed, epoch=3)
    ranks, size = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9))
    steps = data.draw(st.integers(1, 50))
    begun, state = read(records, ranks, size, steps=steps, seed=seed, epoch=3)
    rest, end = read(records, data.draw(st.integers(1, 5)), data.draw(st.integers(1, 9)), state)
    if state["epoch"] == 3:
        assert begun + rest == whole
    else:
        assert begun == whole
        assert rest == read(records, 1, 1, seed=seed, epoch=4)[0]
    assert end["start"] == 0


def test_without_shuffling_the_order_is_that_of_the_records():
    assert list(EpochOrder(records=7, batch_size=3, shuffle=False)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(EpochOrder(records=7, batch_size=2, shuffle=False, rank=1, ranks=2)) == [
        [1, 3],
        [5],
    ]


def test_without_a_last_step_that_is_not_full_ranks_take_the_same_number():
    orders = [
        EpochOrder(records=23, batch_size=3, rank=rank, ranks=2, drop_last=True)
        for rank in range(2)
    ]
    assert [len(list(order)) for order in orders] == [len(order) for order in orders] == [3, 3]
    assert orders[0].position(3) == {
        "format": 2,
        "records": 23,
        "shuffle": 1,
        "seed": 0,
        "epoch": 1,
        "start": 0,
    }
    assert [len(EpochOrder(records=23, batch_size=3, rank=rank, ranks=7)) for rank in (1, 2)] == [
        2,
        1,
    ]


def test_workers_share_the_batches():
    order = EpochOrder(records=23, batch_size=2, start=4)
    shares = [list(order.share(worker, 3)) for worker in range(3)]
    assert [shares[place % 3][place // 3] for place in range(len(order))] == list(order)


def test_an_epoch_begins_once():
    order = EpochOrder(records=10)
    order.resume(order.position(4))
    order.set_epoch(0)
    assert (order.epoch, order.start, len(order)) == (0, 4, 6)
    order.set_epoch(1)
    assert (order.epoch, order.start, len(order)) == (1, 0, 10)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0: it must be at least 1"),
        ({"rank": 2, "ranks": 2}, "rank is 2: it must be from 0 to 1"),
        ({"rank": -1}, "rank is -1: it must be from 0 to 0"),
        ({"seed": -1}, f"seed is -1: it must be from 0 to {2**63 - 1}"),
        ({"seed": 2**63}, f"seed is {2**63}: it must be from 0 to {2**63 - 1}"),
        ({"start": 11}, "start is 11: it must be from 0 to 10"),
        ({"epoch": -1}, f"epoch is -1: it must be from 0 to {2**63 - 1}"),
    ],
)
def test_wrong_numbers_are_one_sentence(wrong, sentence):
    with pytest.raises(LoadError, match=f"^{sentence}$"):
        EpochOrder(records=10, **wrong)


def test_a_position_in_another_split_is_refused():
    state = EpochOrder(records=10).position(3)
    earlier = {key: number for key, number in state.items() if key != "format"}
    for wrong in (
        {**state, "start": -1},
        {**state, "more": 1},
        {**state, "format": 1},
        earlier,
        {},
    ):
        with pytest.raises(LoadError):
            EpochOrder(records=10).resume(wrong)
    with pytest.raises(LoadError) as caught:
        EpochOrder(records=11).resume(state)
    assert str(caught.value) == (
        f"{state} is not a position in this split of 11 records, or it is one of another version "
        "of Recordmill: "
        "begin the epoch again"
    )


def test_an_order_stays_as_it_is_if_a_position_is_refused():
    order = EpochOrder(records=10, batch_size=3, seed=5)
    expected = list(order)
    position = order.position(0)
    for wrong in ({"start": 11}, {"epoch": -1}, {"seed": "a"}, {"start": 2.0}):
        with pytest.raises(LoadError):
            order.resume(position | wrong)
    with pytest.raises(LoadError):
        order.set_epoch(-1)
    assert list(order) == expected
