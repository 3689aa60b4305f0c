"""Which features hold annotations, and whether those of two Examples are the same."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from recordmill.annotations.keypoints import KEY_POINTS
from recordmill.annotations.kinds import ANNOTATION_FIELDS, KINDS
from recordmill.annotations.masks import MASKS
from recordmill.annotations.pairs import is_second_field
from recordmill.schemas.attribute_words import WordIds
from recordmill.schemas.dataset.json_values import as_kept_json
from recordmill.schemas.dataset.marker import AnnotationEntry
from recordmill.schemas.features import Example, Feature, family_of


def mark_unfilled(
    features: Iterable[Feature], annotations: Mapping[str, AnnotationEntry]
) -> tuple[Feature, ...]:
    """Says in the meaning of features of masks and key points if a dataset has none of these.

    Sources that may give key points declare their features for every dataset.

    Args:
        features: a dataset's.
        annotations: the ledgers of its annotations, by kind.
    """
    fields = set[str]()
    for kind in (MASKS, KEY_POINTS):
        if kind.name not in annotations or not annotations[kind.name].written:
            fields |= kind.fields.keys()
    return tuple(_mark(each) if each.field in fields else each for each in features)


def _mark(feature: Feature) -> Feature:
    return replace(feature, meaning=f"{feature.meaning} (none in this dataset)")


FieldDigests = Mapping[str, str]
"""The digest of the values of each field of annotations."""


def list_second_keys(features: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the features that hold second images, as `list_annotation_keys` does."""
    return {field: key for key, field in features if is_second_field(field)}


def list_annotation_keys(features: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Returns the features that hold annotations: their keys by field.

    Args:
        features: the key and the field of each feature.
    """
    return {field: key for key, field in sorted(features) if family_of(field) in ANNOTATION_FIELDS}


def digest_fields(
    record: bytes, keys: Mapping[str, str], words: Mapping[str, WordIds] | None = None
) -> FieldDigests:
    """Returns the digests of the annotations in an Example; equal values give equal digests.

    Args:
        record: the serialized Example.
        keys: from `list_annotation_keys`.
        words: the words that the numbers in some fields stand for, which are compared in place of
            the numbers.

    Raises:
        google.protobuf.message.DecodeError: the record is not an Example.
    """
    features = Example.FromString(record).features.feature
    found = dict[str, str]()
    for field, key in keys.items():
        values = b""
        if words and field in words:
            values = _spell(features[key].int64_list.value, words[field])
        elif key in features:
            values = features[key].SerializeToString(deterministic=True)
        found[field] = hashlib.sha256(values).hexdigest()
    return found


def _spell(numbers: Iterable[int], words: WordIds) -> bytes:
    """Returns the words that numbers stand for; a number without a word is one itself."""
    texts = {number: word for word, number in words.items()}
    return as_kept_json([texts.get(number, str(number)) for number in numbers])


def digest_kinds(record: bytes, keys: Mapping[str, str]) -> dict[str, str]:
    """Returns the digests of the annotations in an Example by kind; as `digest_fields`."""
    digests = digest_fields(record, keys)
    found = {}
    for name, kind in KINDS.items():
        if own := [digests[field] for field in kind.fields if field in digests]:
            found[name] = hashlib.sha256("".join(own).encode()).hexdigest()[:16]
    return found


def find_differing_kinds(one: FieldDigests, other: FieldDigests) -> list[str]:
    """Returns the kinds of annotations in which two Examples differ, in the order of `KINDS`.

    Second images are given by their fields. Fields that only one of them has are not compared.
    """
    differing = {field for field in one.keys() & other.keys() if one[field] != other[field]}
    families = {*map(family_of, differing)}
    kinds = [name for name, kind in KINDS.items() if not families.isdisjoint(kind.fields)]
    return [*kinds, *sorted(filter(is_second_field, differing))]
