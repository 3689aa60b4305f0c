"""Existing TFRecords of a known or declared convention, to rename, re-split, relabel or merge."""

import base64
import binascii
import posixpath
import shlex
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, cast

import numpy as np
from google.protobuf.message import DecodeError

from recordmill.annotations.annotation import pack_annotations
from recordmill.annotations.boxes import Boxes, boxes_of
from recordmill.schemas.conventions import Convention, convention_names, load_convention
from recordmill.schemas.dataset.file_names import (
    COMPANIONS,
    RESERVED,
    SHARD_PATTERNS,
    SIDECARS,
    TRANSFORM_FN,
)
from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import (
    IMAGE_FIELDS,
    STORED_IMAGE,
    Example,
    Feature,
    FeatureKind,
)
from recordmill.schemas.image_ref import (
    ClassNames,
    Content,
    Gzip,
    ImageRef,
    Listed,
    Pixels,
    pack_fields,
)
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.setting_fields import AtLeastOne, ClassId
from recordmill.storage.packed_files import MAX_RATIO, read_bounded, read_image
from recordmill.storage.tfrecord_file import Damage, RecordFile, StoredFile, data_offset
from recordmill.transforms.inputs.class_names import NO_CLASS_NUMBER, ClassNamesError, LabelFiles
from recordmill.transforms.inputs.example_labels import read_labels
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized, given_splits
from recordmill.transforms.inputs.named_files import DataFile
from recordmill.transforms.inputs.patterns import compile_globs, compile_pattern, find_split_word
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.unread_features import can_be_copied, list_unread

KeptType = Literal["bytes", "float", "int64", "bytes[]", "float[]", "int64[]"]
"""The type of a feature to copy: one value, or a list."""


_SIDES = ("xmin", "ymin", "xmax", "ymax")

bad_example = partial(Rejected, "read", "bad_example")
"""The record is not an Example of the convention."""


def parse_entries(record: bytes) -> Mapping[str, Any]:
    """Parses a serialized Example into its protobuf features, by key.

    Raises:
        Rejected: it is not an Example, or an empty one.
    """
    entries: Mapping[str, Any] = parse_record(record).features.feature
    return entries


def parse_record(record: bytes) -> Any:
    """Parses a serialized Example, or the context of a SequenceExample, which is alike.

    Raises:
        Rejected: it is not an Example, or an empty one.
    """
    example: Any = None
    with suppress(DecodeError):
        example = Example.FromString(record)
    if example is None or not example.features.feature:
        raise bad_example("the record is not a tf.train.Example, or it has no features")
    return example


def value_of(entries: Mapping[str, Any], feature: Feature) -> Any:
    """Returns the value of one feature, or a list of all if it is `many`; None if it has none.

    Raises:
        Rejected: it is of another kind, or a scalar has several values.
    """
    if feature.key not in entries:
        return None
    kind = entries[feature.key].WhichOneof("kind")
    if kind not in (None, f"{feature.kind}_list"):
        raise bad_example(f"feature {feature.key} is of type {kind}, not {feature.kind}_list")
    values = list(getattr(entries[feature.key], f"{feature.kind}_list").value)
    if feature.many:
        return values
    if len(values) > 1:
        raise bad_example(f"feature {feature.key} holds {len(values)} values where one is expected")
    return values[0] if values else None


def read_fields(entries: Mapping[str, Any], convention: Convention) -> dict[str, Any]:
    """Returns the values of an Example by the convention's fields.

    A field has one value, or a list if the feature is `many`. Fields that the Example lacks are
    left out, and so are scalars without a value.

    Raises:
        Rejected: a feature is of another kind, a scalar has several values, or there is no image;
            for a convention without images, a feature other than the label is missing.
    """
    found = {
        each.field: value_of(entries, each) for each in convention.example_features if each.field
    }
    fields = {name: value for name, value in found.items() if value is not None}
    images = [
        feature.key for feature in convention.example_features if feature.field in STORED_IMAGE
    ]
    if images and not fields.keys() & set(STORED_IMAGE):
        raise bad_example(f"it has no image: there is no feature {' or '.join(images)}")
    if lacking := [
        feature.key for feature in own_features(convention) if feature.key not in entries
    ]:
        raise bad_example(f"there is no feature {lacking[0]}")
    return fields


def holds_images(convention: Convention) -> bool:
    """Returns whether the convention's Examples have images."""
    return any(feature.field in STORED_IMAGE for feature in convention.example_features)


