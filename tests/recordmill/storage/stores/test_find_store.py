from recordmill.storage.stores.find_store import find_store


def test_other_stores_are_left_to_beam():
    assert [find_store(path) for path in ("/a", "hdfs://a/b", "shelf://a/b")] == [None] * 3
