"""`recordmill.open`: random access to records, as `load` yields them or as numpy arrays by key."""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, zip_longest
from operator import index as as_number
from typing import Any, Literal, overload

import numpy as np
import simplejpeg
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from recordmill import storage
from recordmill.annotations.kinds import KINDS
from recordmill.imaging.acceptance import sniff
from recordmill.imaging.depth import is_deep, reduce_depth
from recordmill.imaging.pillow_decode import decode_first_frame, open_image
from recordmill.reading.dataset import (
    Dataset,
    SplitInfo,
    StoredShard,
    describe_open_split,
    open_dataset,
)
from recordmill.reading.example import (
    DamagedExampleError,
    Expectations,
    ParsedExample,
    as_array,
    example_as_numpy,
    expect,
    find_image,
)
from recordmill.reading.load import ElementLayout, choose_elements
from recordmill.reading.split_index import SplitIndex, read_index
from recordmill.schemas.dataset.marker import Marker
from recordmill.schemas.errors import LoadError
from recordmill.schemas.features import Feature, FeatureValueError, parse_example
from recordmill.schemas.rejection import Rejected
from recordmill.schemas.str_path import StrPath
from recordmill.storage.regular_files import open_regular
from recordmill.storage.stores.store import in_parallel
from recordmill.storage.tfrecord_file import frame_bytes, unframe

Form = Literal["image", "numpy", "raw"]


@dataclass(frozen=True, slots=True)
class ImageForm:
    """Turns a record of a Recordmill dataset into what `load` yields without batching.

    The values are numpy arrays and scalars.
    """

    info: SplitInfo
    layout: ElementLayout
    features: tuple[Feature, ...]

    def __call__(self, record: bytes, buffer: NDArray[np.uint8] | None = None) -> Any:
        """Returns a pair of image and label, a dict, or a tuple; see `decode` for `buffer`."""
        values = parse_example(self.features, record)
        arrays = {each.key: _as_scalars(each, values[each.key]) for each in self.features}
        if (key := self.layout.image) is not None:
            if self.info.raw:
                arrays[key] = self._raw_pixels(values, key)
            else:
                arrays[key] = decode(values[key], buffer)
        if (key := self.layout.multi_hot) is not None:
            label = np.zeros(self.info.label_depth, np.float32)
            label[[each for each in values[key] if 0 <= each < len(label)]] = 1
            arrays[key] = label
        elif self.layout.shape == "pair" and self.layout.label == self.info.key_of("label_text"):
            arrays[self.layout.label] = np.int64(
                self.info.labels.get(values[self.layout.label].decode(), -1)
            )
        for kind in self.layout.annotations:
            given = {
                field: _as_sequence(values[key])
                for field, key in self.layout.fields(kind, self.info).items()
            }
            arrays[kind] = KINDS[kind].as_array(given, self._find_size(values, arrays))
        chosen = {key: arrays[key] for key in self.layout.keys}
        if self.layout.shape == "dict":
            return chosen
        return tuple(chosen.values())

    def _find_size(
        self, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
    ) -> tuple[int, int]:
        height, width = self.info.key_of("height"), self.info.key_of("width")
        if height and width:
            return values[height], values[width]
        if self.layout.image:
            return arrays[self.layout.image].shape[:2]
        return 0, 0

    def _raw_pixels(self, values: Mapping[str, Any], key: str) -> NDArray[np.uint8]:
        height, width = self.info.key_of("height"), self.info.key_of("width")
        size = self.info.image_size
        if height and width:
            size = values[height], values[width]
        if size is None:
            raise LoadError(
                f"{self.info.folder} holds raw pixels of several sizes, and its records do not say "
                "which: read "
                "form='numpy'"
            )
        pixels = np.frombuffer(values[key], np.uint8).reshape(*size, -1)
        return np.repeat(pixels, 3 if pixels.shape[2] == 1 else 1, axis=2)


def _decode_guessed(expected: Expectations, record: bytes) -> dict[str, NDArray[Any]]:
    """Returns a record of a dataset without metadata as arrays by key.

    Its image has the shape (height, width, channels).
    """
    key, image = find_image(ParsedExample(record), expected)
    arrays = example_as_numpy(record)
    if key:
        return {**arrays, key: decode(image)}
    return arrays


