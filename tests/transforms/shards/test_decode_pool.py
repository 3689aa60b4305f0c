import pytest

from recordmill.transforms.shards import decode_pool as readers_module
from recordmill.transforms.shards.decode_pool import REMOTE_READERS, DecodePool


def test_readers_are_shared_and_end_with_their_last_user():
    one, other, alone = DecodePool.acquire(2), DecodePool.acquire(2), DecodePool.acquire(3)
    assert one is other is not alone
    pool = one.pool_for("/a")
    assert pool is other.pool_for("/b") is not one.pool_for("gs://bucket/a")
    one.release()
    assert list(pool.map(str, [1, 2], lambda _: 1, len)) == ["1", "2"]
    other.release()
    with pytest.raises(RuntimeError):
        list(pool.map(str, [1, 2], lambda _: 1, len))
    assert DecodePool.acquire(2) is not one
    for readers in (DecodePool._shared[2], alone):
        readers.release()


def test_threads_for_a_network_are_started_for_a_remote_file(monkeypatch):
    begun = []
    real = readers_module.ReadAhead
    monkeypatch.setattr(
        readers_module, "ReadAhead", lambda threads, **options: (begun.append(threads), real(threads, **options))[1]
    )
    readers = DecodePool.acquire(2)
    readers.pool_for("/a")
    assert begun == [2]
    readers.pool_for("gs://bucket/a")
    assert begun == [2, REMOTE_READERS]
    readers.release()
