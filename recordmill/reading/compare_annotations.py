"""Compares the annotations of records of two datasets, by kind."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import DecodeError

from recordmill.annotations.stored_fields import (
    FieldDigests,
    digest_fields,
    find_differing_kinds,
    list_annotation_keys,
    list_second_keys,
)
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.features import ATTRIBUTE
from recordmill.storage.stored_frames import DamagedFrameError, StoredFrames


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

        Second images are given by their fields. Records are given by their rows in sidecars;
        `shard` is the path of the shard.
        """
        before, after = self._readers
        if not before.keys or not after.keys:
            return []
        try:
            return find_differing_kinds(before.digest(one), after.digest(other))
        except (OSError, DecodeError, DamagedFrameError):
            return None

    def close(self) -> None:
        """Closes the files that were opened."""
        for reader in self._readers:
            reader.frames.close()


class _RecordFields:
    """Reads the annotations of records of a dataset."""

    def __init__(self, marker: Marker) -> None:
        features = [(key, entry.field) for key, entry in marker.features.items()]
        self.keys = list_annotation_keys(features) | list_second_keys(features)
        given = marker.attributes or {}
        self.words = {f"{ATTRIBUTE}{name}": words for name, words in given.items()}
        self.frames = StoredFrames(marker.plan.for_readers.compression != "none")

    def digest(self, row: Mapping[str, Any]) -> FieldDigests:
        """Returns the digests of a record's annotations, by field."""
        record = self.frames.read(row["shard"], row["offset"], row["length"])
        return digest_fields(record, self.keys, self.words)
