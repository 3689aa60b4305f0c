from apache_beam.io.filesystem import FileMetadata

from recordmill.storage.stores.versioned_object import VersionedObject, version_of


def test_the_version_of_an_object_is_what_its_store_gives_or_the_time():
    assert version_of(VersionedObject("gs://b/a", 1, 2.5, "generation:7")) == "generation:7"
    assert version_of(VersionedObject("gs://b/a", 1, 2.5, "")) == "2.5"
    assert version_of(FileMetadata("hdfs://a", 1, 2.5)) == "2.5"
