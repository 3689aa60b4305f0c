"""Amazon S3, and other stores with its interface."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from apache_beam.io.filesystem import FileMetadata
from apache_beam.options.pipeline_options import PipelineOptions, S3Options
from boto3.s3.transfer import TransferConfig
from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
)

from recordmill.storage.stores.store import (
    BLOCK_BYTES,
    CONNECTIONS,
    PIECE_BYTES,
    STALL_SECONDS,
    TRIES,
    BrokenBodyError,
    Store,
    read_resuming,
    split_uri,
    system_error,
)
from recordmill.storage.stores.versioned_object import VersionedObject

_BROKEN = (HTTPClientError, IncompleteReadError, FlexibleChecksumError, OSError)
"""What the body of an answer raises if it is cut, stalls or is damaged."""

_MOST_KEYS = 1000  # the most that one request deletes
_IN_PARTS = TransferConfig(
    multipart_threshold=BLOCK_BYTES, multipart_chunksize=BLOCK_BYTES, use_threads=False
)


class AmazonStore(Store):
    """Objects at `s3://bucket/key`; see `Store`.

    Endpoint, region, credentials and the like come from Beam's `--s3_...` options, or from Amazon's
    environment variables and files.
    """

    starts_anywhere = True

    def __init__(self, options: PipelineOptions) -> None:
        self._options = options.view_as(S3Options)
        # By default it keeps ten connections and discards the others.
        self._client = self._make_client(Config(max_pool_connections=CONNECTIONS))
        self._reader = self._make_client(
            Config(
                max_pool_connections=CONNECTIONS,
                connect_timeout=STALL_SECONDS,
                read_timeout=STALL_SECONDS,
                retries={"total_max_attempts": TRIES - 1},
            )
        )

    def _make_client(self, config: Config) -> Any:
        s3 = self._options
        return Session().client(
            "s3",
            region_name=s3.s3_region_name,
            api_version=s3.s3_api_version,
            use_ssl=not s3.s3_disable_ssl,
            verify=s3.s3_verify,
            endpoint_url=s3.s3_endpoint_url,
            aws_access_key_id=s3.s3_access_key_id,
            aws_secret_access_key=s3.s3_secret_access_key,
            aws_session_token=s3.s3_session_token,
            config=config,
        )

    def read(self, uri: str, offset: int, length: int) -> bytes:
        """Reads a range in one request, or in several if its body breaks off."""
        last = None if length < 0 else offset + max(length, 1) - 1
        version: dict[str, str] = {}

        def ask(done: int) -> Iterator[bytes]:
            if last is not None and offset + done > last:
                return
            wanted = f"bytes={offset + done}-{'' if last is None else last}"
            try:
                answer = self._reader.get_object(**_place(uri), Range=wanted, **version)
            except ClientError as error:
                if _status(error) == 416:  # it begins after the end
                    return
                raise
            if answer.get("ETag"):
                version["IfMatch"] = answer["ETag"]  # the rest is of the same object
            body = answer["Body"]
            try:
                while piece := body.read(PIECE_BYTES):
                    yield piece
            except _BROKEN as error:
                is_damaged = isinstance(error, FlexibleChecksumError)
                raise BrokenBodyError(str(error), uri, is_damaged) from error
            finally:
                body.close()

        with _os_errors(uri):
            data = read_resuming(ask, uri)
        if length < 0:
            return data
        return data[:length]

    def describe(self, uri: str) -> FileMetadata | None:
        """Returns size and time of one object."""
        if not split_uri(uri)[1]:
            return None
        try:
            with _os_errors(uri):
                found = self._client.head_object(**_place(uri))
        except FileNotFoundError:
            return None
        return _describe(uri, found["ContentLength"], found)

    def list_below(self, prefix: str, start: str = "") -> Iterator[FileMetadata]:
        """Yields every object whose URL has this prefix, from `start` on."""
        bucket, below = split_uri(prefix)
        # S3 also leaves out the name itself. Without the last letter, it lists a few more, which
        # the caller skips.
        more = {"StartAfter": below + start[:-1]} if start else {}
        with _os_errors(prefix):
            for page in self._client.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=below, **more
            ):
                for found in page.get("Contents", ()):
                    yield _describe(f"s3://{bucket}/{found['Key']}", found["Size"], found)

    def names(self, prefix: str) -> Iterator[str]:
        """Yields the next part of each URL with this prefix; folders end with a slash."""
        bucket, start = split_uri(prefix)
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=start, Delimiter="/"
        )
        with _os_errors(prefix):
            for page in pages:
                yield from (found["Key"][len(start) :] for found in page.get("Contents", ()))
                yield from (
                    found["Prefix"][len(start) :] for found in page.get("CommonPrefixes", ())
                )

    def open_to_write(self, uri: str) -> BinaryIO:
        """Returns a stream that becomes an object when it is closed."""
        return cast(BinaryIO, _Upload(self._client, uri))

    def copy(self, source: str, target: str) -> None:
        """Copies an object, in parts if it is large."""
        with _os_errors(source):
            self._client.copy(_place(source), *split_uri(target))

    def delete(self, uris: list[str]) -> None:
        """Deletes objects."""
        for bucket, group in groupby(sorted(uris), key=lambda uri: split_uri(uri)[0]):
            keys = [{"Key": split_uri(uri)[1]} for uri in group]
            for start in range(0, len(keys), _MOST_KEYS):
                batch = {"Objects": keys[start : start + _MOST_KEYS], "Quiet": True}
                with _os_errors(f"s3://{bucket}"):
                    answer = self._client.delete_objects(Bucket=bucket, Delete=batch)
                for refused in answer.get("Errors", ()):
                    status = 403 if refused["Code"] == "AccessDenied" else None
                    raise system_error(
                        status, refused["Message"], f"s3://{bucket}/{refused['Key']}"
                    )


class _Upload(io.RawIOBase):
    """A temporary file that is uploaded when it is closed.

    Up to a block, it is in memory; a larger one is uploaded in blocks. Beam's own stream cannot
    write an empty object.
    """

    mode = "wb"  # needed by Beam's compression

    def __init__(self, client: Any, uri: str) -> None:
        super().__init__()
        self._client = client
        self._uri = uri
        self._file = SpooledTemporaryFile(BLOCK_BYTES)  # noqa: SIM115  # `close` closes it

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell()

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        with self._file, _os_errors(self._uri):
            self._file.seek(0)
            self._client.upload_fileobj(self._file, *split_uri(self._uri), Config=_IN_PARTS)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:  # a partial object must not be uploaded
            self._file.close()
            super().close()
        self.close()


def _describe(uri: str, size: int, found: Any) -> VersionedObject:
    version = f"etag:{found['ETag']}" if found.get("ETag") else ""
    return VersionedObject(uri, size, found["LastModified"].timestamp(), version)


def _place(uri: str) -> dict[str, str]:
    bucket, key = split_uri(uri)
    return {"Bucket": bucket, "Key": key}


def _status(error: ClientError) -> int | None:
    return error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")


@contextmanager
def _os_errors(uri: str) -> Iterator[None]:
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise system_error(401, str(error), uri) from error
    except ClientError as error:
        raise system_error(_status(error), str(error), uri) from error
    except BotoCoreError as error:
        raise system_error(None, str(error), uri) from error
