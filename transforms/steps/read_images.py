"""ReadImages: paths, files, bytes, rows or references become images with their bytes."""

import os
import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Literal

import apache_beam as beam
import orjson
from apache_beam.io.fileio import ReadableFile
from apache_beam.metrics import Metrics
from apache_beam.typehints.native_type_compatibility import convert_to_beam_type
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.typehints import UnionConstraint, is_consistent_with

from recordmill import storage
from recordmill.schemas.image_ref import Content, ImageRef, Notice
from recordmill.schemas.reference_batch import ReferenceBatch
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.settings.images import ImageSettings
from recordmill.schemas.settings.source import SourceSettings
from recordmill.schemas.str_path import StrPath
from recordmill.storage.packed_files import read_image
from recordmill.transforms.inputs.patterns import escape_path, normal_path
from recordmill.transforms.inputs.sources.class_folders import folder_label
from recordmill.transforms.steps.elements import RawImage
from recordmill.transforms.steps.image_step import NAMESPACE, ImageStep, ImageWork

LabelRule = Literal["folder"] | Callable[[str], str | None] | None
"""How keys give labels."""

Element = str | os.PathLike[str] | ReadableFile | tuple[str, bytes] | Mapping[str, Any] | ImageRef
"""What is read; rows of a schema and batches of references are read, too."""


class ReadImages(ImageStep):
    """Reads the images of a PCollection, and gives a PCollection of `RawImage`.

    The result's attribute `rejected` is the PCollection of `RejectedImage`. Elements may be:

    - paths, and `fileio.ReadableFile`, as `fileio.ReadMatches` yields them;
    - pairs of a key and bytes;
    - mappings, and rows of a schema, with `uri` or `bytes`, and optionally `key`, `label`,
      `features`, `group` and `split`, as in `RawImage`;
    - references, as `ListReferences` yields them.

    The key of a path is its part below `root`. Bytes without a key get their SHA-256 as key.

    Example:
        read = files | recordmill.ReadImages(root="photos", label="folder")
    """

    def __init__(
        self,
        root: StrPath = "",
        label: LabelRule = None,
        *,
        max_bytes: int = ImageSettings().max_bytes,
        source: SourceSettings | None = None,
    ) -> None:
        """Sets how elements are read.

        Args:
            root: the folder that keys are relative to; empty: keys are whole paths.
            label: `"folder"`: the first folder of the key names the class; or a function of the
                key that returns the class; None: images have no class unless their row has one.
            max_bytes: larger images are rejected.
            source: reads references, if they do not stand for whole image files.

        Raises:
            ValueError: `label` is another word.
        """
        super().__init__()
        if isinstance(label, str) and label != "folder":
            raise ValueError(f'label is {label!r}: give "folder", a function of the key, or None')
        self._work = _ReadImage(os.fspath(root), label, max_bytes, source)
        self.shown = self._work.shown

    def type_check_inputs(self, pvalueish: Any) -> None:
        """Raises TypeCheckError if elements of this type cannot be read."""
        kind = pvalueish.element_type
        kinds = kind.union_types if isinstance(kind, UnionConstraint) else {kind}
        if not all(map(_may_be_read, kinds)):
            super().type_check_inputs(pvalueish)

    def expand(self, elements: beam.PCollection[Element]) -> beam.PCollection[RawImage]:
        """Adds the step to a pipeline."""
        return self.divide(elements, "Read", self._work, RawImage)


def _may_be_read(kind: Any) -> bool:
    """Returns whether Beam's type of an element is one of those that are read."""
    if isinstance(kind, RowTypeConstraint) or hasattr(kind, "_fields") or kind is ReferenceBatch:
        return True
    # Beam does not take pathlib's paths for os.PathLike[str].
    if isinstance(kind, type) and issubclass(kind, os.PathLike):
        return True
    return is_consistent_with(kind, convert_to_beam_type(Element))


@dataclass(frozen=True, slots=True)
class _ImageRow:
    """An element as a row: what is known of an image before it is read."""

    key: str
    uri: str = ""
    data: bytes | None = None
    label: str | int | None = None
    features: Mapping[str, Any] | None = None
    group: str = ""
    split: str = ""
    reference: ImageRef | None = None


