"""Parses serialized Examples, also as numpy arrays; checks them against a dataset's metadata."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from recordmill.annotations.annotation import Values
from recordmill.annotations.kinds import ID_FIELDS, KINDS, NAMED_FIELDS, list_stored
from recordmill.annotations.pairs import is_second_image
from recordmill.reading.dataset import Dataset, StoredShard, open_dataset
from recordmill.schemas.dataset.marker import ImageRecipe
from recordmill.schemas.dataset.side_files import SidecarRow
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import (
    Example,
    Feature,
    FeatureKind,
    family_of,
    list_feature_lists,
)
from recordmill.schemas.settings.images import ImageSettings
from recordmill.schemas.str_path import StrPath
from recordmill.storage.tfrecord_file import Damage

_KINDS: dict[str, FeatureKind] = {
    "bytes_list": "bytes",
    "float_list": "float",
    "int64_list": "int64",
}

Profile = tuple[tuple[str, FeatureKind | None, int], ...]


class DamagedExampleError(LoadError):
    """A record is not a `tf.train.Example`; the message says so."""


class ParsedExample:
    """One parsed record; if a key occurs twice, the last one counts, as in protobuf."""

    __slots__ = ("_example", "_features")

    def __init__(self, data: bytes | memoryview) -> None:
        """Parses a record.

        Raises:
            DamagedExampleError: it cannot be parsed.
        """
        try:
            self._example = Example.FromString(data)
        except DecodeError:
            raise DamagedExampleError("the data cannot be parsed as a tf.train.Example") from None
        self._features = self._example.features.feature

    @property
    def feature_lists(self) -> list[str]:
        """The keys of a SequenceExample's `feature_lists`, which is parsed by its context alone."""
        return list_feature_lists(self._example)

    def items(self) -> Iterator[tuple[str, FeatureKind | None, Sequence[Any]]]:
        """Yields the key, kind and values of each feature, sorted by key.

        The kind is None if no list is set.
        """
        for key, feature in sorted(self._features.items(), key=itemgetter(0)):
            yield key, *_read_list(feature)

    @property
    def profile(self) -> Profile:
        """Key, kind and number of values of each feature, sorted by key."""
        return tuple((key, kind, len(values)) for key, kind, values in self.items())

    def values(self, key: str) -> Sequence[Any] | None:
        """Returns the values of one feature; None if the record does not have it."""
        if key in self._features:
            return _read_list(self._features[key])[1]
        return None


def _read_list(feature: Any) -> tuple[FeatureKind | None, Sequence[Any]]:
    name = feature.WhichOneof("kind")
    if name:
        return _KINDS[name], getattr(feature, name).value
    return None, ()


def parse_intact(data: bytes | memoryview | Damage) -> ParsedExample | None:
    """Returns a record's Example; None if the record is damaged or not an Example."""
    try:
        if isinstance(data, Damage):
            return None
        return ParsedExample(data)
    except DamagedExampleError:
        return None


_OPTIONAL = frozenset({"label", "label_text"})  # missing if an image has no label
_LABELS = ("image/class/label", "label", "train/label")
_IMAGES = ("image/encoded", "image", "image_raw", "train/image")


