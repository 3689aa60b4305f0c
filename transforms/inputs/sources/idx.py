"""IDX files, in which MNIST and Fashion-MNIST come: one of images, one of labels, plain or gzipped."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from recordmill.schemas.content import Content
from recordmill.schemas.image_ref import ImageRef, Listed
from recordmill.schemas.rejection import Rejected
from recordmill.transforms.inputs.arrays.idx_header import LONGEST_HEADER, parse_idx_header
from recordmill.transforms.inputs.arrays.image_stack import list_array_images, locate_images, read_stacked_image
from recordmill.transforms.inputs.arrays.label_arrays import announce_numbers, name_labels
from recordmill.transforms.inputs.arrays.place import find_beside, place_of
from recordmill.transforms.inputs.listing.class_names import state_classes
from recordmill.transforms.inputs.listing.folder_sketch import FolderSketch, Recognised
from recordmill.transforms.inputs.listing.named_files import DataFile
from recordmill.transforms.inputs.listing.patterns import check_template, compile_pattern
from recordmill.transforms.inputs.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Idx(Source):
    r"""The source `idx`.

    Attributes:
        images: a regular expression (RE2's syntax) that the base names of files of images match as a whole. Its group
            `split`, if any, is the word that `splits.from_source` may use. Other files are ignored.
        labels: the name of the file of labels next to them, in which the pattern's groups may stand; it may end in
            `.gz` too. Empty: there are none.
        class_names: the classes in the order of their numbers, or how many there are, called 0, 1, ...; empty: the
            numbers that are found.
        transposed: whether images are stored column by column, as EMNIST's do.
    """

    images: str = r"(?P<split>.+)-images(?P<dot>[-.])idx[34]-ubyte(?:\.gz)?"
    labels: str = "{split}-labels{dot}idx1-ubyte"
    class_names: tuple[str, ...] | int = ()
    transposed: bool = False

    gives_pixels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises ValueError where a pattern is none."""
        check_template(self.labels, "source.labels", *self._compiled().groupindex)
        self.classes()

    def _compiled(self) -> Any:
        return compile_pattern(self.images, "source.images")

    def classes(self) -> Mapping[str, int]:
        """Those of `class_names`."""
        return state_classes(self.class_names)

    @property
    def gives_labels(self) -> bool:
        """If there are files of them."""
        return bool(self.labels)

    @classmethod
    def recognise(cls, sketch: FolderSketch) -> Iterator[Recognised]:
        """Files called as MNIST's."""
        matches = [cls()._compiled().fullmatch(name) for name in sketch.top.files]
        words = {match["split"]: match["dot"] for match in matches if match}
        if not words:
            return
        splits = {word: "test" if word == "t10k" else word for word in sorted(words, key=lambda word: word == "t10k")}
        labels = {name.removesuffix(".gz") for name in sketch.top.files}
        has_labels = all(cls().labels.format(split=word, dot=dot) in labels for word, dot in words.items())
        source = {"kind": "idx", **({} if has_labels else {"labels": ""})}
        known = set(splits.values()) <= {"train", "test"}
        settings = {"source": source, **({"splits": {"from_source": splits}} if known else {})}
        yield Recognised({**settings, "images": {"store": "png"}}, f"IDX files of {', '.join(splits)}")

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """A reference for each image of one file, by its header and its labels."""
        name = posixpath.basename(path)
        match = self._compiled().fullmatch(name)
        if not match:
            pattern = re.sub(r"\{.*?\}", "*", self.labels)
            is_labels = bool(pattern) and fnmatchcase(name.removesuffix(".gz"), pattern.removesuffix(".gz"))
            yield file.notice("ignored", "labels" if is_labels else "not_included")
            return
        groups = {group: text or "" for group, text in match.groupdict().items()}
        place = place_of(file)
        try:
            dimensions, header = parse_idx_header(place.read(0, LONGEST_HEADER), (3, 4))
            stack = locate_images(place, header, dimensions, "interleaved")
            numbers = self._read_labels(path, file, self.labels.format_map(groups), stack.count)
            labels, found = name_labels(numbers or (), self.classes())
            refs = list_array_images(
                file, file.key, stack, None if numbers is None else labels, groups.get("split", "")
            )
            yield from announce_numbers(file, found)
            yield from refs
        except FileNotFoundError as error:
            detail = f"there is no {error} next to it: add it, or add --set source.labels='' for images without labels"
            yield file.notice("fatal", "bad_labels", detail)

    def _read_labels(self, path: str, file: ImageRef, name: str, count: int) -> bytes | None:
        """The number of each image's class; FileNotFoundError, with the file's name, where there is no such file."""
        if not name:
            return None
        try:
            place = find_beside(DataFile(path, file), name)
            (found,), header = parse_idx_header(place.read(0, LONGEST_HEADER), (1,))
            if found != count:
                raise Rejected("list", "bad_labels", f"{found:,} labels, and there are {count:,} images")
            place.check_size(header + found, f"{header} of header and {found:,} labels")
        except Rejected as error:
            raise Rejected("list", "bad_labels", f"{name}: {error.detail}") from None
        return place.read(header, count, header + count)

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """One image."""
        data, pixels = read_stacked_image(ref, max_bytes, "interleaved")
        return Content(data, pixels.swapaxes(0, 1) if self.transposed else pixels)


SOURCE = Idx