def own_features(convention: Convention) -> tuple[Feature, ...]:
    """Returns the features, such as a vector, that distinguish a convention without images.

    The result is empty if the convention has images.
    """
    if holds_images(convention):
        return ()
    return tuple(
        feature
        for feature in convention.example_features
        if feature.field not in {"", *IMAGE_FIELDS}
    )


def require_convention(entries: Mapping[str, Any], found: Convention | None) -> Convention:
    """Returns the convention that was found for an Example.

    Raises:
        Rejected: none was.
    """
    if found is None:
        keys = ", ".join(sorted(entries))
        raise bad_example(
            f"its keys do not fit any known convention of images ({keys:.200}): set "
            "source.convention"
        )
    return found


@lru_cache(maxsize=1024)
def find_convention(kinds: frozenset[tuple[str, str | None]]) -> Convention | None:
    """Finds the convention that fits an Example's keys and kinds, and names most of them.

    Never guessed: conventions without images, or with raw pixels in a feature that could be an
    encoded image.
    """
    found = dict(kinds)

    def fits(convention: Convention) -> bool:
        features = convention.example_features
        images = [feature for feature in features if feature.field in STORED_IMAGE]
        is_raw = convention.stores == "raw" and any(
            feature.field == "encoded" for feature in images
        )
        scalars = [feature for feature in features if not feature.many and feature.constant is None]
        needed = {feature.key for feature in scalars if feature.default is None}
        contradicted = any(
            found.get(each.key) not in (None, f"{each.kind}_list") for each in features
        )
        return bool(images) and needed <= found.keys() and not is_raw and not contradicted

    def rank(convention: Convention) -> tuple[int, int]:
        keys = {feature.key for feature in convention.example_features}
        return len(keys & found.keys()), -len(keys - found.keys())

    conventions = map(load_convention, sorted(convention_names()))  # of the best, the first is used
    return max(filter(fits, conventions), default=None, key=rank)


def read_kept(entries: Mapping[str, Any], kept: Iterable[Feature]) -> dict[str, Any]:
    """Returns the values of the features to copy, by key; absent lists are empty.

    Raises:
        Rejected: a feature is of another kind, or has no value or several where one is expected.
    """
    values = {}
    for feature in kept:
        value = value_of(entries, feature)
        if value is None and not feature.many:
            raise bad_example(f"feature {feature.key} has no value, where source.keep expects one")
        values[feature.key] = value or [] if feature.many else value
    return values


def text_in(entries: Mapping[str, Any], key: str) -> str:
    """Returns the text in NFC, or the integer in decimal, of a required feature.

    Raises:
        Rejected: it is missing, empty or of another kind.
    """
    is_number = key in entries and entries[key].WhichOneof("kind") == "int64_list"
    value = value_of(entries, Feature(key, "int64" if is_number else "bytes", key, ""))
    text = str(value) if isinstance(value, int) else decode_text(value, f"feature {key}")
    if not text:
        raise bad_example(f"feature {key} is missing or empty")
    return unicodedata.normalize("NFC", text)


def decode_text(value: bytes | None, what: str) -> str:
    """Decodes a text; empty if there is none.

    Raises:
        Rejected: it is not UTF-8.
    """
    try:
        return (value or b"").decode()
    except UnicodeDecodeError:
        raise bad_example(f"{what} is not UTF-8") from None


def boxes_from_fields(
    fields: Mapping[str, Any], name_of: Callable[[str, int | None], str]
) -> Boxes | None:
    """Returns an Example's boxes, or None if it has no features for them.

    Args:
        fields: the Example's values by field, with sides as fractions of the image.
        name_of: returns the class for a name and a number.

    Raises:
        Rejected: the lists do not fit together.
    """
    if "bbox" in fields:
        sides = [fields["bbox"][side::4] for side in (1, 0, 3, 2)]
    elif fields.keys().isdisjoint(_SIDES):
        return None
    else:
        sides = [fields.get(side, ()) for side in _SIDES]
    count = len(sides[0])
    texts = [decode_text(text, "the class of a box") for text in fields.get("box_label_texts", ())]
    numbers = list(fields.get("box_labels", ()))
    if count and not texts and not numbers:
        raise bad_example("it has boxes without labels")
    texts, numbers = texts or [""] * count, numbers or [None] * count
    if {*map(len, sides), len(texts), len(numbers)} != {count}:
        raise bad_example(
            "its lists of boxes' sides, of their labels or of their classes' names differ in length"
        )
    boxes = list(map(list, zip(*sides, strict=True)))
    labels = list(map(name_of, texts, numbers))
    values = {
        key: fields[key]
        for key in ("is_crowd", "area")
        if key in fields and len(fields[key]) == count
    }
    return boxes_of(boxes, labels, values=values, fractions=True)