@dataclass(frozen=True, slots=True)
class Expectations:
    """The properties that every record of a dataset should have.

    Attributes:
        features: by key; empty if unknown.
        label_ids: the valid ids of labels; empty if unknown.
        class_ids: ids by class name, from Recordmill's marker; empty for other datasets.
        name_keys: the features with class names, each with the feature that has their ids, or the
            empty string.
        label_keys: the features with labels; the first that a record has counts.
        list_keys: the features with the ids of several classes, whose names are in no feature.
        annotation_keys: by kind, the features of annotations by their fields, from Recordmill's
            marker; empty for other datasets.
        image_keys: the features with encoded images; the first that a record has counts. Empty if
            images are stored as raw pixels.
        images_are_declared: whether the convention declares the image feature; otherwise, its name
            is the usual one.
        max_pixels: images of Recordmill's have no more.
        second_image_keys: the features with encoded second images of pairs.
    """

    features: Mapping[str, Feature]
    label_ids: frozenset[int]
    class_ids: Mapping[str, int]
    name_keys: tuple[tuple[str, str], ...]
    label_keys: tuple[str, ...]
    list_keys: tuple[str, ...]
    annotation_keys: Mapping[str, Mapping[str, str]]
    image_keys: tuple[str, ...]
    images_are_declared: bool
    max_pixels: int
    second_image_keys: tuple[str, ...] = ()

    def judge(self, profile: Profile) -> str | None:
        """Returns the problem with records of this profile, if there is one."""
        if not self.features:
            return None
        there = {key: (kind, count) for key, kind, count in profile}
        for key, feature in self.features.items():
            if key not in there:
                required = feature.field and feature.default is None and not feature.many
                if required and feature.field not in _OPTIONAL:
                    return f"feature {key} is missing"
                continue
            kind, count = there[key]
            if kind != feature.kind:
                return f"feature {key} is {kind or 'empty'} and should be {feature.kind}"
            if not feature.many and count != 1:
                return f"feature {key} holds {count} values and should hold one"
        if unknown := sorted(there.keys() - self.features.keys()):
            return f"feature {unknown[0]} is not one of the dataset's"
        return None

    def judge_labels(self, example: ParsedExample) -> str | None:
        """Returns the problem with a record's first wrong label, if there is one.

        If no ids are known, there is none.
        """
        ids = self.label_ids
        for key in self.label_keys if ids else ():
            wrong = [
                value
                for value in example.values(key) or ()
                if isinstance(value, int) and value not in ids
            ]
            if wrong:  # text is a name, not an id
                known = f"{len(ids):,} ids from {min(ids):,} to {max(ids):,}"
                return f"the label is {wrong[0]!r:.40}, not one of the {known} ({key})"
        return None

    def judge_names(self, example: ParsedExample) -> Iterator[str]:
        """Yields the problem with each wrong feature of class names.

        Without the marker's ids, it yields nothing.
        """
        for text_key, id_key in self.name_keys if self.class_ids else ():
            texts = example.values(text_key)
            if texts is None:
                continue
            if problem := _judge_texts(texts, example.values(id_key), self.class_ids):
                yield problem

    def judge_lists(self, example: ParsedExample, row: SidecarRow) -> str | None:
        """Returns the problem with the ids of several classes, if there is one.

        Their names are in the sidecar's row. Without the marker's ids, there is no problem.
        """
        names = row.classes if isinstance(row.classes, list) else None
        for key in self.list_keys if self.class_ids and names is not None else ():
            ids = example.values(key) or ()
            if len(ids) != len(names or ()):
                return f"the sidecar has {len(names or ())} class names for {len(ids)} ids"
            pairs = zip(names or (), ids, strict=True)
            for problem in (_judge_pair(name, label, self.class_ids) for name, label in pairs):
                if problem:
                    return f"in the sidecar {problem}"
        return None

    def judge_annotations(self, example: ParsedExample, decodes: bool = False) -> str | None:
        """Returns the problem with a record's annotations, if there is one.

        `decodes` says whether to decode annotations that are images.
        """
        for name, keys in self.annotation_keys.items():
            kind, values = KINDS[name], values_of(example, keys)
            problem = kind.check(values)
            if not problem and decodes:
                problem = kind.check_pixels(values)
            if problem:
                return problem
        return None

    def judge_row(self, row: SidecarRow) -> str | None:
        """Returns the problem with the classes in a sidecar's row, if there is one.

        If no ids are known, there is none.
        """
        ids = self.class_ids
        if not ids:
            return None
        pairs: list[tuple[Any, Any]] = []
        if row.class_name is not None:
            pairs.append((row.class_name, row.label))
        # A forged row may have anything.
        if isinstance(row.classes, list):
            pairs += [(name, None) for name in row.classes]
        elif row.classes:
            pairs.append((row.classes, None))
        for name, label in pairs:
            if problem := _judge_pair(name, label, ids):
                return f"in the sidecar {problem}"
        return None


def values_of(example: ParsedExample, keys: Mapping[str, str]) -> Values:
    """Returns the values in an Example by field.

    `keys` are the keys of its features by their fields.
    """
    values = {field: example.values(key) for field, key in keys.items()}
    return {field: each for field, each in values.items() if each is not None}


def annotation_keys_of(features: Iterable[Feature]) -> dict[str, dict[str, str]]:
    """Returns the names of the features that each kind of annotations needs, by field."""
    keys = {feature.field: feature.key for feature in features}
    found = {}
    for kind in list_stored(keys):
        needed = kind.fields.keys() | kind.compared
        found[kind.name] = {field: key for field, key in keys.items() if family_of(field) in needed}
    return found


def expect(dataset: Dataset) -> Expectations:
    """Derives the expectations for a dataset."""
    features = {feature.key: feature for feature in dataset.features}
    labels = [key for key, feature in features.items() if feature.field in ID_FIELDS]
    images = [key for key, feature in features.items() if feature.field == "encoded"]
    keys = {feature.field: key for key, feature in features.items()}
    usual = tuple(key for key in _LABELS if not features or key in features)
    if dataset.marker_or_none:
        settings = dataset.marker.plan.for_readers.images
    else:
        settings = ImageRecipe()
    return Expectations(
        features=features,
        label_ids=frozenset(dataset.labels.values()),
        class_ids=dict(dataset.labels) if dataset.kind == "recordmill" else {},
        name_keys=tuple(
            (keys[names], keys.get(ids, "")) for names, ids in NAMED_FIELDS.items() if names in keys
        ),
        label_keys=tuple(labels) or usual,
        list_keys=tuple(
            keys[ids]
            for names, ids in NAMED_FIELDS.items()
            if ids in keys and ids != "label" and names not in keys
        ),
        annotation_keys=annotation_keys_of(dataset.features) if dataset.marker_or_none else {},
        image_keys=() if settings.store == "raw" else tuple(images) or _IMAGES,
        images_are_declared=bool(images),
        second_image_keys=tuple(
            key for key, feature in features.items() if is_second_image(feature)
        ),
        max_pixels=max(ImageSettings().max_pixels, settings.max_pixels),
    )


