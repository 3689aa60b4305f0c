from recordmill.transforms.shards import read_ahead
from recordmill.transforms.shards.read_ahead import REMOTE_READERS, decoding_limit, pool_for


def test_threads_are_shared_and_more_of_them_wait_for_a_network(monkeypatch):
    begun = []
    real = read_ahead.ReadAhead
    monkeypatch.setattr(
        read_ahead,
        "ReadAhead",
        lambda threads, **options: (begun.append(threads), real(threads, **options))[1],
    )
    pool_for.cache_clear()
    assert (
        pool_for(7, is_local=True) is pool_for(7, is_local=True) is not pool_for(7, is_local=False)
    )
    assert begun == [7, REMOTE_READERS]
    assert decoding_limit(7) is decoding_limit(7) is not decoding_limit(8)
