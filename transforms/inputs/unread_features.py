"""What Examples have and no source reads, as notes call it."""

from collections.abc import Collection, Container, Iterator, Mapping
from typing import Any

from recordmill.annotations.kinds import KINDS
from recordmill.imaging.acceptance import sniff
from recordmill.schemas.conventions import Convention
from recordmill.schemas.features import Example, family_of, list_feature_lists
from recordmill.schemas.formatting import plural_of

FEATURE_LISTS = "feature_lists of SequenceExamples:"
SECOND_IMAGES = "second images:"
"""What the name of a kind that is not stored begins with, before the list's or feature's key."""

_ANNOTATIONS = "Examples with"
"""The same before a kind of annotations."""

_AMBIGUOUS = frozenset({"BMP", "PPM"})
"""Formats that short texts may look like."""


def list_unread(
    example: Example, convention: Convention, read: Container[str], copied: Collection[str]
) -> Iterator[str]:
    """Yields what an Example has, and what is neither read nor copied, in words for a note.

    Args:
        example: the Example.
        convention: its convention.
        read: the names of the kinds of annotations that are read.
        copied: the keys of features that are copied.
    """
    entries = {key: each for key, each in example.features.feature.items() if key not in copied}
    for key in entries.keys() - convention.features.keys():
        yield _name_feature(key, entries[key])
    for key in list_feature_lists(example):
        yield f"{FEATURE_LISTS} {key}"
    present = _find_fields(entries, convention)
    for name, kind in KINDS.items():
        if name not in read and present & kind.fields.keys():
            yield f"{_ANNOTATIONS} {plural_of(kind.unit)}"


def can_be_copied(unread: str) -> bool:
    """Returns whether `source.keep` can copy a kind that `list_unread` has yielded.

    It copies no `feature_lists`, and no annotations, since conventions have their keys.
    """
    return not unread.startswith((FEATURE_LISTS, _ANNOTATIONS))


def _find_fields(entries: Mapping[str, Any], convention: Convention) -> set[str]:
    """Returns the fields of the features that have values."""
    return {
        family_of(feature.field)
        for key, feature in convention.features.items()
        if key in entries and (kind := entries[key].WhichOneof("kind"))
        if getattr(entries[key], kind).value
    }


def _name_feature(key: str, entry: Any) -> str:
    """Returns what a feature is called: by its key, and whether it holds images."""
    formats = set(map(sniff, entry.bytes_list.value)) - _AMBIGUOUS
    return f"{SECOND_IMAGES} {key}" if formats and None not in formats else key
