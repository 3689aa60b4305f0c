import threading
import time
from concurrent.futures import Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordmill.transforms.shards import read_ahead
from recordmill.transforms.shards.read_ahead import ReadAhead


@pytest.fixture(params=[1, 4])
def ahead(request):
    pool = ReadAhead(request.param)
    yield pool
    pool.close()


def no_size(_):
    return 0


@given(st.lists(st.integers(0, 3 * 2**20), max_size=80), st.integers(1, 5), st.integers(1, 20))
def test_results_are_those_of_map_in_its_order(sizes, threads, batch_items):
    pool = ReadAhead(threads, batch_items)
    try:
        items = list(enumerate(sizes))
        assert list(
            pool.map(
                lambda item: (item, "done"), items, lambda item: item[1], lambda done: done[0][1]
            )
        ) == [(item, "done") for item in items]
    finally:
        pool.close()


def test_order_is_kept_when_later_items_are_done_first(ahead):
    def slow_at_first(number):
        time.sleep(0.002 if number % 16 == 0 else 0)
        return number

    assert list(ahead.map(slow_at_first, range(200), lambda _: 1, no_size)) == list(range(200))


@pytest.mark.parametrize("size", [2**20, 10 * 2**20, 100 * 2**20])
def test_items_under_way_stay_within_the_window(size):
    pool = ReadAhead(4)
    started, consumed, most = 0, 0, 0

    def items():
        nonlocal started, most
        for number in range(60):
            started += 1
            most = max(most, started - consumed)
            yield number

    for _ in pool.map(lambda number: number, items(), lambda _: size, lambda _: size):
        consumed += 1
    pool.close()
    # One batch more is already made when room for it is looked for.
    assert most <= max(1, read_ahead.WINDOW_BYTES // size) + 1


def test_the_number_of_waiting_batches_is_bounded_too():
    pool = ReadAhead(2)
    consumed, most, started = 0, 0, 0

    def items():
        nonlocal started, most
        for number in range(2000):
            started += 1
            most = max(most, started - consumed)
            yield number

    for _ in pool.map(lambda number: number, items(), lambda _: 1, no_size):
        consumed += 1
    pool.close()
    assert most <= (2 * 2 + 3) * read_ahead.BATCH_ITEMS


class _RunHere:
    """An executor without threads, so that nothing depends on time."""

    def __init__(self, *_, **__):
        pass

    def submit(self, work, *arguments):
        done = Future()
        done.set_result(work(*arguments))
        return done


def test_results_that_were_consumed_make_room_for_others(monkeypatch):
    monkeypatch.setattr(read_ahead, "ThreadPoolExecutor", _RunHere)
    monkeypatch.setattr(read_ahead, "WINDOW_BYTES", 4)
    begun, ahead = [], []

    def begin(number):
        begun.append(number)
        return number

    for number in ReadAhead(4, batch_items=1).map(begin, range(10), lambda _: 1, lambda _: 1):
        ahead.append(len(begun) - number - 1)
    assert ahead == [3, 3, 3, 3, 3, 3, 3, 2, 1, 0]


def test_an_error_comes_at_its_place_and_the_rest_is_dropped(ahead):
    called, results = [], []

    def fail_at_100(number):
        called.append(number)
        if number == 100:
            raise ZeroDivisionError("at 100")
        return number

    with pytest.raises(ZeroDivisionError, match="at 100"):
        results.extend(ahead.map(fail_at_100, range(100_000), lambda _: 1, no_size))
    assert len(called) < 2000
    assert list(ahead.map(str, [1, 2], lambda _: 1, no_size)) == ["1", "2"], (
        "the pool is of no use any more"
    )


def test_results_before_an_error_are_given():
    pool = ReadAhead(2, batch_items=1)
    results = []
    with pytest.raises(ZeroDivisionError):
        results.extend(pool.map(lambda number: 1 / (3 - number), range(10), lambda _: 1, no_size))
    pool.close()
    assert results == [1 / 3, 1 / 2, 1.0]


def test_an_error_of_the_items_comes_through(ahead):
    def items():
        yield 1
        raise OSError("the list ended early")

    with pytest.raises(OSError, match="the list ended early"):
        list(ahead.map(str, items(), lambda _: 1, no_size))


def test_a_consumer_that_stops_stops_the_work(ahead):
    called = []
    results = ahead.map(called.append, range(100_000), lambda _: 1, no_size)
    next(results)
    results.close()
    ahead.close()
    assert len(called) < 2000


def test_as_many_threads_work_at_once_as_asked_for():
    barrier = threading.Barrier(3, timeout=60)
    pool = ReadAhead(3, batch_items=1)
    assert (
        list(pool.map(lambda _: barrier.wait() >= 0, range(3), lambda _: 1, no_size)) == [True] * 3
    )
    pool.close()


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("batch_items", [1, 16])
def test_large_results_of_small_items_are_bounded_too(threads, batch_items):
    size = 5 * 2**20
    pool = ReadAhead(threads, batch_items)
    made, consumed, most = [], 0, 0

    def grow(number):
        made.append(number)
        return number

    for number in pool.map(grow, range(150), lambda _: 1000, lambda _: size):
        assert number == consumed
        time.sleep(0.001)  # so that the threads come as far as they may
        most = max(most, len(made) - consumed)
        consumed += 1
    pool.close()
    assert consumed == 150
    assert most * size <= read_ahead.WINDOW_BYTES + (2 * threads + 1) * size


def test_results_larger_than_the_window_come_in_order(ahead):
    assert list(ahead.map(str, range(50), lambda _: 1, lambda _: 2**40)) == [
        str(number) for number in range(50)
    ]


def test_a_consumer_that_waits_does_not_block_others():
    pool = ReadAhead(1)
    slow = pool.map(str, range(100), lambda _: 1, lambda _: 2**30)
    assert next(slow) == "0"
    assert list(pool.map(str, range(100), lambda _: 1, lambda _: 2**30)) == [
        str(number) for number in range(100)
    ]
    assert list(slow) == [str(number) for number in range(1, 100)]
    pool.close()


def test_batches_are_as_large_as_asked_for():
    pool = ReadAhead(2, batch_items=3, batch_bytes=10)
    sizes = [1, 1, 1, 9, 1, 20, 1]
    batches = []

    def keep(batch):
        batches.append([*batch])
        return [*batch]

    assert list(pool.map_batches(keep, sizes, lambda size: size, no_size)) == sizes
    pool.close()
    assert sorted(batches) == [[1], [1, 1, 1], [9, 1], [20]]


def test_a_batch_gives_the_results_of_each_call_in_turn(ahead):
    assert list(
        ahead.map_batches(lambda batch: batch[:3], range(50), lambda _: 1, no_size)
    ) == list(range(50))


def test_an_error_in_the_rest_of_a_batch_comes_through(ahead):
    def fail_at_20(number):
        if number == 20:
            raise ZeroDivisionError("at 20")
        return number

    with pytest.raises(ZeroDivisionError, match="at 20"):
        list(ahead.map(fail_at_20, range(40), lambda _: 1, lambda _: 2**40))
