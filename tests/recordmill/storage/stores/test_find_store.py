from recordmill.storage.stores.beam import BeamStore
from recordmill.storage.stores.find_store import find_store


def test_other_stores_are_left_to_beam():
    assert [type(find_store(path)) for path in ("/a", "hdfs://a/b", "shelf://a/b")] == [BeamStore] * 3