UNMISTAKABLE = frozenset({"JPEG", "PNG", "GIF", "WEBP", "TIFF"})
"""Formats that a value's first bytes identify beyond doubt."""


def find_image(example: ParsedExample, expected: Expectations) -> tuple[str, bytes]:
    """Returns the key and the bytes of a record's encoded image; ("", b"") if it has none.

    If a feature is known only by its usual name, its value must begin like an image: raw pixels
    have the same names.
    """
    # Imported here: processes that verify shards do without Pillow.
    from recordmill.imaging.acceptance import (
        sniff,
    )

    for key in expected.image_keys:
        values = example.values(key) or ()
        if len(values) == 1 and isinstance(values[0], bytes):
            image = values[0]
            if expected.images_are_declared or sniff(image) in UNMISTAKABLE:
                return key, image
    return "", b""


def _judge_texts(
    texts: Sequence[Any], ids: Sequence[Any] | None, known: Mapping[str, int]
) -> str | None:
    if ids is not None and len(ids) != len(texts):
        return f"{len(texts)} class names for {len(ids)} ids"
    for text, label in zip(texts, ids or [None] * len(texts), strict=True):
        if not isinstance(text, bytes) or (isinstance(label, int) and label not in known.values()):
            continue  # another kind, or not an id: reported elsewhere
        if problem := _judge_pair(text.decode("utf-8", "replace"), label, known):
            return problem
    return None


def _judge_pair(name: Any, label: Any, ids: Mapping[str, int]) -> str | None:
    """Returns the problem with a class name and its id, which is None if it is not stored."""
    if not isinstance(name, str) or name not in ids:
        return f"class {name!r:.80} is not in recordmill.json"
    if isinstance(label, int) and label != ids[name]:
        return f"class {name!r:.80} has the id {label} here and {ids[name]} in recordmill.json"
    return None


DTYPES = {None: object, "bytes": object, "float": np.float32, "int64": np.int64}


def examples_as_numpy(
    path: StrPath, split: str | Sequence[str] | None = None
) -> Iterator[dict[str, NDArray[Any]]]:
    """Yields each Example of TFRecord files as a dict of numpy arrays by key, in the files' order.

    Both checksums of every record are checked while reading. Files packed with gzip or ZLIB are
    recognized by their bytes. Of SequenceExamples, it yields the context, not the `feature_lists`.

    Example:
        for values in recordmill.examples_as_numpy("dataset", "test"):
            print(values["image/class/label"])

    Args:
        path: a file, a pattern such as `flowers/*.tfrecord`, or a folder of a Recordmill dataset or
            any files.
        split: only this split, or several, as a sequence or joined by `+`. Files without metadata
            are in the split that their name contains.

    Returns:
        An iterator of one dict per Example, with an array of shape (n,) for each key: int64,
        float32, or object for bytes (numpy's own bytes type would drop trailing zeros). A key
        without values gives n = 0.

    Raises:
        LoadError: no file is found, or a file is damaged or has no Examples; the message names the
            file and the record.
    """
    dataset = open_dataset(path)
    if split is None:
        shards = dataset.shards
    else:
        shards = dataset.shards_of(split)
    return _examples(shards)


def _examples(shards: Iterable[StoredShard]) -> Iterator[dict[str, NDArray[Any]]]:
    for shard in shards:
        for number, data in enumerate(shard.intact_records()):
            try:
                yield example_as_numpy(data)
            except DamagedExampleError:
                raise LoadError(
                    f"{shard.path}: record {number} is not a tf.train.Example"
                ) from None


def example_as_numpy(record: bytes | memoryview) -> dict[str, NDArray[Any]]:
    """Returns a serialized Example as a dict of arrays by key; see `examples_as_numpy`."""
    return {key: as_array(kind, values) for key, kind, values in ParsedExample(record).items()}


def as_array(kind: str | None, values: Sequence[Any]) -> NDArray[Any]:
    """Returns the values of one feature as an array of shape (n,)."""
    array = np.empty(len(values), DTYPES[kind])
    array[:] = values
    return array
