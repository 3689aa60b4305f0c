"""Hugging Face's imagefolder: images, and `metadata.csv`, `.jsonl` or `.parquet` next to them."""

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import ImageRef, Listed, Notice
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized
from recordmill.transforms.inputs.sources.manifest import Manifest
from recordmill.transforms.inputs.sources.source import Source
from recordmill.transforms.inputs.tables.known_tables import column_names
from recordmill.transforms.inputs.tables.manifest_columns import Columns, FeatureColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFolder(Source):
    """The source `imagefolder`.

    Images that no metadata file names are ignored. For folders named after splits, set
    `splits.from_folders`.

    Attributes:
        file_name: the column of the images' paths, relative to the metadata file. If rows name
            several images, choose one column.
        label: the column of the class; empty: none.
        labels: the column of several classes per image; in CSV, separated by `|`.
        objects: the column of boxes: an object with `bbox` (x, y, width, height of each) and
            `categories`; empty: none.
        class_names: class names for integers from 0; empty: those in `metadata.parquet`, or else
            the integers.
        features_from: additional features from columns: `{image/caption: {column: text}}`.
    """

    file_name: str = "file_name"
    label: str = ""
    labels: str = ""
    objects: str = ""
    class_names: tuple[str, ...] = ()
    features_from: Mapping[str, FeatureColumn] = field(default_factory=dict)

    files: ClassVar[tuple[str, ...]] = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
    other_files: ClassVar[str] = "taken_only_by_name"

    def __post_init__(self) -> None:
        """Raises ValueError if a setting is invalid."""
        if not self.file_name:
            raise SettingError("source.file_name", "is empty: name the column of the images' paths")
        self._manifest()

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes files named `metadata.csv` and so on."""
        tables = [path for path in sketch.heads if posixpath.basename(path) in cls.files]
        if not tables:
            return
        columns = column_names(tables[0], sketch)
        source: dict[str, Any] = {"kind": "imagefolder"}
        named = [name for name in columns if name.endswith("file_name")]
        if "file_name" not in columns and len(named) == 1:
            source["file_name"] = named[0]
        given = [key for key in ("label", "labels", "objects") if key in columns]
        left_out = []
        if "objects" in given:  # the convention for boxes stores no classes of whole images
            left_out = [key for key in given if key != "objects"]
        source |= {key: key for key in given if key not in left_out}
        if text := next((name for name in ("text", "caption") if name in columns), ""):
            source["features_from"] = {"image/caption": {"column": text}}
        folders = {
            folder for folder, names in sketch.names.items() if set(names.files) & set(cls.files)
        }
        splits = sketch.splits_by_folder(folders)
        boxes = {"convention": "tf_object_detection"} if "objects" in columns else {}
        needs = None
        if len(named) > 1 and "file_name" not in named:
            choices = " or ".join(f"--set source.file_name={name}" for name in named)
            needs = (
                f"its columns {' and '.join(named)} name images, and one is stored: add {choices}"
            )
        yield Recognized(
            {"source": source, **splits, **boxes},
            f"Hugging Face's imagefolder, {tables[0]}",
            needs=needs,
            needed_keys=("source.file_name",),
            left_out=tuple(left_out),
        )

    def _manifest(self) -> Manifest:
        columns = Columns(
            uri=self.file_name, label=self.label, labels=self.labels, objects=self.objects
        )
        return Manifest(
            columns=columns, features_from=self.features_from, class_names=self.class_names
        )

    def settle(self, files: Iterator[ImageRef], note: Callable[[str], None]) -> Self:
        """Replaces patterns in `features_from` by the names of the columns that match them."""
        tables = (file for file in files if posixpath.basename(file.key) in self.files)
        return replace(self, features_from=self._manifest().settle(tables, note).features_from)

    def annotations(self) -> Mapping[str, str]:
        """Returns the annotations that have a column."""
        return {
            what: key.replace("columns.", "")
            for what, key in self._manifest().annotations().items()
        }

    @property
    def gives_labels(self) -> bool:
        """Whether any column holds classes."""
        return bool(self.label or self.labels or self.objects)

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields one image per row."""
        for ref in self._manifest().list_references(path, file):
            if isinstance(ref, Notice) and ref.status == "fatal":  # with the keys of this source
                named = ref.detail.replace("(source.columns.uri)", "(source.file_name)")
                ref = ref.replace(detail=named.replace("(source.columns.", "(source."))
            yield ref


SOURCE = ImageFolder
