import threading

from recordmill.transforms.shards import read_ahead
from recordmill.transforms.shards.read_ahead import REMOTE_READERS, DecodePool


def test_the_pool_is_shared_and_ends_with_its_last_user():
    one, other, alone = DecodePool.of(2), DecodePool.of(2), DecodePool.of(3)
    assert one is other is not alone
    pool = one.pool_for("/a")
    assert pool is other.pool_for("/b") is not one.pool_for("gs://bucket/a")
    threads = set(pool.map(lambda _: threading.current_thread(), range(40), lambda _: 1, lambda _: 1))
    del one, pool
    assert list(DecodePool._shared) == [2, 3]
    del other
    assert list(DecodePool._shared) == [3]
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_threads_for_a_network_are_started_for_a_remote_file(monkeypatch):
    begun = []
    real = read_ahead.ReadAhead
    monkeypatch.setattr(
        read_ahead, "ReadAhead", lambda threads, **options: (begun.append(threads), real(threads, **options))[1]
    )
    readers = DecodePool.of(2)
    readers.pool_for("/a")
    assert begun == [2]
    readers.pool_for("gs://bucket/a")
    assert begun == [2, REMOTE_READERS]