def choose_form(
    dataset: Dataset,
    split: str,
    form: Form,
    features: Literal["all"] | Sequence[str] | None,
    annotations: Sequence[str] | None = None,
) -> Callable[[bytes], Any] | None:
    """Returns the function that turns a split's records into elements.

    It is None if they are left as serialized Examples.

    Raises:
        LoadError: there is no such form, or the records cannot have it.
    """
    if form not in ("image", "numpy", "raw"):
        raise LoadError(f"form is {form!r}: choose image, numpy or raw")
    if features not in (None, "all") and (form != "image" or dataset.marker_or_none is None):
        raise LoadError(
            f"features is {features!r}: it is only supported with form='image' and a dataset's "
            "folder; other forms give all features"
        )
    if annotations and (form != "image" or dataset.marker_or_none is None):
        raise LoadError(
            f"annotations is {annotations!r}: only form='image' of a dataset's folder takes it"
        )
    if form != "image":
        if form == "numpy":
            return example_as_numpy
        return None
    if dataset.marker_or_none is None:
        return partial(_decode_guessed, expect(dataset))
    info = describe_open_split(dataset, split)
    layout = choose_elements(info, features, True, annotations)
    needed = layout.needed(info)
    own = tuple(feature for feature in info.features if feature.key in needed)
    return ImageForm(replace(info, shards=info.shards[:1]), layout, own)


