"""What is Amazon's own; what all stores do is in test_store.py."""

import pytest

from recordmill import storage
from recordmill.storage.stores.find_store import find_store
from recordmill.storage.stores.store import BLOCK_BYTES

pytest.importorskip("boto3", reason="no apache-beam[aws] here: make test-stores")

from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from recordmill.storage.stores.amazon_store import _os_errors


def answered(status):
    return ClientError(
        {"ResponseMetadata": {"HTTPStatusCode": status}, "Error": {"Message": "slow down"}},
        "GetObject",
    )


@pytest.mark.parametrize("error", [answered(403), NoCredentialsError()])
def test_denied_is_denied(error):
    with pytest.raises(PermissionError) as caught, _os_errors("s3://b/a"):
        raise error
    assert (caught.value.filename, caught.value.__cause__) == ("s3://b/a", error)


@pytest.mark.parametrize(
    "error", [answered(503), EndpointConnectionError(endpoint_url="slow down")]
)
def test_an_outage_is_reported(error):
    with pytest.raises(OSError, match="slow down") as caught, _os_errors("s3://b/a"):
        raise error
    assert type(caught.value) is OSError


def test_what_is_small_goes_in_one_request_and_what_is_large_in_parts(amazon):
    served, folder = amazon
    before = len(served.requests())
    for size in (0, 1000):
        with storage.open_to_write(f"{folder}{size}") as stream:
            stream.write(bytes(size))
    assert [method for method, _ in served.requests()[before:]] == ["PUT", "PUT"]
    before = len(served.requests())
    with storage.open_to_write(f"{folder}large") as stream:
        for _ in range(5):
            stream.write(bytes(BLOCK_BYTES // 2))
    assert [method for method, _ in served.requests()[before:]] == [
        "POST",
        "PUT",
        "PUT",
        "PUT",
        "POST",
    ]


def test_an_upload_that_cannot_be_finished_leaves_no_parts(amazon, monkeypatch):
    _, folder = amazon
    client = find_store(folder)._client
    stream = storage.open_to_write(f"{folder}large")
    stream.write(bytes(BLOCK_BYTES))

    def fail(**_):
        raise answered(500)

    with monkeypatch.context() as broken:
        broken.setattr(client, "complete_multipart_upload", fail)
        with pytest.raises(OSError, match="slow down"):
            stream.close()
    assert "Uploads" not in client.list_multipart_uploads(Bucket="recordmill")
    assert not storage.exists(f"{folder}large")


def test_more_keys_than_one_request_takes_are_deleted(amazon):
    _, folder = amazon
    storage.write_file(f"{folder}last", b"")
    storage.remove_files([*(f"{folder}{number:04}" for number in range(1500)), f"{folder}last"])
    assert storage.folder_names(folder) == []


def test_the_places_that_beams_options_name_are_asked(amazon, monkeypatch):
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions

    served, folder = amazon
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    options = PipelineOptions([f"--s3_endpoint_url={served.address}"])
    FileSystems.set_options(options)
    storage.write_file(f"{folder}a", b"there")
    assert storage.read_range(f"{folder}a") == b"there"
