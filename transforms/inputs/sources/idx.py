"""IDX files, as in MNIST and Fashion-MNIST: one of images and one of labels, plain or gzipped."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from recordmill.schemas.image_ref import Content, ImageRef, Listed
from recordmill.transforms.inputs.array_files import (
    find_labels,
    list_stack,
    place_of,
    read_stacked_image,
)
from recordmill.transforms.inputs.folder_sketch import FolderSketch, Recognized, given_splits
from recordmill.transforms.inputs.named_files import DataFile
from recordmill.transforms.inputs.patterns import check_template, compile_pattern
from recordmill.transforms.inputs.sources.source import ArraySource


@dataclass(frozen=True, slots=True, kw_only=True)
class Idx(ArraySource):
    r"""The source `idx`.

    Attributes:
        images: a regular expression (RE2) for the whole names of image files. Its group `split`, if
            any, is the word for `splits.from_source`. Other files are ignored.
        labels: the name of the label file, with the pattern's groups in braces; it may also end in
            `.gz`. Empty: no labels.
        class_names: class names in the order of their numbers, or the number of classes; empty: the
            numbers that are found.
        transposed: whether images are stored column by column, as in EMNIST.
    """

    images: str = r"(?P<split>.+)-images(?P<dot>[-.])idx[34]-ubyte(?:\.gz)?"
    labels: str = "{split}-labels{dot}idx1-ubyte"
    class_names: tuple[str, ...] | int = ()
    transposed: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError if a pattern is invalid."""
        check_template(self.labels, "source.labels", *self._compiled().groupindex)
        self.classes()

    def _compiled(self) -> Any:
        return compile_pattern(self.images, "source.images")

    @classmethod
    def recognize(cls, sketch: FolderSketch) -> Iterator[Recognized]:
        """Recognizes files named like MNIST's."""
        matches = [cls()._compiled().fullmatch(name) for name in sketch.top.files]
        words = [match["split"] for match in matches if match]
        if not words:
            return
        # If any file looks like labels, the job reports the images whose own are missing.
        has_labels = any(re.search("idx1|-labels", name) for name in sketch.top.files)
        source = {"kind": "idx", **({} if has_labels else {"labels": ""})}
        settings = {"source": source, **given_splits("from_source", words, {"t10k": "test"})}
        yield Recognized(
            {**settings, "images": {"store": "png"}}, f"IDX files of {', '.join(words)}"
        )

    @property
    def siblings(self) -> Mapping[str, str]:
        """EMNIST's tables of the characters that its classes are."""
        return {"*-mapping.txt": "tables of characters"}

    def list_references(self, path: str, file: ImageRef) -> Iterator[Listed]:
        """Yields a reference for each image of one file, from its header and its labels."""
        name = posixpath.basename(path)
        match = self._compiled().fullmatch(name)
        if not match:
            pattern = re.sub(r"\{.*?\}", "*", self.labels)
            is_labels = bool(pattern) and fnmatchcase(
                name.removesuffix(".gz"), pattern.removesuffix(".gz")
            )
            yield file.notice("ignored", "labels" if is_labels else "not_included")
            return
        groups = {group: text or "" for group, text in match.groupdict().items()}
        labels = self.labels.format_map(groups)
        place = find_labels(DataFile(path, file), labels) if labels else None
        if labels and not place:
            add = "add it, or add --set source.labels='' for images without labels"
            yield file.notice("fatal", "bad_labels", f"there is no {labels} next to it: {add}")
            return
        word = groups.get("split", "")
        yield from list_stack(
            file, file.key, place_of(file), place, word, "interleaved", self.classes()
        )

    def read(self, ref: ImageRef, max_bytes: int) -> Content:
        """Returns one image."""
        data, pixels = read_stacked_image(ref, max_bytes, "interleaved")
        return Content(data, pixels.swapaxes(0, 1) if self.transposed else pixels)


SOURCE = Idx