def decode(data: bytes, buffer: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """Decodes an image to three channels like `tf.io.decode_image`.

    Rotation, color profile and transparency are not applied. Of 16 bits, the high byte is taken.

    Args:
        data: the file.
        buffer: if a JPEG has this shape, its pixels are decoded into it, and it is returned.

    Raises:
        Rejected: it cannot be decoded.
    """
    if data.startswith(b"\xff\xd8"):
        try:
            fits = (
                buffer is not None and simplejpeg.decode_jpeg_header(data)[:2] == buffer.shape[:2]
            )
            pixels = simplejpeg.decode_jpeg(data, strict=True, buffer=buffer if fits else None)
            if fits and buffer is not None:
                return buffer
            return pixels
        except ValueError:  # Pillow reads more JPEGs, and its errors name the fault
            pass
    kind = sniff(data) or "JPEG"
    image = decode_first_frame(open_image(data, kind), kind).image
    if is_deep(image.mode):  # Pillow would clip the values
        image = reduce_depth(image)
    return np.array(image.convert("RGB"))


def _as_scalars(feature: Feature, value: Any) -> Any:
    if feature.many:
        return as_array(feature.kind, value)
    if feature.kind == "bytes":
        return value
    return as_array(feature.kind, [value])[0]


def _as_sequence(value: Any) -> Sequence[Any]:
    """Returns the values of a feature of annotations; a single one is a file in bytes."""
    if isinstance(value, bytes):
        return [value]
    return value


_MOST_BYTES = 2**23
_GAP_BYTES = 2**16  # transferring this much takes less time than another request to a store
_MOST_OPEN = 256

Damaged = Literal["raise", "skip"]


class Records:
    """The records of a split, by number from 0 and by the key of their source.

    It can be pickled, and any number of threads and processes, forked or spawned, can use it at the
    same time. It is a map-style dataset for PyTorch, and a random-access source for Grain.

    Attributes:
        places: where the records are.
        skipped: one sentence for each damaged record that this process left out.
    """

    def __init__(
        self,
        places: SplitIndex,
        form: Callable[[bytes], Any] | None = None,
        transform: Callable[[Any], Any] | None = None,
        damaged: Damaged = "raise",
    ) -> None:
        """Reads no records yet; see `open` for the arguments.

        Args:
            places: where the records are.
            form: turns a serialized Example into an element; None leaves it.
            transform: turns each element into another.
            damaged: `raise`, or `skip` damaged records when several are read.
        """
        if damaged not in ("raise", "skip"):
            raise LoadError(f"damaged is {damaged!r}: choose raise or skip")
        self.places = places
        self.skipped: list[str] = []
        self._form, self._transform, self._damaged = form, transform, damaged
        self._files: dict[int, _OpenFile] = {}
        self._entries = memoryview(self.places.entries.reshape(-1))  # type: ignore[arg-type]  # faster than numpy

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.places, self._form, self._transform, self._damaged)

    def __len__(self) -> int:
        return self.places.starts[-1]

    @overload
    def __getitem__(self, number: int) -> Any: ...

    @overload
    def __getitem__(self, number: slice) -> list[Any]: ...

    def __getitem__(self, number: int | slice) -> Any:
        """Returns one element, or a list of several; negative numbers count from the end.

        Raises:
            LoadError: there is no such record, or it is damaged.
            OSError: it cannot be read.
        """
        if isinstance(number, slice):
            return self.__getitems__(range(*number.indices(len(self))))
        place = self._check_number(number)
        ((_, record),) = self._read_piece([place])
        return self._finish(place, record)

    def __getitems__(self, numbers: Iterable[int], buffers: Iterable[Any] = ()) -> list[Any]:
        """Returns the elements of several records.

        Neighboring records are read together, and ranges of a store concurrently.

        Args:
            numbers: of the records.
            buffers: arrays to decode the images of the first records into, if `takes_buffers`.
        """
        ordered = [self._check_number(number) for number in numbers]
        pieces = list(self._join(sorted({*ordered})))
        is_remote = pieces and not storage.is_local(self.places.shards[0].path)
        read: Iterable[list[tuple[int, bytes | LoadError]]]
        if is_remote:
            read = in_parallel(self._read_piece, pieces)
        else:
            read = map(self._read_piece, pieces)
        found = dict(chain.from_iterable(read))
        elements: list[Any] = []
        for number, buffer in zip_longest(ordered, buffers):
            elements += self._finish_all(number, found[number], buffer)
        return elements

    def __iter__(self) -> Iterator[Any]:
        """Yields all elements in the order of their numbers."""
        for piece in self._join(range(len(self))):
            for number, data in self._read_piece(piece):
                yield from self._finish_all(number, data)

    @property
    def takes_buffers(self) -> bool:
        """Returns whether images can be decoded into the caller's arrays.

        For that, elements must be pairs of image and label.
        """
        form = self._form if self._transform is None else None
        return isinstance(form, ImageForm) and form.layout.shape == "pair" and not form.info.raw

    def by_key(self, key: str) -> Any:
        """Returns the element made from a source, such as `cat/0001.jpg`.

        Raises:
            LoadError: there is none, or the keys are unknown.
            OSError: it cannot be read.
        """
        if (number := self.places.find_key(key)) is None:
            folder = os.path.dirname(self.places.shards[0].path)
            raise LoadError(
                f"no record of this split in {folder} comes from {key!r}: name a key of its "
                "sidecars"
            )
        return self[number]

    def _check_number(self, number: int) -> int:
        count = self.places.starts[-1]
        if not -count <= number < count:
            raise LoadError(
                f"there is no record {number:,}: this split has {count:,} records, numbered from 0"
            )
        return as_number(number) % count

    def _damage(
        self, number: int, why: str = "its frame, or a checksum, does not match"
    ) -> LoadError:
        shard = bisect_right(self.places.starts, number) - 1
        where = f"record {number - self.places.starts[shard]:,} of {self.places.shards[shard].path}"
        return LoadError(f"{where}, at byte {int(self._entries[3 * number]):,}, is damaged: {why}")

    def _finish(self, number: int, record: bytes | LoadError, buffer: Any = None) -> Any:
        if isinstance(record, LoadError):
            raise record
        try:
            args = (record,) if buffer is None else (record, buffer)
            element = self._form(*args) if self._form else record
        except (DecodeError, DamagedExampleError, FeatureValueError, Rejected) as error:
            raise self._damage(number, f"{error}") from None
        if self._transform:
            return self._transform(element)
        return element

    def _finish_all(
        self, number: int, record: bytes | LoadError, buffer: Any = None
    ) -> Iterator[Any]:
        try:
            element = self._finish(number, record, buffer)
        except LoadError as error:
            if self._damaged == "raise":
                raise
            self.skipped.append(str(error))
        else:
            yield element

    def _join(self, numbers: Iterable[int]) -> Iterator[list[int]]:
        """Groups ascending record numbers into pieces whose bytes are read in one range."""
        piece: list[int] = []
        begin = end = next_shard = 0
        for number in numbers:
            offset = self._entries[3 * number]
            if piece and (
                number >= next_shard or offset - end > _GAP_BYTES or offset - begin > _MOST_BYTES
            ):
                yield piece
                piece = []
            if not piece:
                begin, next_shard = (
                    offset,
                    self.places.starts[bisect_right(self.places.starts, number)],
                )
            piece.append(number)
            end = offset + frame_bytes(self._entries[3 * number + 1])
        if piece:
            yield piece

    def _read_piece(self, numbers: list[int]) -> list[tuple[int, bytes | LoadError]]:
        shard = bisect_right(self.places.starts, numbers[0]) - 1
        begin, last = self._entries[3 * numbers[0]], numbers[-1]
        end = self._entries[3 * last] + frame_bytes(self._entries[3 * last + 1])
        data = (self._files.get(shard) or self._open(shard)).read(begin, end - begin)
        read: list[tuple[int, bytes | LoadError]] = []
        for number in numbers:
            at, length = self._entries[3 * number] - begin, self._entries[3 * number + 1]
            record = unframe(data[at : at + frame_bytes(length)], length)
            read.append((number, self._damage(number) if record is None else record))
        return read

    def _open(self, shard: int) -> "_OpenFile":
        if len(self._files) >= _MOST_OPEN:
            self._files.clear()  # a file that another thread is reading is closed after that
        return self._files.setdefault(shard, _OpenFile(self.places.shards[shard]))


