"""Compares the annotations of records of two datasets, by kind."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from recordmill import storage
from recordmill.annotations.stored_fields import (
    digest_fields,
    find_differing_kinds,
    list_annotation_keys,
)
from recordmill.schemas.dataset.marker import Marker
from recordmill.storage.tfrecord_file import frame_bytes, unframe
from recordmill.storage.unpacked_bytes import UnpackedBytes

_OPEN_FILES = 8
"""Packed shards that are open at once: rows of several splits come in turn."""


class AnnotationJudge:
    """Finds the kinds of annotations in which records of two datasets differ.

    Args:
        before: the marker of one dataset.
        after: the marker of the other.
    """

    def __init__(self, before: Marker, after: Marker) -> None:
        self._readers = _RecordFields(before), _RecordFields(after)

    def find_kinds(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str] | None:
        """Returns the kinds in which two records differ; None if one cannot be read.

        They are given by their rows in sidecars; `shard` is the path of the shard.
        """
        before, after = self._readers
        if not before.keys or not after.keys:
            return []
        try:
            return find_differing_kinds(before.digest(one), after.digest(other))
        except (OSError, DecodeError, LookupError):
            return None

    def close(self) -> None:
        """Closes the files that were opened."""
        for reader in self._readers:
            reader.close()


class _RecordFields:
    """Reads the annotations of records of a dataset."""

    def __init__(self, marker: Marker) -> None:
        features = marker.features.items()
        self.keys = list_annotation_keys((key, entry.field) for key, entry in features)
        self._is_packed = marker.plan.for_readers.compression != "none"
        self._opened: dict[str, UnpackedBytes] = {}

    def digest(self, row: Mapping[str, Any]) -> Mapping[str, str]:
        """Returns the digests of a record's annotations, by field.

        Raises:
            OSError: it cannot be read.
            LookupError: it is damaged.
            google.protobuf.message.DecodeError: it is not an Example.
        """
        path, offset, length = row["shard"], row["offset"], row["length"]
        if self._is_packed:
            frame = self._open(path).read(offset, frame_bytes(length))
        else:
            frame = storage.read_range(path, offset, frame_bytes(length))
        record = unframe(frame, length)
        if record is None:
            raise LookupError(path)
        return digest_fields(record, self.keys)

    def _open(self, path: str) -> UnpackedBytes:
        if path not in self._opened:
            if len(self._opened) == _OPEN_FILES:
                self._opened.pop(next(iter(self._opened))).close()
            self._opened[path] = UnpackedBytes(path)
        return self._opened[path]

    def close(self) -> None:
        """Closes the packed shards."""
        for opened in self._opened.values():
            opened.close()
