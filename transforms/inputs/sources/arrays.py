"""numpy's arrays: stacks of images in .npz or .npy files, with their labels in arrays of their own."""

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from recordmill.schemas.content import Content
from recordmill.schemas.image_ref import ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.image_stack import Order, list_array_images, locate_images, read_stacked_image
from recordmill.transforms.inputs.arrays.label_arrays import announce_numbers, name_labels, read_label_array
from recordmill.transforms.inputs.arrays.npy_header import LONGEST_HEADER, parse_npy_header
from recordmill.transforms.inputs.arrays.npz_members import find_members
from recordmill.transforms.inputs.arrays.place import Place, find_beside, place_of
from recordmill.transforms.inputs.listing.class_names import state_classes
from recordmill.transforms.inputs.listing.folder_sketch import FolderSketch, Recognised
from recordmill.transforms.inputs.listing.named_files import DataFile
from recordmill.transforms.inputs.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays(Source):
    """The source `arrays`.

    An array of images has unsigned 8-bit values and the shape N x height x width, or that x channels (1 or 3). Its name
    is its key in a `.npz` file, or a `.npy` file's name without the ending.

    Attributes:
        images: names of the arrays of images, by the word that `splits.from_source` may use.
        labels: names of the arrays of their labels (N or N x 1 integers or texts), by the same words; `{}` for none.
        order: `interleaved`, channels last; or `planar`, N x channels x height x width.
        class_names: the classes in the order of their numbers, or how many there are, called 0, 1, ...; empty: what the
            labels say.
    """

    images: Mapping[str, str] = field(default_factory=lambda: {"train": "x_train", "test": "x_test"})
    labels: Mapping[str, str] = field(default_factory=lambda: {"train": "y_train", "test": "y_test"})
    order: Order = "interleaved"
    class_names: tuple[str, ...] | int = ()

    files: ClassVar[tuple[str, ...]] = ("*.npz", "*.npy")
    gives_pixels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises ValueError where the settings contradict each other."""
        if not self.images:
            raise ValueError("source.images names no array: give at least one, such as {train: x_train}")
        if self.labels and set(self.labels) != set(self.images):
            words = ", ".join(self.images)
            raise ValueError(f"source.labels must have the words of source.images ({words}), or be {{}} for no labels")
        self.classes()

    def classes(self) -> Mapping[str, int]:
        """Those of `class_names`."""
        return state_classes(self.class_names)

    @property
    def gives_labels(self) -> bool:
        """If there are arrays of them."""
        return bool(self.labels)

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterator[Recognised]:
        """Arrays called `x_train`, `y_train` and so on."""
        names = {name for inside in sketch.archives.values() for name in inside.top.ending(".npy")}
        found = {name.removesuffix(".npy") for name in names | set(sketch.top.ending(".npy"))}
        words = [word for word in ("train", "test") if {f"x_{word}", f"y_{word}"} <= found]
        if words:
            arrays = {
                key: {word: f"{axis}_{word}" for word in words} for key, axis in (("images", "x"), ("labels", "y"))
            }
            source = {"kind": "arrays", **(arrays if len(words) == 1 else {})}
            splits = {"from_source": {word: word for word in words}}
            yield Recognised(
                {"source": source, "splits": splits, "images": {"store": "png"}},
                f"arrays such as x_{words[0]} and y_{words[0]}",
            )

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """A reference for each image of one file, by its arrays' headers and its labels."""
        try:
            yield from list(self._refer_members(file) if path.endswith(".npz") else self._refer_file(path, file))
        except FileNotFoundError as error:
            detail = (
                f"there is no array {error} in it or next to it: add it, or correct source.images and source.labels"
            )
            yield file.notice("fatal", "bad_labels", detail)

    def _refer_members(self, file: ImageRef) -> Iterator[Listed]:
        members = find_members(file)
        found = {word: name for word, name in self.images.items() if name in members}
        if not found:
            holds = ", ".join(sorted(members)) or "nothing"
            raise FileNotFoundError(f"{' or '.join(self.images.values())} ({holds} is there)")
        for word, name in found.items():
            if self.labels and self.labels[word] not in members:
                raise FileNotFoundError(self.labels[word])
            labels = members[self.labels[word]] if self.labels else None
            yield from self._refer_array(file, f"{file.key}/{name}", word, members[name], labels)

    def _refer_file(self, path: str, file: ImageRef) -> Iterator[Listed]:
        name = posixpath.basename(path).removesuffix(".npy")
        word = next((word for word, array in self.images.items() if array == name), None)
        if word is None:
            reason = "labels" if name in self.labels.values() else "not_included"
            yield file.notice("ignored", reason)
            return
        labels = find_beside(DataFile(path, file), f"{self.labels[word]}.npy") if self.labels else None
        yield from self._refer_array(file, file.key, word, place_of(file), labels)

    def _refer_array(
        self, file: ImageRef, key: str, word: str, images: Place, labels: Place | None
    ) -> Iterator[Listed]:
        header = parse_npy_header(images.read(0, LONGEST_HEADER))
        if header.dtype != "uint8":
            detail = f"{self.images[word]} holds values of type {header.dtype}, not uint8"
            raise Rejected("list", "bad_array", detail)
        stack = locate_images(images, header.bytes, header.shape, self.order)
        names = None
        if labels is not None:
            values = read_label_array(labels, self.labels[word], stack.count)
            names, numbers = name_labels(values, self.classes())
            yield from announce_numbers(file, numbers)
        yield from list_array_images(file, key, stack, names, word)

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """One image."""
        return Content(*read_stacked_image(ref, max_bytes, self.order))


SOURCE = Arrays
