"""numpy arrays: stacks of images in .npz or .npy files, with their labels in separate arrays."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

from recordmill.schemas.errors import SettingError
from recordmill.schemas.image_ref import Content, ImageRef, Listed
from recordmill.transforms.inputs.array_files import (
    ArrayPlace,
    Order,
    find_labels,
    find_members,
    list_stack,
    place_of,
    read_stacked_image,
)
from recordmill.transforms.inputs.folder_sketch import (
    FolderSketch,
    Recognized,
    given_splits,
    split_for_word,
)
from recordmill.transforms.inputs.named_files import DataFile
from recordmill.transforms.inputs.sources.source import ArraySource


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays(ArraySource):
    """The source `arrays`.

    An array of images has unsigned 8-bit values and the shape N x height x width, or N x height x
    width x channels (1 or 3). Its name is its key in a `.npz` file, or a `.npy` file's name without
    the extension.

    Attributes:
        images: names of the image arrays, by the word for `splits.from_source`.
        labels: names of the label arrays (N or N x 1 integers or strings), by the same words; `{}`
            for none.
        order: `interleaved` (channels last) or `planar` (N x channels x height x width).
        class_names: class names in the order of their numbers, or the number of classes; empty: the
            labels themselves.
    """

    images: Mapping[str, str] = field(
        default_factory=lambda: {"train": "x_train", "test": "x_test"}
    )
    labels: Mapping[str, str] = field(
        default_factory=lambda: {"train": "y_train", "test": "y_test"}
    )
    order: Order = "interleaved"
    class_names: tuple[str, ...] | int = ()

    files: ClassVar[tuple[str, ...]] = ("*.npz", "*.npy")

    def __post_init__(self) -> None:
        """Raises ValueError if the settings contradict each other."""
        has_labels = not self.labels or (
            set(self.labels) == set(self.images) and all(self.labels.values())
        )
        if not self.images or not has_labels:
            words = ", ".join(self.images)
            raise SettingError(
                "source.images",
                f"must name arrays, and source.labels those of its words ({words}) or none",
            )
        self.classes()

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes arrays named `x_train`, `y_train` or `train_images`, `train_labels`."""
        names = chain.from_iterable(each.top.ending(".npy") for each in sketch.archives.values())
        packed = {name.removesuffix(".npy") for name in names}
        found = packed | {name.removesuffix(".npy") for name in sketch.top.ending(".npy")}
        images, labels = _pair_arrays(found)
        usual = cls()
        if images and images.items() <= usual.images.items():
            settings = {"source": {"kind": "arrays"}, **given_splits("from_source", images)}
            word = next(iter(images))
            yield Recognized(
                settings | {"images": {"store": "png"}}, f"arrays such as x_{word} and y_{word}"
            )
        elif images or packed:
            source = {"kind": "arrays", "images": images, "labels": labels}
            settings = {"source": source, **given_splits("from_source", images)}
            others = sorted(found - {*images.values(), *labels.values()})
            yield Recognized(
                settings | {"images": {"store": "png"}},
                f"arrays such as {', '.join(sorted(found)[:4])}",
                needs=_ask_for_arrays(others) if others else None,
                needed_keys=("source.images",),
            )

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields a reference per image, from the arrays' headers and labels."""
        is_archive = path.endswith(".npz")
        name = posixpath.basename(path).removesuffix(".npy")
        if not is_archive and name not in self.images.values():
            yield file.notice(
                "ignored", "labels" if name in self.labels.values() else "not_included"
            )
            return
        places = find_members(file) if is_archive else self._find_pair(name, DataFile(path, file))
        words = {word: name for word, name in self.images.items() if name in places}
        wanted = (
            [self.labels[word] for word in words if self.labels]
            if words
            else [*self.images.values()]
        )
        if missing := [name for name in wanted if name not in places]:
            there = (
                f"there is no array {' or '.join(missing)} in it or next to it, but "
                f"{', '.join(sorted(places))}"
            )
            yield file.notice(
                "fatal", "bad_labels", f"{there}: correct source.images and source.labels"
            )
            return
        listed: list[Listed] = []
        for word, name in words.items():
            key = f"{file.key}/{name}" if is_archive else file.key
            labels = places.get(self.labels.get(word, ""))
            listed += list_stack(file, key, places[name], labels, word, self.order, self.classes())
        yield from listed  # all or nothing

    def _find_pair(self, name: str, file: DataFile) -> dict[str, ArrayPlace]:
        """Returns the arrays of a .npy file and of the file of its labels, if there is one."""
        places = {name: place_of(file.ref)}
        for word, labels in self.labels.items():
            if self.images[word] == name and (found := find_labels(file, f"{labels}.npy")):
                places[labels] = found
        return places

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Returns one image."""
        return Content(*read_stacked_image(ref, max_bytes, self.order))


_IMAGES, _LABELS = ("x", "images", "imgs"), ("y", "labels", "targets")
"""Words for arrays of images, and for those of their labels, in lower case."""


def _pair_arrays(names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Finds arrays of images that have labels, by the word of their split; `all` without one."""
    found: dict[tuple[bool, str], str] = {}
    for name in sorted(names):
        words = name.lower().split("_")
        kinds = [word for word in words if word in (*_IMAGES, *_LABELS)]
        splits = [word for word in words if split_for_word(word)]
        if len(kinds) == 1 and len(kinds) + len(splits) == len(words) <= 2:
            found[kinds[0] in _LABELS, next(iter(splits), "all")] = name
    words = [word for is_label, word in found if not is_label and (True, word) in found]
    return {word: found[False, word] for word in words}, {word: found[True, word] for word in words}


def _ask_for_arrays(names: Sequence[str]) -> str:
    """Returns what to do about arrays without a known meaning."""
    return (
        f"the meaning of {', '.join(names[:8])} is not known: name the arrays of images and of "
        "their labels in source.images and source.labels, as {train: NAME, test: NAME}, and those "
        "words in splits.from_source"
    )


SOURCE = Arrays