def read_image_of(
    fields: Mapping[str, Any], is_raw: bool, shape: Sequence[int]
) -> tuple[bytes, bytes | Pixels]:
    """Returns the stored bytes of the image, and the image.

    Args:
        fields: the Example's values by field.
        is_raw: whether the image is stored as pixels, not encoded: height x width x channels bytes,
            red first.
        shape: height, width and channels of raw pixels, if the Example does not give them.

    Raises:
        Rejected: raw pixels have no shape, or the wrong number of bytes.
    """
    if "pixels_base64" in fields:
        try:
            data = base64.b64decode(fields["pixels_base64"], altchars=b"-_", validate=True)
        except binascii.Error as error:
            raise bad_example(f"its image is not url-safe base64 ({error})") from None
    else:
        data = fields["encoded"]
        if not is_raw:
            return data, data
    given = [fields.get(side) for side in ("height", "width", "channels")]
    height, width, channels = given if None not in given else (tuple(shape) or (None, None, None))
    if height is None or width is None or channels is None:
        raise bad_example(
            "its image is raw pixels of unknown height, width and channels: set source.shape"
        )
    if min(height, width) < 1 or channels not in (1, 3) or height * width * channels != len(data):
        declared = (
            f"{height} x {width} x {channels} are declared, and 1 or 3 channels can be stored"
        )
        raise bad_example(f"its image has {len(data)} bytes, where {declared}")
    return data, np.frombuffer(data, np.uint8).reshape(height, width, channels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tfrecords(Source):
    """The source `tfrecords`.

    Attributes:
        convention: the convention of the input: a name, a mapping as under `convention`, or `auto`,
            by each record's features. A convention without images, such as `feature_vector`, must
            be named.
        class_names: names of numbered classes; empty: the Examples' own names, those in
            `class_names_file`, or the numbers.
        class_names_file: a file of class names (one per line, or `id:name`) next to the Examples,
            or a full path; `.pbtxt`: the Object Detection API's label map. `auto`: `labels.txt`,
            `label_map.pbtxt` or TensorFlow Datasets' `FEATURE.labels.txt`, next to the Examples or
            above; empty: none.
        first_label: the number of the first class; absent: the convention's (0, or 1 if 0 is
            background).
        keep_ids: `true` keeps the input's class numbers (as ids with `labels.ids: integers`,
            otherwise as the order), which must agree in all files; `false` numbers classes by name,
            for merging. Absent: `true` if a file names the classes.
        key_feature: the feature that holds the image key; empty: the file and the record's
            number, `a.tfrecord/000123`.
        split: a regular expression (RE2) searched for in the file's name, then in its path; its
            group `split` is the word for `splits.from_source`.
        split_feature: the feature that holds that word, in place of the file's name.
        keep: additional features to copy: `{image/caption: bytes, scores: "float[]"}`.
        shape: height, width and channels of raw pixels, if Examples do not give them.
        max_ratio: a gzip file may unpack to this many times its size plus 1 MiB.
    """

    convention: str | Convention = "auto"
    class_names: tuple[str, ...] = ()
    class_names_file: str = "auto"
    first_label: ClassId | None = None
    keep_ids: bool | None = None
    key_feature: str = ""
    split: str = r"(?P<split>train|validation|valid|val|test|eval|dev)"
    split_feature: str = ""
    keep: Mapping[str, KeptType] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    max_ratio: AtLeastOne = MAX_RATIO

    gives_words: ClassVar[bool] = True
    reads_sets: ClassVar[bool] = True
    split_settings: ClassVar[tuple[str, ...]] = ("split", "split_feature")
    files: ClassVar[tuple[str, ...]] = SHARD_PATTERNS

    def __post_init__(self) -> None:
        """Raises SettingError if a setting is invalid."""
        compile_pattern(self.split, "source.split", "split")
        try:
            declared = self._declared
        except ValueError as error:
            raise SettingError("source.convention", f": {error}") from None
        if self.class_names and self.first_label is None and declared is None:
            raise SettingError(
                "source.class_names",
                "needs source.first_label, the number of the first, or convention",
            )
        if self.class_names and self.class_names_file not in ("", "auto"):
            raise SettingError(
                "source.class_names",
                "and source.class_names_file contradict each other: remove one of them",
            )
        if self.shape and (
            len(self.shape) != 3 or min(self.shape) < 1 or self.shape[2] not in (1, 3)
        ):
            raise SettingError(
                "source.shape",
                f"is {list(self.shape)}: give height, width, and 1 or 3 channels",
            )
        self.classes()

    @property
    def contents(self) -> Literal["images", "rows"]:  # type: ignore[override]  # depends on the settings
        """`rows` if the convention has no images."""
        return "rows" if self._declared and not holds_images(self._declared) else "images"

    @property
    def may_give_pixels(self) -> bool:
        """Whether Examples may hold raw pixels."""
        declared = self._declared
        return (
            declared is None or isinstance(self.convention, Convention) or declared.stores == "raw"
        )

    def idle_settings(self) -> Mapping[str, str]:
        """Returns the pattern for file names, if a feature gives the split."""
        return {"split": "source.split_feature gives the split"} if self.split_feature else {}

    @property
    def _declared(self) -> Convention | None:
        """The convention of all Examples; None if it is found for each of them."""
        if isinstance(self.convention, Convention):
            return self.convention
        return None if self.convention == "auto" else load_convention(self.convention)

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes files named like TFRecords, or that begin like them.

        An input with images is not recognized.
        """
        if sketch.has_images:
            return
        patterns, include = compile_globs(cls.files), dict[str, Any]()
        paths = sketch.all_matching(patterns.match_file)
        if not paths and (forms := sorted(sketch.record_files.values())):
            include = {"include": forms}
            paths = sketch.all_matching(compile_globs(tuple(forms)).match_file)
        if not paths:
            return
        settings = {
            "source": {"kind": "tfrecords"},
            **include,
            **given_splits("from_source", {cls().word_in(path) or "" for path in paths}),
            "images": {"reencode": "never", "check": "header"},
        }
        example = min(posixpath.basename(path) for path in paths)
        yield Recognized(settings, f"TFRecord files such as {example}")

    def word_in(self, path: str) -> str | None:
        """Returns the word for a file's split: in its name, or else in its path."""
        return find_split_word(self.split, posixpath.basename(path), path)

    def classes(self) -> Mapping[str, int]:
        """Returns the classes in `class_names`."""
        first = self._first_label(self._declared)
        return {name: first + number for name, number in Source.classes(self).items()}

    def _first_label(self, convention: Convention | None) -> int:
        if self.first_label is not None:
            return self.first_label
        return 0 if convention is None else convention.label_offset

    @property
    def kept(self) -> tuple[Feature, ...]:
        """The features in `keep`."""
        kinds = {
            key: cast(FeatureKind, declared.removesuffix("[]"))
            for key, declared in self.keep.items()
        }
        lists = {key for key, declared in self.keep.items() if declared.endswith("[]")}
        return tuple(
            Feature(key, kind, key, "as in the input", many=key in lists)
            for key, kind in kinds.items()
        )

    def features(self) -> tuple[Feature, ...]:
        """Returns the features in `keep`, and those of a convention without images."""
        own = own_features(self._declared) if self._declared else ()
        return (*self.kept, *(replace(feature, meaning="as in the input") for feature in own))

    @property
    def remedies(self) -> Mapping[str, str]:
        """For features that no convention has."""
        return {"not_stored": "source.keep copies features of the input"}

    def remedy_for(self, not_stored: Collection[str]) -> str | None:
        """Returns the remedy, if it can copy anything of what is not stored."""
        return self.remedies["not_stored"] if any(map(can_be_copied, not_stored)) else None

    def annotations(self) -> Mapping[str, str]:
        """Returns boxes, if there are images."""
        return {"boxes": ""} if self.contents == "images" else {}

    @property
    def siblings(self) -> Mapping[str, str]:
        """What Recordmill, TFDS, TFX and TensorFlow's models write next to TFRecord files."""
        names = (*RESERVED, *COMPANIONS, "*.labels.txt", "labels*.txt", "*label_map*.pbtxt")
        names += ("charset_size=*.txt",)
        folders = (f"{SIDECARS}/**", f"{TRANSFORM_FN}/**")
        return dict.fromkeys((*names, *folders, "*.idx", "*.index", "*.crc"), "")

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields a reference for each record, to the byte range of its data.

        Yields a rejected one for each damaged place.
        """
        damages: list[str] = []
        damaged = file
        labels = LabelFiles(DataFile(path, file), self.class_names_file, self.class_names)
        copied = frozenset({self.key_feature, self.split_feature, *self.keep})
        examples = _ExamplesOfFile(self, self.word_in(path) or "", labels, copied=copied)
        with StoredFile(file.uri) as stored:
            records, index = RecordFile(stored), -1
            for index, (offset, record) in enumerate(read_bounded(records, stored, self.max_ratio)):
                ref = file.replace(key=f"{file.key}/{index:06}", spelling="")
                if isinstance(record, Damage):
                    where = f"record {index} at byte {offset}" if offset >= 0 else f"record {index}"
                    if record.kind == "data":  # one record is lost
                        yield ref.notice("rejected", "bad_record", f"{where}: {record.detail}")
                        continue
                    damaged = damaged if damages else ref
                    damages.append(f"{where}: {record.detail}")
                    continue
                packing = str(Gzip(has_checksums=True)) if records.compression != "none" else ""
                ref = ref.replace(offset=data_offset(offset), length=len(record), packing=packing)
                try:
                    yield examples.make_reference(ref, bytes(record))
                except ClassNamesError as error:
                    yield file.notice("fatal", "bad_labels", str(error))
                    return
                except Rejected as error:
                    yield ref.notice(
                        "rejected",
                        "bad_example",
                        f"record {index} at byte {offset}: {error.detail}",
                    )
        if index < 0 and records.compression != "none":  # nothing has been cut off
            yield file.notice("ignored", "no_records")
        elif index < 0:
            yield file.notice("rejected", "bad_tfrecord", "the file is empty: 0 bytes")
        elif damages:
            yield damaged.notice("rejected", "bad_tfrecord", _show_damages(damages))
        read = {self.key_feature, self.split_feature, *self.keep}
        if (question := examples.ask_for_label()) and not read.intersection(examples.likely):
            yield file.notice("fatal", "bad_labels", question)
        yield from (
            file.notice("not_stored", kind, count=count) for kind, count in examples.others.items()
        )
        yield from (
            file.notice("noted", note, count=count) for note, count in examples.noted.items()
        )
        numbers = examples.numbers
        known = {name: number for name, number in numbers.items() if number is not None}
        yield from (
            ClassNames.of(file, names) for names in (known, numbers.keys() - known.keys()) if names
        )

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Returns the image of one Example, and the features to copy; see `Source.read`."""
        record = read_image(ref, max_bytes, self.max_ratio)
        entries = parse_entries(record)
        labels = read_labels(entries, self._declared, find_convention, self.keep)
        convention = require_convention(entries, labels.convention)
        fields = read_fields(labels.entries, convention)
        kept = read_kept(entries, self.kept)
        if self.contents == "rows":
            # The reference has the class. A digest that the input lacks stays missing: only files
            # have one.
            own = {
                name: value for name, value in fields.items() if name not in ("label", "label_text")
            }
            return Content(
                record, None, fields={"sha256": None, "file_sha256": None, **own, **kept}
            )
        is_raw = convention.stores == "raw" or (
            isinstance(self.convention, Convention) and bool(self.shape)
        )
        data, image = read_image_of(fields, is_raw, self.shape)
        return Content(data, image, fields=kept)


_MOST_DAMAGES = 3


def _show_damages(damages: Sequence[str]) -> str:
    """Returns the damaged places of a file, as a sentence."""
    shown = "; ".join(damages[:_MOST_DAMAGES])
    if more := len(damages[_MOST_DAMAGES:]):
        shown += f", and {more:,} more"
    return shown


_LABEL_KEYS = frozenset({"class", "class_id", "category", "category_id", "target", "label_id", "y"})
"""Features that other people's Examples have for labels, and no convention knows."""

_KINDS_OF_LABELS = {"int64_list": "int64", "bytes_list": "bytes"}


@dataclass(slots=True)
class _ExamplesOfFile:
    """Makes references from the Examples of one file, and collects what is announced after them.

    Attributes:
        source: the settings.
        word: the split word in its name or path.
        labels: the names of its numbered classes.
        numbers: the classes to announce, with their numbers; None for a class without one.
        copied: the keys that the settings name in addition to the convention's.
        others: how many Examples have each kind of value that is not stored.
        noted: how many Examples have each peculiarity, as for `Notice.status`.
        likely: features of no convention that may be labels, with their types.
        image_key: the feature of the image.
        has_labels: whether any Example has a label or boxes.
    """

    source: Tfrecords
    word: str
    labels: LabelFiles
    numbers: dict[str, int | None] = field(default_factory=dict)
    copied: frozenset[str] = frozenset()
    others: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    likely: dict[str, str] = field(default_factory=dict)
    image_key: str = ""
    has_labels: bool = False

    def ask_for_label(self) -> str | None:
        """Returns what to do about Examples without a label, and with a feature that may be one.

        Returns None if there are none.
        """
        if self.has_labels or self.source.convention != "auto" or not self.likely:
            return None
        key, kind = next(iter(self.likely.items()))
        meaning = f"{{field: {'label' if kind == 'int64' else 'label_text'}, type: {kind}}}"
        features = f"{self.image_key}: {{field: encoded, type: bytes}}, {key}: {meaning}"
        convention = shlex.quote(f"source.convention={{features: {{{features}}}}}")
        keep = shlex.quote(f"source.keep={{{key}: {kind}}}")
        return (
            f"its Examples have no label, and their feature {key} may be one: add --set "
            f"{convention} to take it, or --set {keep} to store it without that meaning"
        )

    def make_reference(self, ref: ImageRef, record: bytes) -> ImageRef:
        """Makes the reference of an Example from the reference to its bytes.

        Raises:
            Rejected: it is not an Example, or not of the convention.
            ClassNamesError: its file of class names cannot be used.
        """
        source, example = self.source, parse_record(record)
        entries: Mapping[str, Any] = example.features.feature
        labels = read_labels(entries, source._declared, find_convention, source.keep)
        convention = require_convention(entries, labels.convention)
        fields = {**read_fields(labels.entries, convention), **labels.texts}
        read_kept(entries, source.kept)
        self.others.update(list_unread(example, convention, source.annotations(), self.copied))
        self.noted.update(labels.notes)
        key = text_in(entries, source.key_feature) if source.key_feature else ref.key
        split = ref.split or self.word
        if source.split_feature and not ref.split:
            split = text_in(entries, source.split_feature)
        texts = {each: fields[each] for each in ("filename", "source_id") if fields.get(each)}
        values: dict[str, Any] = {each: decode_text(text, each) for each, text in texts.items()}
        boxes = None
        if holds_images(convention):
            boxes = boxes_from_fields(fields, partial(self._name_of_box, convention))
        text = decode_text(fields.get("label_text"), "the class's name")
        number = fields.get("label")
        if number == NO_CLASS_NUMBER and "label_text" in fields and not text:
            number = None
        label = self._name_of(convention, text, number) or ""
        self.has_labels = self.has_labels or bool(label or boxes)
        if not self.has_labels and not self.likely:
            self._find_likely(entries, convention)
        return ref.replace(
            key=key,
            label=label,
            split=split,
            features=pack_fields(values),
            annotations=pack_annotations([boxes] if boxes else ()),
        )

    def _find_likely(self, entries: Mapping[str, Any], convention: Convention) -> None:
        """Finds features that may be labels, from an Example without a label."""
        images = (key for key, each in convention.features.items() if each.field == "encoded")
        self.image_key = next(images, "")
        for key in entries.keys() & _LABEL_KEYS - convention.features.keys():
            kind = entries[key].WhichOneof("kind")
            if self.image_key and kind in _KINDS_OF_LABELS:
                self.likely[key] = _KINDS_OF_LABELS[kind]

    def _name_of(self, convention: Convention, text: str, number: int | None) -> str | None:
        """Returns the class of a name and a number in an Example; adds the classes to announce.

        Returns None if they stand for no class.
        """
        if number is None:
            return text or None
        if text:
            if self.source.keep_ids:
                self.numbers[text] = number
            return text
        where, names = self.labels.names_for(convention, self.source._first_label(convention))
        if names and number == NO_CLASS_NUMBER and number not in names:
            return None
        if names and number not in names:
            known = f"{min(names)} to {max(names)}"
            raise bad_example(f"its label is {number}, where {where} names those of {known}")
        name = names.get(number, str(number))
        if not names:
            self.numbers[name] = number
        elif not self.source.class_names and name not in self.numbers:
            # All in the file, so that ids do not depend on images.
            keeps_ids = self.source.keep_ids is not False
            self.numbers.update(
                (each, known if keeps_ids else None) for known, each in names.items()
            )
        return name

    def _name_of_box(self, convention: Convention, text: str, number: int | None) -> str:
        name = self._name_of(convention, text, number) or ""
        if number is not None and not name:
            raise bad_example(f"it has a box whose class is {number}, which stands for none")
        self.numbers.setdefault(name, None)
        return name


SOURCE = Tfrecords