class _ReadImage(ImageWork):
    def __init__(
        self, root: str, label: LabelRule, max_bytes: int, source: SourceSettings | None
    ) -> None:
        rule = getattr(label, "__qualname__", str(label))
        shown = {"root": root, "label": rule, "max_bytes": str(max_bytes)}
        super().__init__("images_read", "read_microseconds", shown)
        self._root, self._rule, self._max_bytes, self._source = root, label, max_bytes, source
        self._bytes = Metrics.counter(NAMESPACE, "bytes_read")

    def process(self, element: Any) -> Iterator[Any]:
        elements = [element]
        if isinstance(element, ReferenceBatch):
            fatal = [each for each in element.notices if each.status == "fatal"]
            if fatal:
                raise ValueError(f"{fatal[0].uri}: {fatal[0].detail}")
            rejected = [each for each in element.notices if each.status == "rejected"]
            elements = [*element.refs, *rejected]
        for each in elements:
            row = _as_row(each)
            yield from self.attempt(row.key or _key_of(row, self._root), partial(self._read, row))

    def _read(self, row: _ImageRow) -> RawImage:
        if row.reference is not None:
            return self._read_reference(row.reference)
        key = row.key
        if row.data is None and not row.uri:
            raise Rejected("list", "bad_row", "the row has neither uri nor bytes")
        if not key:
            key = _key_of(row, self._root)
            _check_path(row, self._root)
        label = row.label
        if label is None and self._rule is not None:
            label = _label_of(key, self._rule)
        data = row.data
        if data is None:
            data = _read_file(ImageRef(key, row.uri, -1), self._max_bytes)
        elif len(data) > self._max_bytes:
            detail = f"{len(data)} bytes, where images.max_bytes allows {self._max_bytes}"
            raise Rejected("read", "too_many_bytes", detail)
        self._bytes.inc(len(data))
        return RawImage(key, data, label, row.features or {}, row.group, row.split)

    def _read_reference(self, ref: ImageRef) -> RawImage:
        if isinstance(ref, Notice):
            raise Rejected("list", ref.reason, ref.detail)
        if self._source is None:
            data = read_image(ref, self._max_bytes)
            content = Content(data, data)
        else:
            content = self._source.read(ref, self._max_bytes)
        self._bytes.inc(len(content.data))
        label = ref.label if content.label is None else content.label
        return raw_image(ref, content, label, ref.split)


def _read_file(file: ImageRef, max_bytes: int) -> bytes:
    """Reads a file that was not listed.

    Raises:
        Rejected: as `read_image`.
    """
    try:
        return read_image(file, max_bytes)
    except Rejected as rejected:
        if rejected.reason == "vanished":
            raise Rejected("read", "vanished", "there is no such file") from None
        raise


def raw_image(ref: ImageRef, content: Content, label: str | int | None, split: str) -> RawImage:
    """Returns the image of a reference that was read.

    Args:
        ref: the reference.
        content: what was read.
        label: its class; empty or None without one.
        split: its split, if that is decided.
    """
    features: dict[str, Any] = {}
    if ref.features:
        features.update(orjson.loads(ref.features))
    features.update(content.fields)
    pixels = None
    if not isinstance(content.image, bytes | None):
        pixels = content.image
    if label == "":
        label = None
    return RawImage(
        ref.key,
        content.data,
        label,
        features,
        ref.group,
        split,
        ref.annotations,
        pixels,
        files=ref.files,
    )


def _as_row(element: Any) -> _ImageRow:
    """Returns any element as a row.

    Raises:
        TypeError: it has another type than the documented ones.
    """
    if isinstance(element, str | os.PathLike):
        return _ImageRow("", os.fspath(element))
    if isinstance(element, ReadableFile):
        return _ImageRow("", element.metadata.path)
    if isinstance(element, ImageRef):
        return _ImageRow(element.key, reference=element)
    values = element
    if hasattr(element, "_asdict"):
        values = element._asdict()
    if isinstance(values, Mapping):
        return _ImageRow(
            key=values.get("key") or "",
            uri=values.get("uri") or "",
            data=_as_bytes(values.get("bytes")),
            label=values.get("label"),
            features=values.get("features"),
            group=values.get("group") or "",
            split=values.get("split") or "",
        )
    if isinstance(values, tuple) and len(values) == 2:
        return _ImageRow(values[0], data=_as_bytes(values[1]))
    raise TypeError(
        f"ReadImages cannot read a {type(element).__name__}: give it paths, files of "
        "fileio.ReadMatches, pairs of a key and bytes, or rows with uri or bytes"
    )


def _as_bytes(data: Any) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    raise TypeError(f"the bytes of an image are a {type(data).__name__}: give bytes")


def _key_of(row: _ImageRow, root: str) -> str:
    """Returns the key of a row that gives none."""
    if row.data is not None:
        return sha256(row.data).hexdigest()
    path, folder = _comparable(row.uri), _comparable(root)
    below = path.removeprefix(f"{folder}/") if folder else path
    return normal_path(below) or escape_path(below)


def _comparable(path: str) -> str:
    if path and storage.is_local(path):
        return posixpath.normpath(path)
    return path.rstrip("/")


def _check_path(row: _ImageRow, root: str) -> None:
    """Raises Rejected if a path gives no key, or none below the root."""
    if row.data is not None:
        return
    path, folder = _comparable(row.uri), _comparable(root)
    if normal_path(path) is None:
        raise Rejected("list", "bad_name", "the name is not UTF-8")
    if folder and not path.startswith(f"{folder}/"):
        raise Rejected("list", "outside_root", f"{path!r:.200} is not below {folder}")


def _label_of(key: str, rule: Literal["folder"] | Callable[[str], str | None]) -> str | None:
    """Returns the class that the key gives.

    Raises:
        Rejected: `no_class`: the key has no folder.
    """
    if callable(rule):
        return rule(key)
    label = folder_label(key, "first_folder")
    if not label:
        raise Rejected("list", "no_class", "the file is not in a class folder")
    return label
