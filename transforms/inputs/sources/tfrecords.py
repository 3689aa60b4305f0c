"""TFRecords as input: existing datasets of a known or declared convention, to re-key, re-split, relabel or merge."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import orjson

from recordmill.schemas.conventions import Convention, load_convention
from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ClassNames, Content, ImageRef, Listed
from recordmill.schemas.packing import Gzip
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.setting_fields import AtLeastOne, ClassId
from recordmill.schemas.settings.custom_convention import CustomConvention
from recordmill.storage.packed_files import MAX_RATIO, read_bounded, read_image
from recordmill.storage.record_reader import Damage, RecordFile, StoredFile
from recordmill.transforms.inputs import tfrecord_examples
from recordmill.transforms.inputs.listing.class_names import ClassNamesError, LabelFiles
from recordmill.transforms.inputs.listing.folder_sketch import FolderSketch, Recognised, given_splits
from recordmill.transforms.inputs.listing.local_folders import compile_globs
from recordmill.transforms.inputs.listing.named_files import DataFile
from recordmill.transforms.inputs.listing.patterns import compile_pattern
from recordmill.transforms.inputs.sources.source import Source

_DATA_AT = 12  # after the length and its checksum


@dataclass(frozen=True, slots=True, kw_only=True)
class Tfrecords(Source):
    """The source `tfrecords`.

    Attributes:
        convention: the convention of the input's Examples: a name, a mapping as under `convention`, or `auto`: the one
            that each record's keys fit. A convention without images, such as `feature_vector`, must be named.
        class_names: the class names in the order of their numbers, if Examples only have numbers; empty: the Examples'
            own names, those in `class_names_file`, or the numbers.
        class_names_file: a file of class names: `labels.txt` (one name per line, or `id:name`) or `label_map.pbtxt`;
            next to the Examples, or a full path; `auto`: either of them, or TensorFlow Datasets' `FEATURE.labels.txt`,
            if it is next to the Examples or above them in the input; empty: none.
        first_label: the number of the first class in the input; absent: the convention's (0, or 1 if 0 is background).
        keep_ids: whether classes keep their numbers: as ids with `labels.ids: integers`, otherwise as their order.
            Absent: classes named by a file keep them, classes named by Examples do not. If numbers are kept, all input
            files must give a class the same number.
        key_feature: the feature whose value is the record's key; empty: the key is the file's key and the record's
            number, `a.tfrecord/000123`.
        split: a regular expression (RE2's syntax), searched for in the file's name, then in its path; its group `split`
            is the word that `splits.from_source` maps to a split.
        split_feature: the feature whose value is that word, in place of the file's name.
        keep: additional features to copy, with their types, such as `{image/caption: bytes, scores: "float[]"}`.
        shape: height, width and channels of raw pixels, if Examples do not give them.
        max_ratio: a gzip file may unpack to this many times its size plus 1 MiB.
    """

    convention: str | CustomConvention = "auto"
    class_names: tuple[str, ...] = ()
    class_names_file: str = "auto"
    first_label: ClassId | None = None
    keep_ids: bool | None = None
    key_feature: str = ""
    split: str = r"(?P<split>train|validation|valid|val|test|eval|dev)"
    split_feature: str = ""
    keep: Mapping[str, tfrecord_examples.KeptType] = field(default_factory=dict)
    shape: tuple[int, ...] = ()
    max_ratio: AtLeastOne = MAX_RATIO

    gives_words: ClassVar[bool] = True
    split_settings: ClassVar[tuple[str, ...]] = ("split", "split_feature")
    files: ClassVar[tuple[str, ...]] = tuple(
        name + ending
        for name in ("*.tfrecord", "*.tfrecords", "*.tfrec", "*.record", f"*-{'[0-9]' * 5}-of-{'[0-9]' * 5}")
        for ending in ("", ".gz")
    )

    def __post_init__(self) -> None:
        """Raises ValueError if a setting is invalid."""
        compile_pattern(self.split, "source.split", "split")
        try:
            declared = self._declared
        except ValueError as error:
            raise ValueError(f"source.convention: {error}") from None
        if self.class_names and self.first_label is None and declared is None:
            raise ValueError("source.class_names needs source.first_label, the number of the first, or convention")
        if self.class_names and self.class_names_file not in ("", "auto"):
            raise ValueError("source.class_names and source.class_names_file contradict each other: remove one of them")
        if self.shape and (len(self.shape) != 3 or min(self.shape) < 1 or self.shape[2] not in (1, 3)):
            raise ValueError(f"source.shape is {list(self.shape)}: give height, width, and 1 or 3 channels")
        self.classes()

    @property
    def contents(self) -> Literal["images", "rows"]:  # type: ignore[override]  # depends on the settings
        """`rows` if the convention has no images."""
        declared = self._declared
        return "images" if declared is None or tfrecord_examples.holds_images(declared) else "rows"

    @property
    def may_give_pixels(self) -> bool:
        """Whether Examples may hold raw pixels."""
        declared = self._declared
        return declared is None or isinstance(self.convention, CustomConvention) or declared.stores == "raw"

    def idle_settings(self) -> Mapping[str, str]:
        """The pattern for file names, if a feature gives the split."""
        return {"split": "source.split_feature gives the split"} if self.split_feature else {}

    @property
    def _declared(self) -> Convention | None:
        """The convention of all Examples; None if it is found for each of them."""
        if isinstance(self.convention, CustomConvention):
            return self.convention.as_convention()
        return None if self.convention == "auto" else load_convention(self.convention)

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterator[Recognised]:
        """Recognises files named like TFRecords in an input without images."""
        patterns = compile_globs(cls.files)
        names = [name for each in sketch.names.values() for name in each.files if patterns.match_file(name)]
        if names and not sketch.has_images:
            found = [compile_pattern(cls().split, "source.split", "split").search(name) for name in names]
            words = {match["split"] if match else "" for match in found}
            images = {"reencode": "never", "check": "header"}
            settings = {"source": {"kind": "tfrecords"}, **given_splits("from_source", words), "images": images}
            yield Recognised(settings, f"TFRecord files such as {min(names)}")

    def classes(self) -> Mapping[str, int]:
        """The classes in `class_names`."""
        first = self._first_label(self._declared)
        return {name: first + number for name, number in Source.classes(self).items()}

    def _first_label(self, convention: Convention | None) -> int:
        if self.first_label is not None:
            return self.first_label
        return 0 if convention is None else convention.label_offset

    def features(self) -> tuple[Feature, ...]:
        """The features in `keep`, and those of a convention without images."""
        kept = (
            Feature(key, tfrecord_examples.kind_of(kept), key, "as in the input", many=kept.endswith("[]"))
            for key, kept in self.keep.items()
        )
        own = tfrecord_examples.own_features(self._declared) if self._declared else ()
        return (*kept, *(replace(feature, meaning="as in the input") for feature in own))

    @property
    def remedies(self) -> Mapping[str, str]:
        """For features that no convention has."""
        return {"not_stored": "source.keep copies features of the input"}

    def annotations(self) -> Mapping[str, str]:
        """Boxes, if there are images."""
        return {"boxes": ""} if self.contents == "images" else {}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields a reference for each record, to the byte range of its data; a rejected one for each damaged place."""
        numbers: dict[str, int | None] = {}
        not_stored: Counter[str] = Counter()
        labels = LabelFiles(DataFile(path, file), self.class_names_file, self.class_names)
        with StoredFile(file.uri) as stored:
            records, index = RecordFile(stored), -1
            for index, (offset, record) in enumerate(read_bounded(records, stored, self.max_ratio)):
                ref = file.replace(key=f"{file.key}/{index:06}", spelling="")
                if isinstance(record, Damage):
                    yield ref.notice("rejected", "bad_record", _explain(index, offset, record))
                    continue
                packing = str(Gzip(has_checksums=True)) if records.compression == "gzip" else ""
                ref = ref.replace(offset=offset + _DATA_AT, length=len(record), packing=packing)
                try:
                    yield self._make_reference(path, ref, bytes(record), numbers, labels, not_stored)
                except ClassNamesError as error:
                    yield file.notice("fatal", "bad_labels", str(error))
                    return
                except Rejected as error:
                    yield ref.notice("rejected", "bad_example", f"record {index} at byte {offset}: {error.detail}")
        if index < 0:
            yield file.notice("rejected", "bad_record", "the file holds no records")
        yield from (file.notice("not_stored", key, count=count) for key, count in not_stored.items())
        known = {name: number for name, number in numbers.items() if number is not None}
        yield from (ClassNames.of(file, names) for names in (known, numbers.keys() - known.keys()) if names)

    def _make_reference(
        self,
        path: str,
        ref: ImageRef,
        record: bytes,
        numbers: dict[str, int | None],
        labels: LabelFiles,
        not_stored: Counter[str],
    ) -> ImageRef:
        """The reference of one Example; adds classes to announce to `numbers`, and keys that are not read."""
        entries = tfrecord_examples.parse_entries(record)
        convention, fields = self._fields_of(entries)
        read = {self.key_feature, self.split_feature, *self.keep, *(each.key for each in convention.features)}
        not_stored.update(entries.keys() - read)
        tfrecord_examples.read_kept(entries, self.keep)
        key = tfrecord_examples.text_in(entries, self.key_feature) if self.key_feature else ref.key
        split = ref.split or self._split_word(path, entries)

        def name_of(text: str, number: int | None) -> str:
            if number is None:
                return text
            if text:
                if self.keep_ids:
                    numbers[text] = number
                return text
            where, names = labels.names_for(convention, self._first_label(convention))
            name = tfrecord_examples.class_of(number, names, where)
            if not names:
                numbers[name] = number
            elif not self.class_names and name not in numbers:  # all in the file, so that ids do not depend on images
                numbers.update((each, None if self.keep_ids is False else known) for known, each in names.items())
            return name

        def name_of_box(text: str, number: int | None) -> str:
            name = name_of(text, number)
            numbers.setdefault(name, None)
            return name

        values: dict[str, Any] = {
            each: tfrecord_examples.text_of(fields[each], each)
            for each in ("filename", "source_id")
            if fields.get(each)
        }
        if self.contents == "images":
            values |= tfrecord_examples.read_boxes(fields, name_of_box)
        label = name_of(tfrecord_examples.text_of(fields.get("label_text"), "the class's name"), fields.get("label"))
        packed = orjson.dumps(values).decode() if values else ""
        return ref.replace(key=key, label=label, split=split, features=packed)

    def _fields_of(self, entries: Mapping[str, Any]) -> tuple[Convention, dict[str, Any]]:
        convention = self._declared or tfrecord_examples.find_convention(entries)
        return convention, tfrecord_examples.read_fields(entries, convention)

    def _split_word(self, path: str, entries: Mapping[str, Any]) -> str:
        if self.split_feature:
            return tfrecord_examples.text_in(entries, self.split_feature)
        pattern = compile_pattern(self.split, "source.split", "split")
        match = pattern.search(path.rpartition("/")[2]) or pattern.search(path)
        return (match["split"] or "") if match else ""

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """The image of one Example, and the features to copy; see `Source.read`."""
        record = read_image(ref, max_bytes, self.max_ratio)
        entries = tfrecord_examples.parse_entries(record)
        convention, fields = self._fields_of(entries)
        kept = tfrecord_examples.read_kept(entries, self.keep)
        if self.contents == "rows":
            # The reference has the class. A digest that the input lacks stays missing: only files have one.
            own = {name: value for name, value in fields.items() if name not in ("label", "label_text")}
            return Content(record, None, fields={"sha256": None, "file_sha256": None, **own, **kept})
        is_raw = convention.stores == "raw" or (isinstance(self.convention, CustomConvention) and bool(self.shape))
        data, image = tfrecord_examples.read_image_of(fields, is_raw, self.shape)
        return Content(data, image, fields=kept)


def _explain(index: int, offset: int, damage: Damage) -> str:
    """Describes a damaged place; how much is lost is not known, because lengths cannot be read."""
    where = f"record {index}{f' at byte {offset}' if offset >= 0 else ''}: {damage.detail}"
    goes_on = "reading went on with the next frame whose length fits its checksum, if there was one"
    return f"{where}; {'no more of the file can be read' if damage.kind == 'gzip' else goes_on}"


SOURCE = Tfrecords