class _OpenFile:
    """An open shard without a file position.

    Any number of threads and forked processes can therefore read it concurrently.
    """

    __slots__ = ("_file", "_path")

    def __init__(self, shard: StoredShard) -> None:
        self._path, self._file = shard.path, -1
        if storage.is_local(shard.path):
            if fault := shard.find_fault():
                raise LoadError(fault)
            self._file = open_regular(shard.path)

    def read(self, offset: int, length: int) -> bytes:
        if self._file < 0:
            return storage.read_range(self._path, offset, length)
        return storage.read_open(self._file, offset, length)

    def __del__(
        self, close: Callable[[int], None] = os.close
    ) -> None:  # at Python's exit, `os` may be gone
        if self._file >= 0:
            close(self._file)


class OpenedDataset(Mapping[str, Records]):
    """The splits of a dataset by name; several names joined by `+` are read as one split."""

    def __init__(self, dataset: Dataset, read: Callable[[Dataset, str], Records]) -> None:
        self._dataset, self._read = dataset, read

    @property
    def marker(self) -> Marker:
        """`recordmill.json`.

        Raises:
            LoadError: the dataset is not one of Recordmill's.
        """
        return self._dataset.marker

    def __getitem__(self, split: str) -> Records:
        """Reads the split's index.

        Raises:
            LoadError: there is no such split, or its index does not match it.
            TypeError: it is a number, as of a record.
        """
        if not isinstance(split, str):
            names = [*self._dataset.splits]  # type: ignore[unreachable]  # types are not enforced
            example = f"recordmill.open(...)[{names[0] if names else 'train'!r}][0]"
            raise TypeError(
                f"a dataset has splits, and {split!r} is not the name of one: records are in a "
                f"split, as in {example}; the splits are {', '.join(names) or 'none'}"
            )
        return self._read(self._dataset, split)

    def __contains__(self, split: object) -> bool:
        return split in self._dataset.splits

    def __iter__(self) -> Iterator[str]:
        return iter(self._dataset.splits)

    def __len__(self) -> int:
        return len(self._dataset.splits)


def open(
    path: StrPath,
    *,
    form: Form = "image",
    features: Literal["all"] | Sequence[str] | None = None,
    transform: Callable[[Any], Any] | None = None,
    damaged: Damaged = "raise",
    annotations: Sequence[str] | None = None,
) -> OpenedDataset:
    """Opens a dataset for random access: `recordmill.open(path)["train"][0]`.

    Example:
        train = recordmill.open("dataset")["train"]
        image, label = train[0]
        values = recordmill.open("dataset", form="numpy")["train"].by_key("cat/0001.jpg")

    Args:
        path: a dataset's folder, a TFRecord file, or a pattern, not compressed. Files of a
            Recordmill dataset have no `image` form without its folder.
        form: `image`: what `load` yields without batching, as numpy arrays: pairs of decoded image
            and label if the dataset has both, otherwise dicts; `numpy`: dicts of all features as
            arrays; `raw`: serialized Examples.
        features: with `image`, as for `load`: `all` for dicts of all features, keys for tuples of
            those.
        transform: turns each element into another. It must be picklable if other processes are to
            use it.
        damaged: `raise` an error on a damaged record, or `skip` and count it when several records
            are read.
        annotations: with `image`, as for `load`: the kinds of annotations that dicts have as
            arrays.

    Raises:
        LoadError: there is no dataset, or it cannot be read this way.
    """

    def read(dataset: Dataset, split: str) -> Records:
        index = read_index(dataset, dataset.shards_of(split))
        return Records(
            index, choose_form(dataset, split, form, features, annotations), transform, damaged
        )

    return OpenedDataset(open_dataset(path), read)
