"""Google Cloud Storage."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.gcp.gcsio import BeamBlobWriter, create_storage_client
from apache_beam.options.pipeline_options import PipelineOptions
from google.api_core.exceptions import GoogleAPIError, NotFound, RequestRangeNotSatisfiable
from google.auth.exceptions import GoogleAuthError
from google.cloud.storage.exceptions import DataCorruption
from google.cloud.storage.retry import DEFAULT_RETRY
from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException

from recordmill.storage.stores.store import (
    BLOCK_BYTES,
    CONNECTIONS,
    STALL_SECONDS,
    BrokenBodyError,
    Store,
    in_parallel,
    read_resuming,
    split_uri,
    system_error,
)
from recordmill.storage.stores.versioned_object import VersionedObject

_TYPE = "application/octet-stream"


class GoogleStore(Store):
    """Objects at `gs://bucket/name`; see `Store`.

    The client is created like Beam's: from the pipeline's options and Google's default credentials.
    Writes are retried too, since each writes the same bytes again.
    """

    starts_anywhere = True

    def __init__(self, options: PipelineOptions) -> None:
        self._client = create_storage_client(options)
        # By default it keeps ten and discards the others.
        adapter = HTTPAdapter(pool_maxsize=CONNECTIONS)
        for scheme in ("https://", "http://"):
            self._client._http.mount(scheme, adapter)

    def _blob(self, uri: str) -> Any:
        bucket, name = split_uri(uri)
        return self._client.bucket(bucket).blob(name)

    def read(self, uri: str, offset: int, length: int) -> bytes:
        """Reads a range in one request."""
        last = None if length < 0 else offset + max(length, 1) - 1

        def ask(done: int) -> Iterator[bytes]:
            try:
                # As stored: Google would unpack objects with Content-Encoding gzip, and then ignore
                # ranges. The client asks for missing parts itself, but not for ever.
                data: bytes = self._blob(uri).download_as_bytes(
                    start=offset or None if last is None else offset,
                    end=last,
                    raw_download=True,
                    retry=DEFAULT_RETRY,
                    timeout=STALL_SECONDS,
                )
                yield data
            except RequestRangeNotSatisfiable:
                return
            except (DataCorruption, RequestException) as error:
                raise BrokenBodyError(str(error), uri) from error

        with _os_errors(uri):
            data = read_resuming(ask, uri)
        if length < 0:
            return data
        return data[:length]

    def describe(self, uri: str) -> FileMetadata | None:
        """Returns size and time of one object."""
        bucket, name = split_uri(uri)
        if not name:
            return None
        with _os_errors(uri):
            blob = self._client.bucket(bucket).get_blob(name, retry=DEFAULT_RETRY)
        if blob is None:
            return None
        return _describe(uri, blob)

    def list_below(self, prefix: str, start: str = "") -> Iterator[FileMetadata]:
        """Yields every object whose URL has this prefix, from `start` on."""
        bucket, below = split_uri(prefix)
        more: dict[str, Any] = {}
        if start:
            more["start_offset"] = below + start
        fields = "items(name,size,updated,generation),nextPageToken"
        with _os_errors(prefix):
            for blob in self._client.list_blobs(
                bucket, prefix=below, fields=fields, retry=DEFAULT_RETRY, **more
            ):
                yield _describe(f"gs://{bucket}/{blob.name}", blob)

    def names(self, prefix: str) -> Iterator[str]:
        """Yields the next part of each URL with this prefix; folders end with a slash."""
        bucket, start = split_uri(prefix)
        fields = "items(name),prefixes,nextPageToken"
        with _os_errors(prefix):
            found = self._client.list_blobs(
                bucket, prefix=start, delimiter="/", fields=fields, retry=DEFAULT_RETRY
            )
            yield from (blob.name[len(start) :] for blob in found)
            yield from (folder[len(start) :] for folder in found.prefixes)

    def write(self, uri: str, content: bytes | Iterable[bytes]) -> None:
        """Writes an object: bytes in one request, pieces as a stream."""
        if not isinstance(content, bytes):
            return super().write(uri, content)
        with _os_errors(uri):
            self._blob(uri).upload_from_string(content, content_type=_TYPE, retry=DEFAULT_RETRY)

    def open_to_write(self, uri: str) -> BinaryIO:
        """Returns a stream that becomes an object when it is closed."""
        return BeamBlobWriter(self._blob(uri), _TYPE, chunk_size=BLOCK_BYTES, retry=DEFAULT_RETRY)

    def copy(self, source: str, target: str) -> None:
        """Copies an object."""
        old, new, token = self._blob(source), self._blob(target), None
        with _os_errors(source):
            while True:  # a large object takes several requests
                token, _, _ = new.rewrite(old, token=token, retry=DEFAULT_RETRY)
                if token is None:
                    break

    def delete(self, uris: list[str]) -> None:
        """Deletes objects."""

        def delete(uri: str) -> None:
            with _os_errors(uri), suppress(NotFound):
                self._blob(uri).delete(retry=DEFAULT_RETRY)

        in_parallel(delete, uris)


def _describe(uri: str, blob: Any) -> VersionedObject:
    version = ""
    if blob.generation:
        version = f"generation:{blob.generation}"
    return VersionedObject(uri, blob.size, blob.updated.timestamp(), version)


@contextmanager
def _os_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except GoogleAuthError as error:
        raise system_error(401, str(error), uri) from error
    except (GoogleAPIError, DataCorruption, RequestException) as error:
        raise system_error(getattr(error, "code", None), str(error), uri) from error
