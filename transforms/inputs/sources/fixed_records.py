"""Binary files of fixed-length records: label bytes, then pixels, as in CIFAR-10 and CIFAR-100."""

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

import numpy as np

from recordmill.schemas.errors import SettingError
from recordmill.schemas.features import Feature
from recordmill.schemas.image_ref import ClassNames, Content, ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.setting_fields import Count
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.array_files import interleave, list_ranges
from recordmill.transforms.inputs.class_names import (
    ClassNamesError,
    NoClassNamesError,
    number_classes,
    read_class_names,
)
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized, given_splits
from recordmill.transforms.inputs.named_files import DataFile
from recordmill.transforms.inputs.sources.source import ArraySource

_CIFAR = {"height": 32, "width": 32, "channels": 3}
PRESETS: Mapping[str, Mapping[str, Any]] = {
    "": {"data": {"all": "*.bin"}, "labels": ("label",)},
    # https://www.cs.toronto.edu/~kriz/cifar.html, "Binary version"
    "cifar10": _CIFAR
    | {
        "data": {"train": "data_batch_*.bin", "test": "test_batch.bin"},
        "labels": ("label",),
        "class_names_file": "batches.meta.txt",
        "classes": {("label", "batches.meta.txt"): 10},
    },
    "cifar100": _CIFAR
    | {
        "data": {"train": "train.bin", "test": "test.bin"},
        "labels": ("coarse_label", "fine_label"),
        "class_names_file": "{label}_names.txt",
        "classes": {
            ("coarse_label", "coarse_label_names.txt"): 20,
            ("fine_label", "fine_label_names.txt"): 100,
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedRecords(ArraySource):
    """The source `fixed_records`.

    Attributes:
        preset: `cifar10` or `cifar100`: the values of all settings below that are not set. Empty:
            none.
        data: patterns of the names of record files, by the word for `splits.from_source`; empty:
            the preset's, or `{all: "*.bin"}`.
        header: bytes before the first record of a file.
        labels: names of the label bytes at the start of each record, in order; `[]` for none.
            Absent: the preset's, or `[label]`.
        label: the label byte that is the class; empty: the last. The others become features.
        height: height in pixels; 0: the preset's.
        width: width in pixels; 0: the preset's.
        channels: 1, or 3 for red, green, blue; 0: the preset's.
        order: `planar` (all of red before all of green) or `interleaved` (pixel by pixel).
        class_names_file: a text file next to the records with one class name per line; `{label}`
            stands for the value of `label`. Empty: the preset's. If it is missing, classes are
            numbered, and a note says so.
        class_names: class names instead of that file, or the number of classes.
    """

    preset: Literal["", "cifar10", "cifar100"] = "cifar10"
    data: Mapping[str, str] = field(default_factory=dict)
    header: Count = 0
    labels: tuple[str, ...] | None = None
    label: str = ""
    height: int = 0
    width: int = 0
    channels: int = 0
    order: Literal["planar", "interleaved"] = "planar"
    class_names_file: str = ""
    class_names: tuple[str, ...] | int = ()

    def __post_init__(self) -> None:
        """Raises ValueError if the layout, with the preset, is incomplete or invalid."""
        if self._with_preset() is not self:
            return  # the completed source has been checked
        if self.height < 1 or self.width < 1 or self.channels not in (1, 3):
            size = f"{self.height} x {self.width} x {self.channels}"
            raise SettingError(
                "source.height",
                f"x width x channels is {size}: give 1 or 3 channels, or name a preset",
            )
        if self.labels and (
            self.label not in self.labels or len({*self.labels}) < len(self.labels)
        ):
            raise SettingError(
                "source.labels",
                f"must name source.label, which is {self.label!r}, and no label byte twice",
            )
        if self.labels and bool(self.class_names) == bool(self.class_names_file):
            raise SettingError(
                "source",
                ": give either source.class_names, the classes' names or number, or "
                "source.class_names_file",
            )
        self.classes()

    def _with_preset(self) -> Self:
        """Returns the source with the preset's values for missing settings.

        Itself if none is missing.
        """
        preset = PRESETS[self.preset]
        given = {
            "labels": preset["labels"] if self.labels is None else self.labels,
            **{
                key: getattr(self, key) or preset.get(key, 0)
                for key in ("data", "height", "width", "channels")
            },
        }
        given["label"] = self.label or (given["labels"] or ("",))[-1]
        names = self.class_names_file or (
            "" if self.class_names else preset.get("class_names_file", "")
        )
        given["class_names_file"] = names.replace("{label}", given["label"])
        return (
            self
            if all(getattr(self, key) == value for key, value in given.items())
            else replace(self, **given)
        )

    def settle(self, files: Iterator[ImageRef], note: Callable[[str], None]) -> Self:
        """Fills in the preset's settings; no file is read."""
        return self._with_preset()

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes CIFAR's binary files."""
        for preset, title in (("cifar10", "CIFAR-10"), ("cifar100", "CIFAR-100")):
            files = PRESETS[preset]["data"].items()
            words = [
                word
                for word, pattern in files
                if any(fnmatchcase(name, pattern) for name in sketch.top.files)
            ]
            if words and (preset == "cifar10" or "fine_label_names.txt" in sketch.top.files):
                source = {"kind": "fixed_records", "preset": preset}
                settings = {
                    "source": source,
                    **given_splits("from_source", words),
                    "images": {"store": "raw"},
                }
                yield Recognized(
                    {**settings, "convention": "raw_pixels"}, f"the binary files of {title}"
                )

    @property
    def record_bytes(self) -> int:
        """Bytes per record."""
        return len(self.labels or ()) + self.height * self.width * self.channels

    def features(self) -> tuple[Feature, ...]:
        """Returns the label bytes that are not the class."""
        others = (name for name in self.labels or () if name != self.label)
        return tuple(
            Feature(name, "int64", name, f"label byte `{name}` of the record") for name in others
        )

    @property
    def siblings(self) -> Mapping[str, str]:
        """CIFAR-100's names of the classes of its other label."""
        return {"*_label_names.txt": "", "batches.meta.txt": ""}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields a reference per record, from the file's size alone."""
        name = posixpath.basename(path)
        word = next(
            (word for word, pattern in self.data.items() if fnmatchcase(name, pattern)), None
        )
        if word is None:
            yield file.notice(
                "ignored", "class_names" if name == self.class_names_file else "not_included"
            )
            return
        count, over = divmod(file.size - self.header, self.record_bytes)
        if count < 1 or over:
            wanted = (
                f"a header of {self.header:,} bytes and whole records of {self.record_bytes:,} "
                "bytes"
            )
            raise Rejected(
                "list",
                "wrong_length",
                f"{file.size:,} bytes are not {wanted}: the last has {over:,}",
            )
        if self.labels and self.class_names_file:
            records = DataFile(path, file)
            try:
                names = read_class_names(records, records.folder, self.class_names_file)
                classes = {name: number for number, name in names.items()}
            except ClassNamesError as error:
                known = (
                    PRESETS[self.preset]
                    .get("classes", {})
                    .get((self.label, self.class_names_file), 0)
                )
                if not known or not isinstance(error, NoClassNamesError):
                    yield file.notice(
                        "fatal", "class_names", f"{error}: correct that, or set source.class_names"
                    )
                    return
                # One note for all files of a folder.
                folder = file.replace(key=file.key[: -len(name)])
                detail = (
                    f"there is no {self.class_names_file}, so the {known} classes are called 0 "
                    f"to {known - 1}"
                )
                yield folder.notice("warning", "class_names", detail)
                classes = number_classes(known)
            yield ClassNames.of(file, classes)
        yield from list_ranges(
            file, file.key, self.header, self.record_bytes, count, split=file.split or word
        )

    @property
    def late_labels(self) -> bool:
        """Whether records have label bytes: by default, those of the preset."""
        return self.labels != ()

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Returns one record: its pixels, and the values of its label bytes."""
        data = read_image(ref, max_bytes)
        names = self.labels or ()
        values = dict(zip(names, data, strict=False))
        pixels = data[len(names) :]
        ordered = interleave(pixels, self.channels) if self.order == "planar" else pixels
        image = np.ndarray((self.height, self.width, self.channels), np.uint8, ordered)
        return Content(data, image, values.pop(self.label, None), values)


SOURCE = FixedRecords
